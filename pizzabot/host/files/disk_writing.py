"""Writing a file of an area on the disk: whole or not at all, and never through a link."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256

from pizzabot.host.files.descriptors import (
    Place,
    Root,
    check_regular,
    enter,
    listable,
    open_root,
    opened_file,
    opened_folder,
    read_up_to,
    status,
)
from pizzabot.host.files.paths import joined, segments, shown
from pizzabot.host.files.refusals import failed, not_a_file, too_large
from pizzabot.host.files.walking import temporary_name
from pizzabot_hookspecs import Conflict

MAX_WRITTEN = 50 * 1024 * 1024
"""Bytes of a file that is written."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


@dataclass(frozen=True, slots=True)
class Modes:
    """What new files and folders may be, before the umask."""

    file: int = 0o666
    folder: int = 0o777


def tag_of(content: bytes) -> str:
    """The version of a content: its SHA-256."""
    return sha256(content).hexdigest()


def write_file(root: Root, path: str, content: bytes, *, base: str | None, new: bool, modes: Modes) -> os.stat_result:
    """Put `content` at `path` (checked) below the root; the file's status afterwards. Errors as `FileArea.write`.

    Whoever calls it holds the lock of `root`: the check of `base` and the write are not one step for the system.
    """
    if len(content) > MAX_WRITTEN:
        raise too_large(root.called(path), len(content), MAX_WRITTEN)
    names = segments(path)
    if not names:
        raise not_a_file(root.called(path))
    with _made_folder(root, names[:-1], modes) as place:
        mode = _existing_mode(place, names[-1])
        unchanged = _check_version(place, names[-1], content, base=base, new=new, exists=mode is not None)
        if not unchanged:
            _replace(place, names[-1], content, mode, modes)
        return status(place, names[-1])


def _existing_mode(place: Place, name: str) -> int | None:
    """The permissions of a regular file that stands there, None where nothing does."""
    try:
        mode = status(place, name).st_mode
    except FileNotFoundError:
        return None
    path = joined(place.path, name)
    check_regular(mode, path)
    if not mode & 0o222:
        raise failed(path, "the file is marked read-only on the disk")
    return stat.S_IMODE(mode) & 0o777


def _check_version(place: Place, name: str, content: bytes, *, base: str | None, new: bool, exists: bool) -> bool:
    """Whether the file is as it should become already. Raises `Conflict` `file_changed`, `file_exists`."""
    if base is None and not new:
        return False
    path = joined(place.path, name)
    current = None
    if exists:
        with opened_file(place, name) as fd:
            current = read_up_to(fd, MAX_WRITTEN)
    if new and current is not None and current != content:
        raise Conflict(
            "file_exists", f"there is a file {shown(path)} already; read it and change it, or take another name"
        )
    if base is not None and (current is None or tag_of(current) != base):
        raise Conflict("file_changed", f"{shown(path)} was changed since it was read; read it again")
    return current == content


def _replace(place: Place, name: str, content: bytes, mode: int | None, modes: Modes) -> None:
    temporary = temporary_name(secrets.token_hex(8))
    fd = os.open(temporary, _NEW_FILE, modes.file, dir_fd=place.fd)
    try:
        with os.fdopen(fd, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=place.fd)
        raise
    _sync(place)


def _sync(place: Place) -> None:
    """The new name outlives a crash. Some file systems cannot promise it, and an unreadable folder cannot be asked."""
    with suppress(OSError):
        fd = listable(place)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


@contextmanager
def _made_folder(root: Root, names: Sequence[str], modes: Modes) -> Iterator[Place]:
    """The folder, made where it is missing; what was made is taken away again when the write fails."""
    made: list[int] = []
    place = open_root(root)
    try:
        for index, name in enumerate(names):
            inner = _entered_or_made(place, name, modes, made, index)
            os.close(place.fd)
            place = inner
        yield place
    except BaseException:
        for index in reversed(made):
            _remove_empty(root, names, index)
        raise
    finally:
        os.close(place.fd)


def _entered_or_made(place: Place, name: str, modes: Modes, made: list[int], index: int) -> Place:
    with suppress(FileNotFoundError):
        return enter(place, name)
    with suppress(FileExistsError):
        os.mkdir(name, modes.folder, dir_fd=place.fd)
        made.append(index)
    return enter(place, name)


def _remove_empty(root: Root, names: Sequence[str], index: int) -> None:
    with suppress(Exception), opened_folder(root, names[:index]) as parent:
        os.rmdir(names[index], dir_fd=parent.fd)
