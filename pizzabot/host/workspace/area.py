"""`WorkspaceArea`: a thread's own files as an agent sees them, on one branch (`pizzabot_hookspecs.files.FileArea`)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import islice

from pizzabot.host.blobs.receiving import file_failures
from pizzabot.host.files.globs import Glob
from pizzabot.host.files.paths import checked_path, is_below, relative
from pizzabot.host.files.text_search import checked_text, matching_lines
from pizzabot.host.workspace.place import Place
from pizzabot.host.workspace.versions import Guard, Versions
from pizzabot_hookspecs import InvalidRequest, NotFound, TooLarge
from pizzabot_hookspecs.file_storage import FileVersion
from pizzabot_hookspecs.files import FileContent, FileEntry, Found, Matches, TextMatch

MAX_SEARCHED_FILE_BYTES = 10 * 1024 * 1024
"""Larger files of a workspace are not searched; the answer is `truncated` then."""
MAX_SEARCHED_BYTES = 256 * 1024 * 1024
"""Of the files that one search of a workspace reads."""
_FILES_AT_ONCE = 64
_BYTES_AT_ONCE = 4 * 1024 * 1024
_FEW = 500
"""Rows that are looked through on the loop; more in a thread."""


class WorkspaceArea:
    """The area of one turn, or of an idle thread. Every write is a version; nothing is kept between operations."""

    def __init__(self, versions: Versions, place: Place) -> None:
        self._versions = versions
        self._place = place

    async def list(self, path: str, /) -> Sequence[FileEntry]:
        rows = await self._below(path)
        if len(rows) == 1 and rows[0].path == path:
            raise InvalidRequest("not_a_folder", f"{path} is a file")
        if len(rows) <= _FEW:
            return _entries(rows, path)
        return await asyncio.to_thread(_entries, rows, path)

    async def read(self, path: str, /, *, max_bytes: int) -> FileContent:
        found = await self._versions.file(self._place, checked_path(path))
        if found.size > max_bytes:
            raise TooLarge("file_too_large", f"{path} has {found.size} bytes; {max_bytes} can be read at once")
        return FileContent(path=path, content=await self._versions.blobs.read(_digest(found)), tag=_digest(found))

    async def write(self, path: str, content: bytes, /, *, base: str | None = None, new: bool = False) -> FileEntry:
        return _entry(await self._versions.write(self._place, path, content, Guard(base=base, new=new)))

    async def find(self, pattern: str, path: str = "/", /, *, limit: int) -> Found:
        glob, rows = Glob(pattern), await self._below(path)

        def found() -> list[FileVersion]:
            fitting: list[FileVersion] = []
            for row in rows:
                if row.path != path and glob.matches(relative(row.path, path)):
                    fitting.append(row)
                    if len(fitting) > limit:
                        break
            return fitting

        fitting = found() if len(rows) <= _FEW else await asyncio.to_thread(found)
        return Found(entries=[_entry(row) for row in fitting[:limit]], truncated=len(fitting) > limit)

    async def search(self, text: str, path: str = "/", /, *, pattern: str | None = None, limit: int) -> Matches:
        sought = checked_text(text)
        glob = None if pattern is None else Glob(pattern)
        wanted = (row for row in await self._below(path) if glob is None or _fits(glob, row, path))
        matches: list[TextMatch] = []
        left_out, size = False, 0
        some: list[FileVersion] = []
        for row in wanted:
            if row.size > MAX_SEARCHED_FILE_BYTES or size + row.size > MAX_SEARCHED_BYTES:
                left_out = True
                continue
            size += row.size
            some.append(row)
            if len(some) >= _FILES_AT_ONCE or sum(one.size for one in some) > _BYTES_AT_ONCE:
                matches += await self._search_some(some, sought, limit + 1 - len(matches))
                some = []
                if len(matches) > limit:
                    break
        matches += await self._search_some(some, sought, limit + 1 - len(matches))
        return Matches(matches=matches[:limit], truncated=left_out or len(matches) > limit)

    async def _search_some(self, rows: Sequence[FileVersion], sought: bytes, most: int) -> Sequence[TextMatch]:
        """The first lines of some files, read one after another in a thread."""
        if not rows or most <= 0:
            return ()
        blobs = self._versions.blobs

        def found() -> list[TextMatch]:
            matches: list[TextMatch] = []
            for row in rows:
                with blobs.opened(_digest(row)) as file:
                    content = file.read()
                matches += islice(matching_lines(row.path, content, sought), most - len(matches))
                if len(matches) >= most:
                    break
            return matches

        with file_failures():
            return await asyncio.to_thread(found)

    async def _below(self, path: str) -> Sequence[FileVersion]:
        """The files in a folder and its folders, or the file itself. Raises `NotFound` `no_such_file`."""
        checked_path(path)
        rows = await self._versions.visible(self._place)
        if path == "/":
            return rows
        few = len(rows) <= _FEW
        below = _those_below(rows, path) if few else await asyncio.to_thread(_those_below, rows, path)
        if not below:
            raise NotFound("no_such_file", f"there is no file or folder {path}")
        return below


def _those_below(rows: Iterable[FileVersion], path: str) -> list[FileVersion]:
    return [row for row in rows if is_below(row.path, path)]


def _entries(rows: Iterable[FileVersion], folder: str) -> list[FileEntry]:
    """What stands directly in a folder, by name: folders are there because of the files in them."""
    entries: dict[str, FileEntry] = {}
    for row in rows:
        inner = relative(row.path, folder)
        name, slash, _ = inner.partition("/")
        if not slash:
            entries[name] = _entry(row)
        elif name not in entries:
            entries[name] = FileEntry(path=row.path[: len(row.path) - len(inner) + len(name)], is_folder=True)
    return [entries[name] for name in sorted(entries)]


def _entry(row: FileVersion) -> FileEntry:
    return FileEntry(path=row.path, size=row.size, modified_at=row.created_at)


def _digest(row: FileVersion) -> str:
    assert row.sha256 is not None  # noqa: S101 - visible rows have content
    return row.sha256


def _fits(glob: Glob, row: FileVersion, path: str) -> bool:
    """Whether a file below `path`, or `path` itself, is one of those that the glob means."""
    return row.path == path or glob.matches(relative(row.path, path))
