"""`MemoryArea`: the documents of memory as an area of files, for as long as memory is on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from pizzabot.host.memories.documents import check_document
from pizzabot_hookspecs import Caller, NotPermitted
from pizzabot_hookspecs.files import FileArea, FileContent, FileEntry, Found, Matches

Enabled = Callable[[Caller], Awaitable[bool]]
"""Whether the caller has memory switched on, now."""
Documents = Callable[[Caller], Awaitable[FileArea]]
"""The caller's documents, whether memory is on or not."""


class MemoryArea:
    """A `pizzabot_hookspecs.files.FileArea`. The switch is read before each operation (spec/05 §6), so that it counts
    in turns that are under way: off, everything is `NotPermitted` `memories_disabled`."""

    def __init__(self, caller: Caller, *, documents: Documents, enabled: Enabled) -> None:
        self._caller = caller
        self._documents = documents
        self._enabled = enabled

    async def list(self, path: str, /) -> Sequence[FileEntry]:
        return await (await self._open()).list(path)

    async def read(self, path: str, /, *, max_bytes: int) -> FileContent:
        return await (await self._open()).read(path, max_bytes=max_bytes)

    async def write(self, path: str, content: bytes, /, *, base: str | None = None, new: bool = False) -> FileEntry:
        documents = await self._open()
        check_document(path, content)
        return await documents.write(path, content, base=base, new=new)

    async def find(self, pattern: str, path: str = "/", /, *, limit: int) -> Found:
        return await (await self._open()).find(pattern, path, limit=limit)

    async def search(self, text: str, path: str = "/", /, *, pattern: str | None = None, limit: int) -> Matches:
        return await (await self._open()).search(text, path, pattern=pattern, limit=limit)

    async def _open(self) -> FileArea:
        if await self._enabled(self._caller):
            return await self._documents(self._caller)
        raise NotPermitted("memories_disabled", "memory is disabled; the person can enable it in the settings")
