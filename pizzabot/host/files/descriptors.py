"""Folders and files opened one name after another, each relative to the descriptor before it.

A path is never handed to the system as a whole: between a check and an open, any folder of it could become a link. A
descriptor stays what it was opened on, and no open follows a link.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

from pizzabot.host.files.paths import joined
from pizzabot.host.files.refusals import is_a_link, not_a_file, not_a_folder

MAX_NAMES_COMPARED = 10_000
"""Names of a folder that are looked at for one that is written in another normal form."""

# O_PATH: a folder on the way need not be readable, only passable. macOS has no such flag.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW
_READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
# A pipe or a device must not make an open wait, or become the terminal of the process.
_READ_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NO_LINK_ANYWHERE = getattr(os, "O_NOFOLLOW_ANY", 0)


@dataclass(frozen=True, slots=True)
class Root:
    """Where an area lies: `host` is absolute and was canonical when it was named; `path` is what the area calls it."""

    host: str
    path: str = "/"

    def called(self, path: str) -> str:
        """A path below the root, as the area calls it."""
        return path if self.path == "/" else self.path + path.removesuffix("/")


@dataclass(frozen=True, slots=True)
class Place:
    """An open folder: `path` is what the area calls it, with names as they are on the disk."""

    fd: int
    path: str


def open_root(root: Root) -> Place:
    """Raises `NotPermitted` `not_allowed` where a link is in the root's path by now."""
    if _NO_LINK_ANYWHERE:
        # The system refuses both flags together, and this one says more.
        flags = (_PASS & ~os.O_NOFOLLOW) | _NO_LINK_ANYWHERE
        return Place(_open_folder(root.host, None, root.path, flags=flags), root.path)
    fd = os.open("/", _PASS)
    for name in filter(None, root.host.split("/")):
        try:
            inner = _open_folder(name, fd, root.path)
        finally:
            os.close(fd)
        fd = inner
    return Place(fd, root.path)


@contextmanager
def opened_folder(root: Root, names: Sequence[str], *, equivalent: bool = False) -> Iterator[Place]:
    """The folder of these names below `root`. `equivalent`: a name that is missing may be the only one there of the
    same NFKC form.

    Raises `OSError`; `NotPermitted` `not_allowed`; `InvalidRequest` `not_a_folder`. Paths in errors are the area's.
    """
    place = open_root(root)
    try:
        for name in names:
            inner = _inner(place, name, equivalent=equivalent)
            os.close(place.fd)
            place = inner
        yield place
    finally:
        os.close(place.fd)


def _inner(place: Place, name: str, *, equivalent: bool) -> Place:
    try:
        return enter(place, name)
    except FileNotFoundError:
        other = equivalent_name(place, name) if equivalent else None
        if other is None:
            raise
        return enter(place, other)


def enter(place: Place, name: str) -> Place:
    """The folder `name` in an open one; the caller closes it."""
    path = joined(place.path, name)
    return Place(_open_folder(name, place.fd, path), path)


def _open_folder(name: str, parent: int | None, path: str, *, flags: int = _PASS) -> int:
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise
    if parent is None or stat.S_ISLNK(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
        raise is_a_link(path)
    raise not_a_folder(path)


def listable(place: Place) -> int:
    """The same folder, to be listed or synced; the caller closes it."""
    return os.open(".", _READ_FOLDER, dir_fd=place.fd)


def status(place: Place, name: str) -> os.stat_result:
    """Of the entry itself, never of what it links to."""
    return os.stat(name, dir_fd=place.fd, follow_symlinks=False)


def equivalent_name(place: Place, name: str) -> str | None:
    """The one entry whose name has the same NFKC form; None where there is none, or more than one."""
    wanted = unicodedata.normalize("NFKC", name)
    fd = listable(place)
    try:
        with os.scandir(fd) as entries:
            names = [entry.name for entry in islice(entries, MAX_NAMES_COMPARED + 1)]
    finally:
        os.close(fd)
    found = [other for other in names if unicodedata.normalize("NFKC", other) == wanted]
    return found[0] if len(found) == 1 and len(names) <= MAX_NAMES_COMPARED else None


def check_regular(mode: int, path: str) -> None:
    """Raises `NotPermitted` `not_allowed` for a link, `InvalidRequest` `not_a_file` for what is not a file."""
    if stat.S_ISLNK(mode):
        raise is_a_link(path)
    if not stat.S_ISREG(mode):
        raise not_a_file(path)


@contextmanager
def opened_file(place: Place, name: str) -> Iterator[int]:
    """A regular file, for reading. Looked at before it is opened, because opening a device can do something."""
    path = joined(place.path, name)
    check_regular(status(place, name).st_mode, path)
    fd = os.open(name, _READ_FILE, dir_fd=place.fd)
    try:
        check_regular(os.fstat(fd).st_mode, path)
        yield fd
    finally:
        os.close(fd)


def read_up_to(fd: int, most: int) -> bytes:
    """At most `most` bytes from the beginning, and one more where the file has it."""
    pieces: list[bytes] = []
    left = most + 1
    while left > 0 and (piece := os.read(fd, min(left, 1 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
