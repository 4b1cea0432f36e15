"""A file of the data root in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import BinaryIO

from pizzabot.host.blobs.receiving import file_failures
from pizzabot_hookspecs import Unavailable

CHUNK_BYTES = 256 * 1024
"""Bytes that are read at once."""


async def pieces_of(path: Path, start: int, end: int) -> AsyncGenerator[bytes, None]:
    """The bytes from `start` up to `end`. A file that is removed meanwhile is read to its end all the same.

    Raises `Unavailable` `file_failed`, also where the file is shorter.
    """
    with file_failures():
        file: BinaryIO = await asyncio.to_thread(path.open, "rb")
        try:
            while start < end:
                piece = await asyncio.to_thread(_read, file, start, min(CHUNK_BYTES, end - start))
                if not piece:
                    raise Unavailable("file_failed", "the file is shorter than its row says")
                start += len(piece)
                yield piece
        finally:
            file.close()


def _read(file: BinaryIO, start: int, size: int) -> bytes:
    file.seek(start)
    return file.read(size)
