# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""The file tools' backend: DeepAgents' operations on the areas of files that the turn under way has.

`/` is the thread's workspace; `/memories/`, `/local/<id>/` and what the runtime puts aside are areas of their own; a
subagent also sees its bundle, `/skills/<id>/`, and no other's. An operation asks the turn for its areas while it runs,
so that a compiled graph holds none. What an area refuses becomes an error of the operation, never an exception: no path
of the machine is in one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from deepagents.backends.protocol import (
    BackendProtocol,
    EditResult,
    FileData,
    FileDownloadResponse,
    FileInfo,
    FileUploadResponse,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import perform_string_replacement, slice_read_response
from langgraph.runtime import get_runtime

from pizzabot_builtin_plugins.deepagents_runtime.bundles import refusal
from pizzabot_builtin_plugins.deepagents_runtime.file_kinds import image_type, is_text_name
from pizzabot_builtin_plugins.deepagents_runtime.file_paths import decoded, encoded, is_in
from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools, turn_in
from pizzabot_hookspecs import Conflict, NotFound, PizzabotError
from pizzabot_hookspecs.files import FOLDERS, MEMORIES, OFFLOADS, SKILLS, FileArea, FileContent, FileEntry

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.deepagents_runtime.bundles import Bundle

MAX_READ_BYTES = 10 * 1024 * 1024
"""Of a file that a tool reads, whole: what it shows is a page of it."""
MAX_FOUND = 1_000
"""Files that a glob tells, lines that a grep tells, unless the model asks for fewer."""
EDIT_ATTEMPTS = 3
"""Times an edit is made anew because somebody else has written the file meanwhile."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A path's area: `inner` is the path in it, `mount` what stands before it in the agent's own paths."""

    area: FileArea
    mount: str
    inner: str

    def told(self, inner: str) -> str:
        """A path of the area as the agent is told it."""
        return self.mount + (encoded(inner) if self.mount == FOLDERS else inner)


class NoArea(PizzabotError):
    """The turn has no such files."""


class TurnBackend(BackendProtocol):
    """One per agent, for all turns; `bundle` is the subagent's own. Only the asynchronous operations exist."""

    def __init__(self, bundle: Bundle | None = None) -> None:
        self._bundle = bundle

    # -- reading ----------------------------------------------------------------------------------------------------

    async def als(self, path: str) -> LsResult:
        if self._bundle is not None and self._bundle.has(path):
            return self._bundle.ls(path)
        found = await _tried(path, lambda: self._listed(path))
        if isinstance(found, str):
            return LsResult(error=found)
        return LsResult(entries=[*found, *(self._mounts() if path == "/" else [])])

    async def _listed(self, path: str) -> list[FileInfo]:
        place = _place(path)
        return [_info(place, entry) for entry in await place.area.list(place.inner)]

    def _mounts(self) -> list[FileInfo]:
        """The folders at `/` that are not the workspace's."""
        turn = _turn()
        mounts = [self._bundle.root] if self._bundle is not None else []
        if turn is not None and turn.files.memories is not None and turn.settings.memories:
            mounts.append(MEMORIES)
        if turn is not None and turn.files.folders is not None:
            mounts.append(FOLDERS)
        return [FileInfo(path=f"{mount}/", is_dir=True, size=0, modified_at="") for mount in mounts]

    async def aread(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        if self._bundle is not None and self._bundle.has(file_path):
            return self._bundle.read(file_path, offset, limit)
        found = await _tried(file_path, lambda: _read(file_path))
        if isinstance(found, str):
            return ReadResult(error=found)
        return read_page(file_path, found.content, offset, limit, vision=_sees_images())

    async def agrep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        wanted = min(max_count or MAX_FOUND, MAX_FOUND)
        if path in (None, "/"):
            return await self._grep_everywhere(pattern, glob, wanted)
        if self._bundle is not None and self._bundle.has(path or "/"):
            return self._bundle.grep(pattern, path, glob, max_count=wanted)
        found = await _tried(path or "/", lambda: _searched(_place(path or "/"), pattern, glob, wanted))
        return GrepResult(error=found) if isinstance(found, str) else found

    async def _grep_everywhere(self, pattern: str, glob: str | None, wanted: int) -> GrepResult:
        """In every area; what cannot be searched is passed over, and said to be."""
        matches: list[GrepMatch] = []
        truncated = False
        if self._bundle is not None:
            matches += self._bundle.grep(pattern, self._bundle.root, glob, max_count=wanted).matches or []
        for place in self._roots():
            left = wanted - len(matches)
            if left <= 0:
                return GrepResult(matches=matches, truncated=True)
            found = await _tried(place.mount, partial(_searched, place, pattern, glob, left))
            if not isinstance(found, str):
                matches += found.matches or []
                truncated = truncated or found.truncated
        return GrepResult(matches=matches, truncated=truncated)

    async def aglob(self, pattern: str, path: str | None = None) -> GlobResult:
        if path in (None, "/"):
            return await self._glob_everywhere(pattern)
        if self._bundle is not None and self._bundle.has(path or "/"):
            return self._bundle.glob(pattern, path)
        found = await _tried(path or "/", lambda: _found(_place(path or "/"), relative_pattern(pattern)))
        return GlobResult(error=found) if isinstance(found, str) else found

    async def _glob_everywhere(self, pattern: str) -> GlobResult:
        matches: list[FileInfo] = []
        truncated = False
        if self._bundle is not None and (own := routed_pattern(pattern, self._bundle.root)) is not None:
            matches += self._bundle.glob(own, self._bundle.root).matches or []
        for place in self._roots():
            own = routed_pattern(pattern, place.mount)
            if own is None:
                continue
            found = await _tried(place.mount, partial(_found, place, own))
            if not isinstance(found, str):
                matches += found.matches or []
                truncated = truncated or found.truncated
        return GlobResult(matches=matches[:MAX_FOUND], truncated=truncated or len(matches) > MAX_FOUND)

    def _roots(self) -> list[Place]:
        turn = _turn()
        if turn is None:
            return []
        areas = [("", turn.files.workspace), (FOLDERS, turn.files.folders)]
        if turn.settings.memories:
            areas.insert(1, (MEMORIES, turn.files.memories))
        return [Place(area=area, mount=mount, inner="/") for mount, area in areas if area is not None]

    # -- writing ----------------------------------------------------------------------------------------------------

    async def awrite(self, file_path: str, content: str) -> WriteResult:
        if is_in(SKILLS, file_path):
            return WriteResult(error=refusal(file_path))
        found = await _tried(file_path, lambda: _written(file_path, content))
        return WriteResult(error=f"Error: {found}") if isinstance(found, str) else WriteResult(path=found.path)

    async def aedit(
        self,
        file_path: str,
        old_string: str,
        new_string: str,
        replace_all: bool = False,  # noqa: FBT001, FBT002 - DeepAgents' signature
    ) -> EditResult:
        if is_in(SKILLS, file_path):
            return EditResult(error=refusal(file_path))
        change = Replacement(old=old_string, new=new_string, everywhere=replace_all)
        found = await _tried(file_path, lambda: _edited(file_path, change))
        return EditResult(error=f"Error: {found}") if isinstance(found, str) else found

    async def aupload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [await _uploaded(path, content) for path, content in files]

    async def adownload_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        return [await _downloaded(path) for path in paths]


@dataclass(frozen=True, kw_only=True)
class Replacement:
    old: str
    new: str
    everywhere: bool


def _turn() -> TurnTools | None:
    """The turn whose graph runs here; None outside of one, where there are no files."""
    try:
        context = get_runtime(TurnTools).context
    except (RuntimeError, KeyError):
        return None
    return turn_in(context)


def keeps_offloads() -> bool:
    """Whether the turn has a place for what is too long for the conversation."""
    turn = _turn()
    return turn is not None and turn.files.offloads is not None


def _sees_images() -> bool:
    turn = _turn()
    return turn is not None and turn.sees_images


def _place(path: str) -> Place:
    """Raises `NoArea` where the turn has none for the path."""
    turn = _turn()
    area: FileArea | None = None
    mount, inner = "", path
    if turn is not None:
        area = turn.files.workspace
        for prefix, own in ((MEMORIES, turn.files.memories), (FOLDERS, turn.files.folders)):
            if is_in(prefix, path):
                mount, area, inner = prefix, own, path[len(prefix) :] or "/"
        if any(is_in(prefix, path) for prefix in OFFLOADS):
            area = turn.files.offloads
    if area is None:
        raise NoArea("no_such_file", f"there are no files at {path}")
    return Place(area=area, mount=mount, inner=decoded(inner) if mount == FOLDERS else inner)


async def _tried(path: str, work: Callable[[], Awaitable[T]]) -> T | str:
    """The result, or why there is none in words for a model."""
    try:
        return await work()
    except PizzabotError as error:
        reason = _REASONS.get(error.code)
        return as_told(path, error.detail) if reason is None else reason.format(path=path)


def as_told(path: str, detail: str) -> str:
    """What an area says of its own paths, with these as the agent is told them: `'/a'` in `/local` is `'/local/a'`."""
    mount = next((mount for mount in (MEMORIES, FOLDERS) if is_in(mount, path)), None)
    return detail if mount is None else re.sub(r"(?<![^\s(])([\"'])/", rf"\1{mount}/", detail)


_REASONS = {
    "no_such_file": "File '{path}' not found",
    "not_a_file": "'{path}' is a folder, or no file that can be read",
    "not_a_folder": "'{path}' is a file, not a folder",
    "read_only": "'{path}' is in a folder that may only be read: nothing was written",
    "not_allowed": "'{path}' is not allowed: it leaves the folder, or goes through a link",
    "no_such_folder": "'{path}' is in no folder that the person has granted; ls /local/ lists those",
    "memories_disabled": "Memory is disabled: nothing under /memories/ can be read or written",
}
"""By code. Every other has its own detail, which names what is over which limit."""


async def _read(path: str) -> FileContent:
    place = _place(path)
    try:
        return await place.area.read(place.inner, max_bytes=MAX_READ_BYTES)
    except NotFound:
        literal = path[len(place.mount) :] or "/"
        if literal == place.inner:
            raise
        return await place.area.read(literal, max_bytes=MAX_READ_BYTES)  # a name that holds what looks like escapes


def read_page(path: str, content: bytes, offset: int, limit: int, *, vision: bool) -> ReadResult:
    """A page of a text file; an image as a whole, for a model that sees; an error that says what else it is."""
    if is_text_name(path):
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = None
        if text is not None:
            return slice_read_response(FileData(content=text, encoding="utf-8"), offset, limit)
    kind = image_type(path)
    if kind is not None and vision:
        return ReadResult(file_data=FileData(content=base64.b64encode(content).decode(), encoding="base64"))
    what = kind or "not UTF-8 text"
    return ReadResult(error=f"'{path}' cannot be read as text: it is {what}, {len(content)} bytes")


async def _searched(place: Place, text: str, pattern: str | None, limit: int) -> GrepResult:
    own = None if pattern is None else relative_pattern(pattern)
    found = await place.area.search(text, place.inner, pattern=own, limit=limit)
    matches = [GrepMatch(path=place.told(item.path), line=item.line, text=item.text) for item in found.matches]
    return GrepResult(matches=matches, truncated=found.truncated)


async def _found(place: Place, pattern: str) -> GlobResult:
    found = await place.area.find(pattern, place.inner, limit=MAX_FOUND)
    return GlobResult(matches=[_info(place, entry) for entry in found.entries], truncated=found.truncated)


async def _written(path: str, content: str) -> WriteResult:
    place = _place(path)
    written = await place.area.write(place.inner, content.encode("utf-8", "replace"))
    return WriteResult(path=place.told(written.path))


async def _edited(path: str, change: Replacement) -> EditResult:
    place = _place(path)
    for attempt in range(1, EDIT_ATTEMPTS + 1):
        known = await place.area.read(place.inner, max_bytes=MAX_READ_BYTES)
        try:
            text = known.content.decode("utf-8")
        except UnicodeDecodeError:
            return EditResult(error=f"Error: '{path}' is not UTF-8 text and cannot be edited")
        replaced = perform_string_replacement(text, change.old, change.new, change.everywhere)
        if isinstance(replaced, str):
            return EditResult(error=replaced)
        new, count = replaced
        try:
            written = await place.area.write(place.inner, new.encode("utf-8", "replace"), base=known.tag)
        except Conflict:
            if attempt == EDIT_ATTEMPTS:
                raise
        else:
            return EditResult(path=place.told(written.path), occurrences=count)
    raise AssertionError("unreachable")


async def _uploaded(path: str, content: bytes) -> FileUploadResponse:
    async def write() -> None:
        place = _place(path)
        await place.area.write(place.inner, content)

    failed = await _tried(path, write)
    return FileUploadResponse(path=path, error=None if failed is None else "permission_denied")


async def _downloaded(path: str) -> FileDownloadResponse:
    found = await _tried(path, lambda: _read(path))
    if isinstance(found, str):
        return FileDownloadResponse(path=path, error="file_not_found")
    return FileDownloadResponse(path=path, content=found.content)


def relative_pattern(pattern: str) -> str:
    """A glob as areas take it: without a slash it is a name at any depth, a slash at its front anchors it."""
    return pattern.lstrip("/") if "/" in pattern else f"**/{pattern}"


def routed_pattern(pattern: str, mount: str) -> str | None:
    """What of a glob over everything concerns the area at `mount`; None where nothing of it can fit."""
    if not mount:
        return relative_pattern(pattern)
    bare, prefix = pattern.lstrip("/"), mount.lstrip("/")
    if bare.startswith(f"{prefix}/"):
        return bare[len(prefix) + 1 :]
    if "/" not in pattern or bare.startswith("**/"):
        return relative_pattern(pattern)
    return None


def _info(place: Place, entry: FileEntry) -> FileInfo:
    info = FileInfo(path=place.told(entry.path) + ("/" if entry.is_folder else ""), is_dir=entry.is_folder)
    if entry.size is not None:
        info["size"] = entry.size
    if entry.modified_at is not None:
        info["modified_at"] = datetime.fromtimestamp(entry.modified_at, UTC).isoformat()
    return info
