"""Listing a folder and reading a file of an area on the disk."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from pizzabot.host.files.descriptors import (
    Place,
    Root,
    equivalent_name,
    listable,
    opened_file,
    opened_folder,
    read_up_to,
)
from pizzabot.host.files.disk_writing import tag_of
from pizzabot.host.files.paths import joined, may_be_named, segments
from pizzabot.host.files.refusals import no_such_file, not_a_file, too_large
from pizzabot.host.files.walking import is_shown
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.files import FileContent, FileEntry

MAX_LISTED = 10_000
"""Entries of a folder that are listed, the first by name."""


def list_folder(root: Root, path: str, most: int) -> Sequence[FileEntry]:
    with opened_folder(root, segments(path), equivalent=True) as place:
        fd = listable(place)
        try:
            with os.scandir(fd) as entries:
                shown = (entry for entry in entries if _has_path(place, entry))
                return [entry_at(place, found) for found in heapq.nsmallest(most, shown, key=lambda found: found.name)]
        finally:
            os.close(fd)


def _has_path(place: Place, entry: os.DirEntry[str]) -> bool:
    return is_shown(entry) and may_be_named(entry.name, place.path)


def entry_at(place: Place, entry: os.DirEntry[str]) -> FileEntry:
    """What is known of an entry of an open folder; its scan may be over, its folder's descriptor not closed."""
    path, is_folder = joined(place.path, entry.name), entry.is_dir(follow_symlinks=False)
    try:
        found = os.stat(entry.name, dir_fd=place.fd, follow_symlinks=False)
    except OSError:  # gone since it was listed
        return FileEntry(path=path, is_folder=is_folder)
    size = None if is_folder else found.st_size
    return FileEntry(path=path, is_folder=is_folder, size=size, modified_at=found.st_mtime)


def read_file(root: Root, path: str, max_bytes: int) -> FileContent:
    """The path in the answer is the one on the disk, where the one asked for has another normal form."""
    with reading(root, path) as (fd, found):
        size = os.fstat(fd).st_size
        content = b"" if size > max_bytes else read_up_to(fd, max_bytes)
        if max(size, len(content)) > max_bytes:
            raise too_large(found, max(size, len(content)), max_bytes)
        return FileContent(path=found, content=content, tag=tag_of(content))


@contextmanager
def reading(root: Root, path: str) -> Iterator[tuple[int, str]]:
    """The file that `path` means, open, and what the area calls it."""
    names = segments(path)
    if not names:
        raise not_a_file(root.called(path))
    with _folder_of(root, path) as place:
        name = names[-1]
        try:
            os.stat(name, dir_fd=place.fd, follow_symlinks=False)
        except FileNotFoundError:
            other = equivalent_name(place, name)
            if other is None:
                raise
            name = other
        with opened_file(place, name) as fd:
            yield fd, joined(place.path, name)


@contextmanager
def _folder_of(root: Root, path: str) -> Iterator[Place]:
    """A file where a folder should be is, for who asks for something in it, as good as nothing."""
    with ExitStack() as stack:
        try:
            place = stack.enter_context(opened_folder(root, segments(path)[:-1], equivalent=True))
        except InvalidRequest:
            raise no_such_file(root.called(path)) from None
        yield place
