"""A ZIP of pinned versions, written to a file without a name: nothing of it stays behind."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import IO

from pizzabot.host.blobs import BlobFolder
from pizzabot.host.blobs.receiving import file_failures
from pizzabot.host.files.paths import checked_path
from pizzabot.host.workspace.usage import MAX_FILE_BYTES
from pizzabot_hookspecs import InvalidRequest, TooLarge
from pizzabot_hookspecs.file_storage import FileVersion
from pizzabot_hookspecs.host_files import StoredFile

MAX_ARCHIVED_FILES = 50
"""Of one archive."""
MAX_ARCHIVED_BYTES = 100 * 1024 * 1024
"""Of the files of one archive, before they are compressed."""
MAX_ARCHIVE_SECONDS = 60.0
"""For writing an archive."""
_PIECE = 1024 * 1024
_CHUNK = 256 * 1024
_FIRST_YEAR = 1980
"""ZIP knows no earlier one."""


class _Held:
    """Closes the file also where nobody ever reads it: a client that asks for a range beyond its end, for example."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file

    def __del__(self) -> None:
        self.file.close()


async def make_archive(blobs: BlobFolder, rows: Sequence[FileVersion], *, asked: int) -> StoredFile:
    """`asked` versions were asked for. Raises `TooLarge` `archive_too_large`, `InvalidRequest` `invalid_argument`."""
    check_archive(rows, asked)
    file: IO[bytes] = await asyncio.to_thread(tempfile.TemporaryFile)
    try:
        with file_failures():
            tag, size = await asyncio.to_thread(_write, file, blobs, rows, time.monotonic() + MAX_ARCHIVE_SECONDS)
    except BaseException:
        file.close()
        raise

    held = _Held(file)

    async def opened(start: int, end: int, /) -> AsyncGenerator[bytes, None]:
        with held.file as source:
            await asyncio.to_thread(source.seek, start)
            while start < end and (piece := await asyncio.to_thread(source.read, min(_CHUNK, end - start))):
                start += len(piece)
                yield piece

    return StoredFile(name="files.zip", media_type="application/zip", size=size, tag=tag, inline=False, opened=opened)


def check_archive(rows: Sequence[FileVersion], asked: int) -> None:
    if not asked:
        raise _wrong("must name at least one file")
    if asked > MAX_ARCHIVED_FILES:
        raise TooLarge("archive_too_large", f"an archive holds at most {MAX_ARCHIVED_FILES} files, not {asked}")
    if any(row.size > MAX_FILE_BYTES for row in rows) or sum(row.size for row in rows) > MAX_ARCHIVED_BYTES:
        raise TooLarge("archive_too_large", f"an archive holds at most {MAX_ARCHIVED_BYTES} bytes")
    twice = [path for path, times in Counter(row.path for row in rows).items() if times > 1]
    if twice:
        raise _wrong(f"names {twice[0]} twice; an archive holds one version of a path")


def _write(file: IO[bytes], blobs: BlobFolder, rows: Sequence[FileVersion], deadline: float) -> tuple[str, int]:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for row in rows:
            entry = zipfile.ZipInfo(_entry_name(row), _date(row.created_at))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o100644 << 16
            with blobs.opened(str(row.sha256)) as source, archive.open(entry, "w") as target:
                while piece := source.read(_PIECE):
                    if time.monotonic() > deadline:
                        raise TooLarge("archive_too_large", f"the archive took longer than {MAX_ARCHIVE_SECONDS:g} s")
                    target.write(piece)
    size = file.tell()
    file.seek(0)
    digest = hashlib.sha256()
    while piece := file.read(_PIECE):
        digest.update(piece)
    return digest.hexdigest(), size


def _entry_name(row: FileVersion) -> str:
    """Relative, and checked once more: what a row says is not taken for granted where it becomes a path again."""
    return checked_path(row.path)[1:]


def _date(seconds: float) -> tuple[int, int, int, int, int, int]:
    at = datetime.fromtimestamp(seconds, UTC)
    return (max(at.year, _FIRST_YEAR), at.month, at.day, at.hour, at.minute, at.second)


def _wrong(problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_argument", f"items {problem}", fields={"items": problem})
