"""`BlobFolder`: content by its SHA-256, each once, in two levels of folders. Rows say what it is."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pizzabot.host.blobs.incoming import Incoming, private_folder
from pizzabot.host.blobs.pins import Pins
from pizzabot.host.blobs.receiving import file_failures, received
from pizzabot.host.blobs.sending import pieces_of

_NEW = "new"


@dataclass(frozen=True, kw_only=True, slots=True)
class Blob:
    sha256: str
    size: int


class BlobFolder:
    """`add` and `add_bytes` are context managers: what they give is not collected inside, where its row is written.

    Everything that blocks is done in threads. Files are 0600, folders 0700. Raises `Unavailable` `file_failed`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._pins = Pins()
        self._mark = f"{secrets.token_hex(8)}-"  # of what this process writes
        self._prepared = False

    @asynccontextmanager
    async def add(
        self, content: AsyncIterator[bytes], /, *, max_bytes: int, too_large: str = "file_too_large"
    ) -> AsyncIterator[Blob]:
        """What arrives, kept. Raises `TooLarge` with the code `too_large` beyond `max_bytes`."""
        await self._prepare()
        async with self._received(content, max_bytes, too_large) as (incoming, digest), self.pinned(digest):
            with file_failures():
                await asyncio.to_thread(self._keep, incoming, digest)
            yield Blob(sha256=digest, size=incoming.size)

    @asynccontextmanager
    async def add_bytes(self, content: bytes, /) -> AsyncIterator[Blob]:
        await self._prepare()
        digest = await digest_of(content)
        async with self.pinned(digest):
            with file_failures():
                await asyncio.to_thread(self._write, content, digest)
            yield Blob(sha256=digest, size=len(content))

    @asynccontextmanager
    async def pinned(self, digest: str, /) -> AsyncIterator[None]:
        """Not collected inside."""
        self._pins.pin(digest)
        try:
            yield
        finally:
            self._pins.let_go(digest)

    async def read(self, digest: str, /) -> bytes:
        with file_failures():
            return await asyncio.to_thread(self._path(digest).read_bytes)

    def opened(self, digest: str, /) -> BinaryIO:
        """The content as an open file; blocks, for threads."""
        return self._path(digest).open("rb")

    def chunks(self, digest: str, start: int, end: int, /) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to `end` in pieces. What is collected meanwhile is read to its end all the same."""
        return pieces_of(self._path(digest), start, end)

    # -- what is there, for a collection: these block -----------------------------------------------------------------

    @property
    def pins(self) -> Pins:
        return self._pins

    def folders(self) -> list[Path]:
        """Those of the first level."""
        return sorted(one for one in self._root.glob("[0-9a-f][0-9a-f]") if one.is_dir())

    def digests(self, folder: Path) -> Iterator[str]:
        """What lies below a folder of the first level."""
        for inner in sorted(folder.iterdir()):
            if inner.is_dir():
                yield from (path.name for path in sorted(inner.iterdir()))

    def remove(self, digest: str) -> bool:
        """Whether it is gone; not where it is pinned."""
        return self._pins.unless_pinned(digest, lambda: self._path(digest).unlink(missing_ok=True))

    def drop_leftovers(self) -> int:
        """Remove files that a dead process had not written to their end; how many there were."""
        found = [path for path in (self._root / _NEW).glob("*") if not path.name.startswith(self._mark)]
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)

    def _received(
        self, content: AsyncIterator[bytes], max_bytes: int, too_large: str
    ) -> AbstractAsyncContextManager[tuple[Incoming, str]]:
        return received(self._root / _NEW, content, mark=self._mark, max_bytes=max_bytes, too_large=too_large)

    def _path(self, digest: str) -> Path:
        return self._root / digest[:2] / digest[2:4] / digest

    async def _prepare(self) -> None:
        if not self._prepared:
            with file_failures():
                await asyncio.to_thread(private_folder, self._root / _NEW)
            self._prepared = True

    def _keep(self, incoming: Incoming, digest: str) -> None:
        path = self._path(digest)
        if path.exists():
            return
        private_folder(path.parent)
        incoming.keep(path)

    def _write(self, content: bytes, digest: str) -> None:
        if self._path(digest).exists():
            return
        incoming = Incoming(self._root / _NEW, self._mark)
        try:
            incoming.write([content])
            incoming.sync()
            self._keep(incoming, digest)
        finally:
            incoming.drop()


_HASHED_ON_THE_LOOP = 256 * 1024


async def digest_of(content: bytes) -> str:
    """SHA-256 in hex; of much in a thread."""
    if len(content) <= _HASHED_ON_THE_LOOP:
        return hashlib.sha256(content).hexdigest()
    return await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
