"""Bytes as they arrive into a file that is being written, with a limit; whatever goes wrong leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pizzabot.host.blobs.incoming import PIECE_BYTES, Incoming
from pizzabot_hookspecs import TooLarge, Unavailable


@asynccontextmanager
async def received(
    folder: Path, content: AsyncIterator[bytes], *, mark: str, max_bytes: int, too_large: str
) -> AsyncIterator[tuple[Incoming, str]]:
    """The file with its SHA-256, all of it on the disk under a name of its own; without it where nobody kept it.

    At most `PIECE_BYTES` and one piece of `content` are in memory. Raises `TooLarge` with the code `too_large` as soon
    as more than `max_bytes` have come; `Unavailable` `file_failed`.
    """
    with file_failures():
        incoming = await _begun(folder, mark)
    try:
        with file_failures():
            async for pieces in _batched(content, max_bytes, too_large):
                await asyncio.to_thread(incoming.write, pieces)
            digest = await asyncio.to_thread(incoming.sync)
        yield incoming, digest
    finally:
        await asyncio.shield(asyncio.to_thread(incoming.drop))


async def _begun(folder: Path, mark: str) -> Incoming:
    """Nothing stays of it where the caller is cancelled meanwhile."""
    making = asyncio.create_task(asyncio.to_thread(Incoming, folder, mark))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_dropped)
        raise


def _dropped(made: asyncio.Task[Incoming]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().drop()


async def _batched(content: AsyncIterator[bytes], max_bytes: int, too_large: str) -> AsyncIterator[list[bytes]]:
    pieces: list[bytes] = []
    held = size = 0
    async for piece in content:
        size += len(piece)
        if size > max_bytes:
            raise TooLarge(too_large, f"the file is larger than {max_bytes} bytes")
        pieces.append(piece)
        held += len(piece)
        if held >= PIECE_BYTES:
            yield pieces
            pieces, held = [], 0
    if pieces:
        yield pieces


class file_failures:  # noqa: N801 - reads as a statement
    """Errors of the system as `Unavailable` `file_failed`: with its reason, without a path of the machine."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            raise Unavailable("file_failed", f"the file could not be used: {error.strerror or error}") from error
