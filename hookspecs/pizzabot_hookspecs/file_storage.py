"""What storage keeps of files: rows of workspaces, attachments and granted folders. Bytes are never in it.

The bytes of a workspace are blobs named after their SHA-256, those of an attachment a file of its id; both lie in the
data root and are the host's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pizzabot_hookspecs.callers import Caller

if TYPE_CHECKING:
    from pizzabot_hookspecs.storage_backends import NewEvent


@dataclass(frozen=True, kw_only=True, slots=True)
class FileVersion:
    """A row of a thread's workspace (spec/12 §2.1). `sha256` None: the file was deleted with this version.

    `version` counts from 1 for each path. `turn_id` is the turn it was written in, None for one that every branch
    sees; `run_id` None where no run wrote it. `seq` is the place of its fact in the thread's log.
    """

    thread_id: str
    path: str
    version: int
    sha256: str | None
    size: int
    media_type: str
    author: str
    turn_id: str | None
    run_id: str | None
    seq: int
    created_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class NewFileVersion:
    """What `put_file` stores. `author` is `agent` or `person`."""

    thread_id: str
    path: str
    sha256: str | None
    size: int
    media_type: str
    author: str
    turn_id: str | None = None
    run_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A stored attachment (spec/03 §3). Its bytes are the host's.

    `thread_id` is the first of its threads that is left, None until a message of one refers to it.
    """

    id: str
    owner: str
    thread_id: str | None
    filename: str
    media_type: str
    size: int
    created_at: float


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderGrant:
    """A granted folder as a row. `path` is canonical; the label is its last name."""

    id: str
    owner: str
    label: str
    path: str
    read_only: bool
    created_at: float


class FileStorage(Protocol):
    """Every method filters on `caller.owner`. Deleting a thread deletes its workspace rows, and the rows of attachments
    that belong to no other thread, in the same transaction. A copy comes with its files (`ThreadCopy.files`), and the
    attachments of the one it is of belong to it too (`ThreadCopy.attachments`)."""

    async def put_file(
        self, new: NewFileVersion, event: NewEvent, /, *, epoch: int | None = None, caller: Caller
    ) -> FileVersion:
        """Store the next version of a path and its fact, in one transaction: both or neither.

        The event gets the thread's next `seq` (of `new.run_id`, or of no run). With `epoch` it is fenced like
        `append_events`: `Conflict` `lease_lost` where the run is not this epoch's, not the thread's or is final. Else
        it raises `NotFound` `no_such_thread`, and `no_such_run` for a run that the thread does not have.
        """
        ...

    async def files(
        self, thread_id: str, /, *, turns: Collection[str] | None, path: str | None = None, caller: Caller
    ) -> Sequence[FileVersion]:
        """The newest version of each path, deleted ones too, in the order of the paths; `path` asks for one.

        `turns` are those of a branch: versions of other turns do not count, versions of no turn always do. None: all.
        """
        ...

    async def file_versions(self, thread_id: str, path: str, /, *, limit: int, caller: Caller) -> Sequence[FileVersion]:
        """The versions of a path, on every branch, the newest first."""
        ...

    async def run_files(self, thread_id: str, run_id: str, /, *, caller: Caller) -> Sequence[FileVersion]:
        """The versions that a run wrote, in the order in which it did."""
        ...

    async def used_blobs(self, digests: Collection[str], /) -> frozenset[str]:
        """Those of these SHA-256 digests that any row of any owner names. Any number of digests."""
        ...

    async def add_attachment(self, attachment: Attachment, /, *, caller: Caller) -> None:
        """Raises `Conflict` `already_exists` for an id that anybody has, `NotFound` `no_such_thread`.

        It is the caller's; only `caller.system` stores it for `attachment.owner`.
        """
        ...

    async def attachment(self, attachment_id: str, /, *, caller: Caller) -> Attachment | None: ...

    async def claim_attachments(self, thread_id: str, attachment_ids: Collection[str], /, *, caller: Caller) -> None:
        """These belong to the thread from now on, and to those that they belonged to before. Unknown ids are passed
        over.

        Those of another owner than the thread's are unknown ones. Raises `NotFound` `no_such_thread`.
        """
        ...

    async def thread_attachments(self, thread_id: str, /, *, caller: Caller) -> Sequence[Attachment]:
        """The oldest first, then by id."""
        ...

    async def delete_attachment(self, attachment_id: str, /, *, caller: Caller) -> bool:
        """Whether there was one."""
        ...

    async def folder_grants(self, *, caller: Caller) -> Sequence[FolderGrant]:
        """By label without regard to case, then by id."""
        ...

    async def add_folder_grant(self, grant: FolderGrant, /, *, caller: Caller) -> None:
        """Raises `Conflict` `already_exists` for an id or a path that the owner has already.

        It is the caller's; only `caller.system` stores it for `grant.owner`.
        """
        ...

    async def delete_folder_grant(self, grant_id: str, /, *, caller: Caller) -> bool:
        """Whether there was one."""
        ...
