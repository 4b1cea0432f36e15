"""What a runtime puts aside for a thread: a folder of the data root each, made with the first write into it."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from pizzabot.host.blobs.incoming import private_folder
from pizzabot.host.blobs.receiving import file_failures
from pizzabot.host.files.descriptors import Root
from pizzabot.host.files.disk_area import DiskArea
from pizzabot.host.files.disk_writing import Modes
from pizzabot.host.files.pool import FilePool
from pizzabot_hookspecs import NotFound
from pizzabot_hookspecs.files import FileArea, FileContent, FileEntry, Found, Matches

_PRIVATE = Modes(file=0o600, folder=0o700)
_LONGEST = 200
"""Characters of an id that names its folder itself; with the digest of a longer one no file system has trouble."""


class Offloads:
    def __init__(self, root: Path, pool: FilePool) -> None:
        self._root = root.resolve()
        self._pool = pool

    def area(self, thread_id: str) -> FileArea:
        root = self._folder(thread_id)
        return _OffloadArea(root, DiskArea(Root(str(root)), self._pool, modes=_PRIVATE))

    async def remove(self, thread_id: str) -> None:
        with file_failures():
            await asyncio.to_thread(_remove, self._folder(thread_id))

    async def copy(self, thread_id: str, target: str) -> None:
        """What `target` has afterwards is a copy; nothing where there was nothing."""
        with file_failures():
            await asyncio.to_thread(_copy, self._folder(thread_id), self._folder(target))

    def _folder(self, thread_id: str) -> Path:
        """Ids differ in case, and the folders of some file systems do not."""
        plain = thread_id == thread_id.lower() and len(thread_id) <= _LONGEST and not thread_id.startswith((".", "~"))
        return self._root / (thread_id if plain else f"~{hashlib.sha256(thread_id.encode()).hexdigest()}")


class _OffloadArea:
    """A `FileArea` that is empty until something is written."""

    def __init__(self, root: Path, area: DiskArea) -> None:
        self._root = root
        self._area = area

    async def list(self, path: str, /) -> Sequence[FileEntry]:
        if not await self._is_there():
            return ()
        return await self._area.list(path)

    async def read(self, path: str, /, *, max_bytes: int) -> FileContent:
        if not await self._is_there():
            raise NotFound("no_such_file", f"there is no file {path}")
        return await self._area.read(path, max_bytes=max_bytes)

    async def write(self, path: str, content: bytes, /, *, base: str | None = None, new: bool = False) -> FileEntry:
        with file_failures():
            await asyncio.to_thread(private_folder, self._root)
        return await self._area.write(path, content, base=base, new=new)

    async def find(self, pattern: str, path: str = "/", /, *, limit: int) -> Found:
        return await self._area.find(pattern, path, limit=limit) if await self._is_there() else Found()

    async def search(self, text: str, path: str = "/", /, *, pattern: str | None = None, limit: int) -> Matches:
        if not await self._is_there():
            return Matches()
        return await self._area.search(text, path, pattern=pattern, limit=limit)

    async def _is_there(self) -> bool:
        return await asyncio.to_thread(self._root.is_dir)


def _remove(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)


def _copy(source: Path, target: Path) -> None:
    _remove(target)
    if source.is_dir():
        shutil.copytree(source, target)
