"""The use cases of files, as `Host` has them: attachments, the thread's workspace, granted folders, memories.

Answers are JSON as docs/use/protocol.md describes it, camelCase. Errors are those of `pizzabot_hookspecs.errors`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pizzabot_hookspecs.callers import Caller
from pizzabot_hookspecs.wire import JsonValue


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """Bytes to send. `size` of the whole; `tag` is the strong ETag without quotes, `name` the file's own name.

    `opened(start, end)` gives the bytes from `start` up to `end` (exclusive); it is closed with `aclose()`.
    `inline` says that a browser may show it: every other is only ever a download (spec/12 §2.1).
    """

    name: str
    media_type: str
    size: int
    tag: str
    inline: bool
    opened: FileChunks


class FileChunks(Protocol):
    def __call__(self, start: int, end: int, /) -> AsyncGenerator[bytes, None]: ...


class AttachmentFiles(Protocol):
    """Files that messages refer to by `attachment://<id>` (spec/01 §6, spec/03 §3)."""

    async def add(
        self,
        content: AsyncIterator[bytes],
        /,
        *,
        filename: str,
        media_type: str | None = None,
        thread_id: str | None = None,
        caller: Caller,
    ) -> Mapping[str, JsonValue]:
        """`{id, url, mediaType, filename, sizeBytes}`. In this order: `InvalidRequest` `empty`; `TooLarge` `too_large`
        over 10 MiB; `InvalidRequest` `unsupported_type`; `TooLarge` `too_large` over what its kind may have."""
        ...

    async def get(self, attachment_id: str, /, *, caller: Caller) -> StoredFile:
        """Raises `NotFound` `no_such_attachment`."""
        ...

    async def delete(self, attachment_id: str, /, *, caller: Caller) -> bool: ...


class Workspace(Protocol):
    """A thread's own files, versioned (spec/12 §2.1). Paths as in `pizzabot_hookspecs.files`. `head` is the branch
    that is looked at, None for the thread's own."""

    async def page(
        self, thread_id: str, /, *, cursor: str | None = None, limit: int = 100, caller: Caller
    ) -> Mapping[str, Any]:
        """`{artifacts: [{path, version, sha256, size, mediaType, kind, author, runId, presented, updatedAt}], cursor}`,
        the newest first; `cursor` null at the end. Raises `NotFound` `no_such_thread`."""
        ...

    async def get(self, thread_id: str, path: str, /, *, version: int | None = None, caller: Caller) -> StoredFile:
        """Raises `NotFound` `no_such_file`, `no_such_version`."""
        ...

    async def put(
        self, thread_id: str, path: str, content: bytes, /, *, base_sha256: str | None, caller: Caller
    ) -> Mapping[str, JsonValue]:
        """A new version by the person: the row of `page`. `base_sha256` None creates.

        Raises `Conflict` `artifact_changed` (fields `sha256`, `version`), `thread_busy`; `TooLarge` `file_too_large`
        over 2 MiB; `InvalidRequest` `not_text`.
        """
        ...

    async def delete(self, thread_id: str, path: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """A version that says it is gone. Raises `Conflict` `thread_busy`."""
        ...

    async def versions(self, thread_id: str, path: str, /, *, caller: Caller) -> Mapping[str, Any]:
        """`{versions: […]}`, the newest first, at most 1,000."""
        ...

    async def restore(self, thread_id: str, path: str, version: int, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """The content of an earlier version as a new one. Raises `Conflict` `thread_busy`."""
        ...

    async def archive(self, thread_id: str, items: Sequence[tuple[str, int]], /, *, caller: Caller) -> StoredFile:
        """A ZIP of these paths and versions: at most 50, 50 MiB each, 100 MiB in all. Raises `TooLarge`
        `archive_too_large`."""
        ...

    async def upload(
        self, thread_id: str, content: AsyncIterator[bytes], /, *, filename: str, caller: Caller
    ) -> Mapping[str, JsonValue]:
        """A file of the person's, into `/uploads/`: `{path, sha256, size, mediaType, inline}`. A name that is taken
        gets `-1`. `inline` says that it can be shown to a model. Raises `TooLarge` `file_too_large` over 50 MiB."""
        ...

    async def changes(
        self, thread_id: str, run_id: str, /, *, path: str | None = None, caller: Caller
    ) -> Mapping[str, Any]:
        """What a run did to files: `{files: [{path, op, sizeBefore, sizeAfter, added, removed}], truncated}`; with
        `path` also `diff`, unified, at most 256 KiB. Raises `NotFound` `no_such_run`, `no_such_file`."""
        ...


class Folders(Protocol):
    """Folders of the machine that the agent may use (spec/01 §11). Records: `{id, label, path, virtualPath, readOnly,
    createdAt}`."""

    async def listing(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`{folders, configurable, browseAvailable}`."""
        ...

    async def browse(self, path: str | None = None, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`{currentPath, parentPath, directories: [{name, path}]}`, the roots without `path`.

        Raises `NotPermitted` `browsing_disabled`, `path_not_browsable`; `InvalidRequest` `invalid_path`,
        `directory_unreadable`.
        """
        ...

    async def grant(
        self, path: str, /, *, read_only: bool = True, acknowledge_data_root: bool = False, caller: Caller
    ) -> Mapping[str, JsonValue]:
        """The record. Raises `NotPermitted` `configuration_disabled`; `InvalidRequest` `invalid_path`; `Conflict`
        `data_root_access_requires_confirmation`, `already_exists`, `overlapping_grant`."""
        ...

    async def revoke(self, folder_id: str, /, *, caller: Caller) -> bool:
        """Whether it was granted; the next operation of a run under way is refused. Raises `NotPermitted`
        `configuration_disabled`, `InvalidRequest` `invalid_id`."""
        ...


class Memories(Protocol):
    """What is remembered across threads: Markdown documents. Every method but `listing` raises `Conflict`
    `memories_disabled` while memory is off; `listing` is empty then."""

    async def listing(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`{memories: [{id, preview, size, updatedAt}]}`, the newest first."""
        ...

    async def get(self, memory_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`{id, content, updatedAt}`. Raises `NotFound` `no_such_memory`, `InvalidRequest` `invalid_id`."""
        ...

    async def put(
        self, memory_id: str, content: str, /, *, new: bool = False, caller: Caller
    ) -> Mapping[str, JsonValue]:
        """The document. `new`: raises `Conflict` `already_exists`. `TooLarge` `memory_too_large` over 256 KiB."""
        ...

    async def delete(self, memory_id: str, /, *, caller: Caller) -> None: ...


class Preferences(Protocol):
    """What the person set (spec/01 §11): `{theme, customPromptAddendum, enableMemories, enableAutomations,
    maxToolCalls, maxSubagentToolCalls}`."""

    async def get(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        """Unreadable values read as their defaults."""
        ...

    async def patch(self, values: Mapping[str, JsonValue], /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """All of them, after those in `values` were written at once; an invalid field is ignored (spec/01 §11)."""
        ...
