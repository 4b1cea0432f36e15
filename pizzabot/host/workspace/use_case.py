"""`HostWorkspace`: a thread's files as a person sees, edits, takes along and brings them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Protocol

from pizzabot.host.blobs import Blob
from pizzabot.host.files.paths import checked_path
from pizzabot.host.files.text_search import is_text
from pizzabot.host.ids import checked_id
from pizzabot.host.workspace.archive import make_archive
from pizzabot.host.workspace.changes import Changes
from pizzabot.host.workspace.cursors import cursor_of, place_of
from pizzabot.host.workspace.locks import Locks
from pizzabot.host.workspace.paths_of_turns import PathsOfTurns
from pizzabot.host.workspace.place import Place
from pizzabot.host.workspace.rows import artifact_row, shown_inline, version_row
from pizzabot.host.workspace.uploads import upload
from pizzabot.host.workspace.versions import Guard, Versions
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound, TooLarge
from pizzabot_hookspecs.file_storage import FileVersion
from pizzabot_hookspecs.files import FOLDERS, MEMORIES, OFFLOADS, SKILLS
from pizzabot_hookspecs.host_files import StoredFile
from pizzabot_hookspecs.wire import JsonValue

MAX_PAGE_FILES = 200
"""Files of one page of a workspace."""
MAX_EDITED_BYTES = 2 * 1024 * 1024
"""Of a file that a person writes as text."""
MAX_SHOWN_VERSIONS = 1_000
"""Versions of a file that are listed, the newest."""
_FEW = 500


class Stillness(Protocol):
    """Lets no run of a thread begin (`RunEngine.still`)."""

    def still(self, thread_id: str, /) -> AbstractAsyncContextManager[None]: ...


class HostWorkspace:
    """Implements `pizzabot_hookspecs.host_files.Workspace`; the docstrings are there."""

    def __init__(self, versions: Versions, paths: PathsOfTurns, changes: Changes, engine: Stillness) -> None:
        self._versions = versions
        self._storage = versions.storage
        self._paths = paths
        self._engine = engine
        self._writers = Locks()
        self._changes = changes

    async def page(
        self, thread_id: str, /, *, cursor: str | None = None, limit: int = 100, caller: Caller
    ) -> Mapping[str, Any]:
        if not 1 <= limit <= MAX_PAGE_FILES:
            problem = f"must be from 1 to {MAX_PAGE_FILES}"
            raise InvalidRequest("invalid_argument", f"limit {problem}", fields={"limit": problem})
        before = place_of(cursor)
        rows = await self._versions.visible(await self._place(thread_id, caller=caller))
        made = _page(rows, before, limit) if len(rows) <= _FEW else await asyncio.to_thread(_page, rows, before, limit)
        return {"artifacts": made[0], "cursor": made[1]}

    async def get(self, thread_id: str, path: str, /, *, version: int | None = None, caller: Caller) -> StoredFile:
        place = await self._place(thread_id, caller=caller)
        if version is None:
            return self._stored(await self._versions.file(place, path))
        return self._stored(await self._version(place, path, version))

    async def put(
        self, thread_id: str, path: str, content: bytes, /, *, base_sha256: str | None, caller: Caller
    ) -> Mapping[str, JsonValue]:
        root = "/" + checked_path(path).split("/")[1]
        if root in {MEMORIES, FOLDERS, SKILLS, *OFFLOADS}:  # the agent would never see a file there
            problem = f"is not among the thread's own files: for the agent {root} is another place"
            raise InvalidRequest("invalid_path", f"the path {path} {problem}", fields={"path": problem})
        if len(content) > MAX_EDITED_BYTES:
            raise TooLarge("file_too_large", f"{path} would have {len(content)} bytes; {MAX_EDITED_BYTES} can be saved")
        if not await asyncio.to_thread(is_text, content):
            raise InvalidRequest("not_text", f"what is to be saved as {path} is not text in UTF-8")
        async with self._alone(thread_id, caller=caller) as place:
            guard = Guard(base=base_sha256, new=base_sha256 is None)
            try:
                return artifact_row(await self._versions.write(place, path, content, guard))
            except Conflict as refused:
                if refused.code not in ("file_changed", "file_exists"):
                    raise
                raise await self._changed(place, path) from refused

    async def delete(self, thread_id: str, path: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        checked_path(path)
        async with self._alone(thread_id, caller=caller) as place:
            return version_row(await self._versions.delete(place, path))

    async def versions(self, thread_id: str, path: str, /, *, caller: Caller) -> Mapping[str, Any]:
        await self._place(thread_id, caller=caller)
        rows = await self._storage.file_versions(thread_id, checked_path(path), limit=MAX_SHOWN_VERSIONS, caller=caller)
        if not rows:
            raise NotFound("no_such_file", f"there is no file {path}")
        return {"versions": [version_row(row) for row in rows]}

    async def restore(self, thread_id: str, path: str, version: int, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        checked_path(path)
        async with self._alone(thread_id, caller=caller) as place, self._versions.locks.of(thread_id):
            old = await self._version(place, path, version)
            async with self._versions.blobs.pinned(str(old.sha256)):
                blob = Blob(sha256=str(old.sha256), size=old.size)
                return artifact_row(await self._versions.put(place, path, blob, old.media_type))

    async def archive(self, thread_id: str, items: Sequence[tuple[str, int]], /, *, caller: Caller) -> StoredFile:
        place = await self._place(thread_id, caller=caller)
        wanted = [(checked_path(path), version) for path, version in items]
        rows = [await self._version(place, path, version) for path, version in wanted[:_FEW]]
        return await make_archive(self._versions.blobs, rows, asked=len(wanted))

    async def upload(
        self, thread_id: str, content: AsyncIterator[bytes], /, *, filename: str, caller: Caller
    ) -> Mapping[str, JsonValue]:
        place = await self._place(thread_id, caller=caller)
        # A file is brought before it is said what for: whichever branch goes on sees it.
        return await upload(self._versions, replace(place, turn_id=None), content, filename)

    async def changes(
        self, thread_id: str, run_id: str, /, *, path: str | None = None, caller: Caller
    ) -> Mapping[str, Any]:
        await self._place(thread_id, caller=caller)
        run = await self._storage.run(run_id, caller=caller)
        if run is None or run.thread_id != thread_id:
            raise NotFound("no_such_run", f"thread {thread_id!r} has no run {run_id!r}")
        return await self._changes.of_run(run, path=None if path is None else checked_path(path), caller=caller)

    # -- places -----------------------------------------------------------------------------------------------------

    async def _place(self, thread_id: str, *, caller: Caller) -> Place:
        """The branch that the thread is at. Raises `NotFound` `no_such_thread`."""
        head, turns = await self._paths.of_head(checked_id(thread_id, what="thread_id"), caller=caller)

        async def seen() -> Collection[str] | None:
            return turns

        return Place(thread_id=thread_id, caller=caller, turns=seen, turn_id=head)

    @asynccontextmanager
    async def _alone(self, thread_id: str, *, caller: Caller) -> AsyncIterator[Place]:
        """The place while no run goes on and no other person writes. Raises `Conflict` `thread_busy`."""
        await self._place(thread_id, caller=caller)
        async with self._writers.of(thread_id), self._engine.still(thread_id):
            yield await self._place(thread_id, caller=caller)

    async def _version(self, place: Place, path: str, version: int) -> FileVersion:
        """Raises `NotFound` `no_such_file` where the path never was one, `no_such_version`."""
        newest = await self._storage.file_versions(place.thread_id, checked_path(path), limit=1, caller=place.caller)
        if not newest:
            raise NotFound("no_such_file", f"there is no file {path}")
        back = newest[0].version - version + 1
        found: Sequence[FileVersion] = ()
        if version >= 1 and back >= 1:
            found = await self._storage.file_versions(place.thread_id, path, limit=back, caller=place.caller)
        for row in reversed(found):
            if row.version == version and row.sha256 is not None:
                return row
        raise NotFound("no_such_version", f"{path} has no version {version} with content")

    async def _changed(self, place: Place, path: str) -> Conflict:
        now = await self._versions.newest(place, path)
        live = now if now is not None and now.sha256 is not None else None
        fields = {} if live is None else {"sha256": str(live.sha256), "version": str(live.version)}
        detail = f"{path} was changed since it was read, or is there already: look at what it is now, and save again"
        return Conflict("artifact_changed", detail, fields=fields)

    def _stored(self, row: FileVersion) -> StoredFile:
        digest = str(row.sha256)

        def opened(start: int, end: int, /) -> AsyncGenerator[bytes, None]:
            return self._versions.blobs.chunks(digest, start, end)

        return StoredFile(
            name=row.path.rpartition("/")[2],
            media_type=row.media_type,
            size=row.size,
            tag=digest,
            inline=shown_inline(row.media_type),
            opened=opened,
        )


def _page(
    rows: Sequence[FileVersion], before: tuple[int, int] | None, limit: int
) -> tuple[list[dict[str, Any]], str | None]:
    """The newest first; rows whose facts did not go along with a copy share a place in the log."""
    numbered = sorted(((row.seq, at) for at, row in enumerate(rows)), reverse=True)
    wanted = [place for place in numbered if before is None or place < before]
    shown = wanted[:limit]
    return [artifact_row(rows[at]) for _, at in shown], cursor_of(shown[-1]) if len(wanted) > limit else None
