"""Files as an agent sees them: areas of named files, each with its own rules, and what a turn has of them.

An area's paths are absolute and POSIX (`/notes/a.md`), at most `MAX_PATH_BYTES` bytes of UTF-8, without `.`, `..`,
empty segments, NUL, backslash or control characters; `/` is the area itself. Names are Unicode, as they are on disk.
No error says where an area lies on the machine. What an operation may do is decided while it runs: a folder that was
taken away a moment ago refuses the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

MAX_PATH_BYTES = 1_024
"""Bytes of a path within an area (spec/12 §2.1)."""

MEMORIES, FOLDERS, SKILLS = "/memories", "/local", "/skills"
OFFLOADS = ("/conversation_history", "/large_tool_results", "/blobs")
"""Where an agent has other files than the thread's own, which are everywhere else below `/` (spec/05 §6)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEntry:
    """A file or a folder. `size` in bytes and `modified_at` in seconds since the epoch where the area knows them."""

    path: str
    is_folder: bool = False
    size: int | None = None
    modified_at: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FileContent:
    """A file as it was read. `tag` says which version: a write that is based on it names it."""

    path: str
    content: bytes
    tag: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Files, in the order of their paths. `truncated`: there are more, or not everything could be looked at."""

    entries: Sequence[FileEntry] = ()
    truncated: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TextMatch:
    """A line that holds the text: `line` counts from 1, `text` is the line without its end, cut at 1,000 characters."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Matches:
    """Lines, by path and line. `truncated`: there are more, or not everything could be looked at."""

    matches: Sequence[TextMatch] = ()
    truncated: bool = False


class FileArea(Protocol):
    """Operations on one area. Whatever blocks is done off the loop; nothing is kept open between operations.

    Every method may raise `InvalidRequest` `invalid_path`; `NotFound` `no_such_file`; `NotPermitted` `not_allowed`
    (a link, a way out of the area), `read_only`, `memories_disabled`, `no_such_folder` (one that is not granted);
    `Unavailable` `file_failed`, with the system's reason and no path of the machine.
    """

    async def list(self, path: str, /) -> Sequence[FileEntry]:
        """What stands directly in a folder, by name, at most 10,000. Raises `InvalidRequest` `not_a_folder`."""
        ...

    async def read(self, path: str, /, *, max_bytes: int) -> FileContent:
        """The whole file. Raises `TooLarge` `file_too_large` beyond `max_bytes`; `InvalidRequest` `not_a_file`."""
        ...

    async def write(self, path: str, content: bytes, /, *, base: str | None = None, new: bool = False) -> FileEntry:
        """Put the whole file there, its folders too; either all of it is there afterwards or nothing has changed.

        `base` is the tag of what the writer has read: `Conflict` `file_changed` where the file is another one by now.
        `new`: `Conflict` `file_exists` where there is one, with other content; the same content is no change.
        Raises `TooLarge` `file_too_large`, `too_many_files`, `area_full`.
        """
        ...

    async def find(self, pattern: str, path: str = "/", /, *, limit: int) -> Found:
        """Files below `path` whose path relative to it fits a glob: `*`, `?`, `[…]`, `{a,b}`, `**` for any folders."""
        ...

    async def search(self, text: str, path: str = "/", /, *, pattern: str | None = None, limit: int) -> Matches:
        """Lines that hold `text` literally, in files of UTF-8 text below `path` (or in that file), `pattern` as in
        `find`."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class GrantedFolder:
    """A folder of the person's machine that the agent may use, as `path` (`/local/<id>`) of its own files."""

    id: str
    host_path: str
    path: str
    read_only: bool


class GrantedFolders(FileArea, Protocol):
    """The granted folders as one area: `/<id>/…`. What is granted is looked up for every operation.

    A search at `/` covers all of them and passes over what cannot be searched.
    """

    async def granted(self) -> Sequence[GrantedFolder]:
        """What is granted now, the longest `host_path` first."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachedFile:
    """An attachment's bytes for a model call."""

    id: str
    name: str
    media_type: str
    content: bytes


class Attachments(Protocol):
    async def resolve(self, attachment_id: str, /) -> AttachedFile | None:
        """What the caller of the turn attached under this id; None where it is gone or somebody else's."""
        ...


@dataclass(frozen=True, kw_only=True)
class TurnFiles:
    """What one turn has of files. None: there is no such area here, and what asks for it is told so.

    `workspace`    the thread's own files, at `/`
    `memories`     what is remembered across threads, at `/memories/`; refuses everything while memory is off
    `folders`      folders of the machine, at `/local/<id>/`
    `offloads`     what the runtime itself puts aside for the thread: `/conversation_history/`, `/large_tool_results/`
    `attachments`  what messages refer to by `attachment://<id>`
    """

    workspace: FileArea | None = None
    memories: FileArea | None = None
    folders: GrantedFolders | None = None
    offloads: FileArea | None = None
    attachments: Attachments | None = None
