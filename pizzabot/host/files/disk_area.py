"""`DiskArea`: a folder of the disk as an area of files. Nothing outside of it is read or written, whatever links do.

Links of any kind, pipes, sockets and devices are refused and not listed. Names that no path can have (not UTF-8, with a
backslash or a control character) are not listed; a find or a search that passed over one is `truncated`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from pizzabot.host.files.descriptors import Root
from pizzabot.host.files.disk_reading import MAX_LISTED, list_folder, read_file
from pizzabot.host.files.disk_searching import Accepts, anything, find_files, search_files
from pizzabot.host.files.disk_writing import Modes, write_file
from pizzabot.host.files.globs import Glob
from pizzabot.host.files.paths import checked_path
from pizzabot.host.files.pool import FilePool
from pizzabot.host.files.refusals import told
from pizzabot.host.files.text_search import checked_text
from pizzabot.host.files.walking import Budget
from pizzabot_hookspecs.files import FileContent, FileEntry, Found, Matches, TextMatch

_Item = TypeVar("_Item")


class DiskArea:
    """A `pizzabot_hookspecs.files.FileArea`. `root.host` is the canonical path of the folder as it was when it was
    named; where a link is in it now, everything is refused. Paths come in below the root and go out, in answers and in
    errors, as `root.path` and what is below it.

    A read of a path that is not there finds the only entry of the same NFKC form at each level; a write takes the path
    as it is (spec/05 §6). Whether writing is allowed is for whoever holds the area to say.
    """

    def __init__(self, root: Root, pool: FilePool, *, modes: Modes | None = None) -> None:
        self._root = root
        self._pool = pool
        self._modes = modes or Modes()

    async def list(self, path: str, /) -> Sequence[FileEntry]:
        return await self._run(path, list_folder, self._root, checked_path(path), MAX_LISTED)

    async def read(self, path: str, /, *, max_bytes: int) -> FileContent:
        return await self._run(path, read_file, self._root, checked_path(path), max_bytes)

    async def write(self, path: str, content: bytes, /, *, base: str | None = None, new: bool = False) -> FileEntry:
        where, modes = checked_path(path), self._modes

        def write() -> os.stat_result:
            with self._pool.lock(self._root.host):
                return write_file(self._root, where, content, base=base, new=new, modes=modes)

        found = await self._run(path, write)
        return FileEntry(path=self._root.called(path), size=found.st_size, modified_at=found.st_mtime)

    async def find(self, pattern: str, path: str = "/", /, *, limit: int) -> Found:
        budget = Budget()
        entries = await self.find_where(Glob(pattern).matches, path, limit=limit, budget=budget)
        return Found(entries=entries, truncated=budget.truncated)

    async def search(self, text: str, path: str = "/", /, *, pattern: str | None = None, limit: int) -> Matches:
        budget = Budget()
        accepts = anything if pattern is None else Glob(pattern).matches
        matches = await self.search_where(text, accepts, path, limit=limit, budget=budget)
        return Matches(matches=matches, truncated=budget.truncated)

    async def find_where(self, accepts: Accepts, path: str, *, limit: int, budget: Budget) -> Sequence[FileEntry]:
        """As `find`, within a budget that several areas may share: it is `truncated` afterwards where there is more."""
        return await self._walking(path, budget, find_files, self._root, checked_path(path), accepts, limit, budget)

    async def search_where(
        self, text: str, accepts: Accepts, path: str, *, limit: int, budget: Budget
    ) -> Sequence[TextMatch]:
        """As `search`, within a budget that several areas may share."""
        sought, where = checked_text(text), checked_path(path)
        return await self._walking(path, budget, search_files, self._root, where, sought, accepts, limit, budget)

    async def _walking(self, path: str, budget: Budget, work: Callable[..., _Item], *arguments: object) -> _Item:
        try:
            return await self._pool.walk(self._telling(path, work), *arguments)
        except asyncio.CancelledError:
            budget.stop()
            raise

    async def _run(self, path: str, work: Callable[..., _Item], *arguments: object) -> _Item:
        return await self._pool.run(self._telling(path, work), *arguments)

    def _telling(self, path: str, work: Callable[..., _Item]) -> Callable[..., _Item]:
        def act(*arguments: object) -> _Item:
            with told(self._root.called(path)):
                return work(*arguments)

        return act
