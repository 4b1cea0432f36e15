"""ZIP archives in and out, within bounds: every cap and every code of spec/04 §5. Nothing here touches the disk."""

from __future__ import annotations

import io
import lzma
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from pizzabot.host.skills.bundle_paths import clash
from pizzabot_hookspecs import InvalidRequest, TooLarge
from pizzabot_hookspecs.support.paths import MAX_PATH_BYTES, MAX_SEGMENT_BYTES

_CHUNK = 64 * 1024
_END = b"PK\x05\x06"
_END_SIZE = 22
_MAX_COMMENT = 65535
_ENTRY_BYTES = 46 + 2 * MAX_PATH_BYTES
"""What one line of an archive's directory takes at most, with the longest name and as much beside it."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_BROKEN = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, EOFError, NotImplementedError, RuntimeError)
_CORRUPT = (*_BROKEN, ValueError, struct.error, IndexError, OverflowError)


@dataclass(frozen=True, kw_only=True)
class ArchiveCaps:
    archive_bytes: int
    content_bytes: int
    entries: int


MAX_ARCHIVE_BYTES = 20 * 1024 * 1024
MAX_ARCHIVE_CONTENT_BYTES = 50 * 1024 * 1024
MAX_ARCHIVE_ENTRIES = 256
SKILL_CAPS = ArchiveCaps(
    archive_bytes=MAX_ARCHIVE_BYTES, content_bytes=MAX_ARCHIVE_CONTENT_BYTES, entries=MAX_ARCHIVE_ENTRIES
)


def read_archive(archive: bytes, caps: ArchiveCaps) -> dict[str, bytes]:
    """Its files by path, in its order. For a thread: it may take a while.

    Raises `InvalidRequest` `empty_archive`, `too_many_files`, `unsafe_path`, `unsupported_entry`, `duplicate_entry`,
    `invalid_archive`; `TooLarge` `archive_too_large`.
    """
    if not archive:
        raise InvalidRequest("empty_archive", "the archive is empty")
    if len(archive) > caps.archive_bytes:
        raise TooLarge("archive_too_large", f"the archive has {len(archive)} bytes; at most {caps.archive_bytes}")
    _check_directory(archive, caps)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return _read_entries(opened, caps)
    except _CORRUPT as error:
        raise InvalidRequest("invalid_archive", f"the archive is damaged or is no ZIP: {error}") from error


def _check_directory(archive: bytes, caps: ArchiveCaps) -> None:
    """Before every entry is read: a directory of half a million would take seconds."""
    at = archive.rfind(_END, max(0, len(archive) - _END_SIZE - _MAX_COMMENT))
    if at < 0 or at + _END_SIZE > len(archive):
        return
    entries, size = struct.unpack_from("<HI", archive, at + 10)
    if entries > caps.entries or size > caps.entries * _ENTRY_BYTES:
        raise _too_many(caps)


def _read_entries(opened: zipfile.ZipFile, caps: ArchiveCaps) -> dict[str, bytes]:
    entries = opened.infolist()
    if len(entries) > caps.entries:
        raise _too_many(caps)
    files: dict[str, bytes] = {}
    room = caps.content_bytes
    for entry in entries:
        path = entry.orig_filename
        _check_path(path.removesuffix("/"))
        _check_kind(entry, path)
        if entry.is_dir() or path.endswith("/") or _is_litter(path):
            continue
        if path in files:
            raise _duplicate(path)
        files[path] = _read_entry(opened, entry, room, caps)
        room -= len(files[path])
    clashing = clash(files)
    if clashing is not None:
        raise _duplicate(clashing)
    if not files:
        raise InvalidRequest("empty_archive", "the archive has no files in it")
    return files


def _read_entry(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, room: int, caps: ArchiveCaps) -> bytes:
    pieces: list[bytes] = []
    size = 0
    with opened.open(entry) as stream:
        while piece := stream.read(_CHUNK):
            size += len(piece)
            if size > room:
                detail = f"the archive holds more than {caps.content_bytes} bytes when it is unpacked"
                raise TooLarge("archive_too_large", detail)
            if size > entry.file_size:
                raise InvalidRequest("invalid_archive", f"{entry.filename[:80]!r} is larger than the archive says")
            pieces.append(piece)
    return b"".join(pieces)


def _check_path(path: str) -> None:
    segments = path.split("/")
    unsafe = (
        not path
        or "\\" in path
        or any(ord(one) < 32 or ord(one) == 127 for one in path)
        or (len(path) > 1 and path[1] == ":" and path[0].isalpha())
        or any(segment in {"", ".", ".."} for segment in segments)
        or any(len(segment.encode(errors="replace")) > MAX_SEGMENT_BYTES for segment in segments)
        or len(path.encode(errors="replace")) > MAX_PATH_BYTES
        or any("\ud800" <= one <= "\udfff" for one in path)
    )
    if unsafe:
        raise InvalidRequest("unsafe_path", f"the archive has an entry {path[:80]!r}, which is no path inside a folder")


def _check_kind(entry: zipfile.ZipInfo, path: str) -> None:
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        what = "a link" if kind == stat.S_IFLNK else "a special file"
        raise InvalidRequest("unsupported_entry", f"{path[:80]!r} in the archive is {what}; only files are taken")
    if entry.flag_bits & 1:
        raise InvalidRequest("unsupported_entry", f"{path[:80]!r} in the archive is encrypted")


def _is_litter(path: str) -> bool:
    return path.startswith("__MACOSX/") or PurePosixPath(path).name == ".DS_Store"


def _too_many(caps: ArchiveCaps) -> InvalidRequest:
    return InvalidRequest("too_many_files", f"the archive has more than {caps.entries} entries")


def _duplicate(path: str) -> InvalidRequest:
    return InvalidRequest("duplicate_entry", f"the archive has {path[:80]!r} twice, or as a file and as a folder")


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """A ZIP of the files; the same files make the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            entry = zipfile.ZipInfo(path, date_time=_EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content)
    return packed.getvalue()
