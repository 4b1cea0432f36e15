"""Finding files and lines below a folder of an area on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from itertools import islice

from pizzabot.host.files.descriptors import Place, Root, opened_file, opened_folder, read_up_to
from pizzabot.host.files.disk_reading import entry_at, reading
from pizzabot.host.files.media_types import is_binary_name
from pizzabot.host.files.paths import relative, segments
from pizzabot.host.files.text_search import matching_lines
from pizzabot.host.files.walking import MAX_SEARCHED_FILE, Budget, walk
from pizzabot_hookspecs import InvalidRequest, PizzabotError
from pizzabot_hookspecs.files import FileEntry, TextMatch

Accepts = Callable[[str], bool]
"""Whether a file is meant, by its path relative to where the walk began."""


def anything(_path: str) -> bool:
    return True


def find_files(root: Root, path: str, accepts: Accepts, limit: int, budget: Budget) -> Sequence[FileEntry]:
    found: list[FileEntry] = []
    with opened_folder(root, segments(path), equivalent=True) as base, closing(walk(base, budget)) as files:
        for file in files:
            if not accepts(relative(file.path, base.path)):
                continue
            if len(found) >= limit:
                budget.truncated = True
                break
            found.append(entry_at(file.place, file.entry))
    return found


def search_files(
    root: Root, path: str, sought: bytes, accepts: Accepts, limit: int, budget: Budget
) -> Sequence[TextMatch]:
    """`path` may be a file: then it is the only one, whatever its name."""
    with closing(_lines(root, path, sought, accepts, budget)) as lines:
        found = list(islice(lines, limit + 1))
    if len(found) > limit:
        budget.truncated = True
    return found[:limit]


def _lines(root: Root, path: str, sought: bytes, accepts: Accepts, budget: Budget) -> Generator[TextMatch]:
    with ExitStack() as stack:
        try:
            base = stack.enter_context(opened_folder(root, segments(path), equivalent=True))
        except InvalidRequest:
            base = None
        if base is None:
            with reading(root, path) as (fd, found):
                yield from matching_lines(found, _content(fd, budget), sought)
        else:
            yield from _lines_below(base, sought, accepts, budget)


def _lines_below(base: Place, sought: bytes, accepts: Accepts, budget: Budget) -> Generator[TextMatch]:
    with closing(walk(base, budget)) as files:
        for file in files:
            if is_binary_name(file.name) or not accepts(relative(file.path, base.path)):
                continue
            try:
                with opened_file(file.place, file.name) as fd:
                    content = _content(fd, budget)
            except (OSError, PizzabotError):
                budget.truncated = True  # gone, became something else, or not ours to read
                continue
            yield from matching_lines(file.path, content, sought)


def _content(fd: int, budget: Budget) -> bytes:
    """What is searched of a file: nothing of one that is too large, or that no budget is left for."""
    size = os.fstat(fd).st_size
    most = min(MAX_SEARCHED_FILE, budget.bytes)
    content = b"" if size > most else read_up_to(fd, most)
    if max(size, len(content)) > most:
        budget.truncated = True
        return b""
    budget.bytes -= len(content)
    return content
