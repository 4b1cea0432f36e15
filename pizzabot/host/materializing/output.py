"""What a materializer may make: files and folders, so many and so large, and a bundle every skill of which works."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pizzabot.host.mcp.definitions import check_id, read_entry
from pizzabot.host.skills.skill import parse_skill
from pizzabot_hookspecs import InvalidRequest, TooLarge
from pizzabot_hookspecs.bundles import Bundle, BundleStatus

MAX_FILES = 2_048
MAX_BYTES = 200 * 1024 * 1024
"""Of a generated bundle: as of one that is imported (spec/04 §5)."""
MAX_DEPTH = 32


def check_size(folder: Path) -> None:
    """Blocking; also while it is being written. Raises `TooLarge` `output_too_large`."""
    size = 0
    for files, (_, found) in enumerate(_entries(folder), 1):
        size += found.st_size if stat.S_ISREG(found.st_mode) else 0
        if files > MAX_FILES or size > MAX_BYTES:
            raise TooLarge("output_too_large", f"it made more than {MAX_FILES} files or {MAX_BYTES} bytes")


def settle(folder: Path) -> None:
    """Only files and folders, and on the disk. Blocking. Raises `InvalidRequest` `invalid_output`, `TooLarge`."""
    check_size(folder)
    for path, found in _entries(folder):
        if stat.S_ISREG(found.st_mode):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        elif not stat.S_ISDIR(found.st_mode):
            shown = str(path.relative_to(folder)).encode(errors="replace").decode()[:80]
            raise InvalidRequest("invalid_output", f"it made {shown!r}, which is a link or no file")


def _entries(folder: Path, depth: int = 0) -> Iterator[tuple[Path, os.stat_result]]:
    if depth > MAX_DEPTH:
        raise InvalidRequest("invalid_output", f"it made folders that are nested deeper than {MAX_DEPTH}")
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found = entry.stat(follow_symlinks=False)
                yield Path(entry.path), found
                if stat.S_ISDIR(found.st_mode):
                    yield from _entries(Path(entry.path), depth + 1)
    except FileNotFoundError:  # it is being written
        return


def check_bundle(made: Bundle, name: str) -> None:
    """Raises `InvalidRequest` `invalid_output`: another name, a materializer of its own, what does not load."""
    if made.status is not BundleStatus.LOADED:
        raise _invalid(f"what it made is {made.status.value}: {made.detail}")
    if made.name != name:
        raise _invalid(f"it made a bundle that is named {made.name!r} and not {name!r}")
    if made.materializer is not None:
        raise _invalid("it made a bundle with a materializer of its own")
    for raw in made.skills:
        skill = parse_skill(raw, name)
        if skill.fault is not None:
            raise _invalid(f"its skill {raw.id[:80]!r} cannot be used: {skill.fault}")
    for server in made.servers:
        try:
            check_id(server.id)
            read_entry(server.entry)
        except InvalidRequest as error:
            raise _invalid(f"its MCP server {server.id[:80]!r} cannot be used: {error.detail}") from error


def _invalid(reason: str) -> InvalidRequest:
    return InvalidRequest("invalid_output", reason)
