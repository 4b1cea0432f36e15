"""Looking for a folder to grant: folders beneath the roots that the operator named, never through a link."""

from __future__ import annotations

import heapq
import os
from collections.abc import Sequence
from pathlib import Path

from pizzabot.host.files.descriptors import Root, listable, opened_folder
from pizzabot.host.files.paths import may_be_named, problem_of, segments
from pizzabot.host.files.refusals import told
from pizzabot.host.files.walking import is_shown
from pizzabot.host.folders.canonical import checked_host_path, invalid_path
from pizzabot.host.folders.grants import is_inside, label_of
from pizzabot_hookspecs import InvalidRequest, NotFound, NotPermitted, PizzabotError, Unavailable
from pizzabot_hookspecs.wire import JsonValue

MAX_DIRECTORIES = 10_000
"""Folders in one answer, the first by name."""


def roots_answer(roots: Sequence[str]) -> dict[str, JsonValue]:
    return {"currentPath": None, "parentPath": None, "directories": [_row(root) for root in roots]}


def browse(path: str, roots: Sequence[str]) -> dict[str, JsonValue]:
    """Blocks on the disk. Raises `NotPermitted` `path_not_browsable`; `InvalidRequest` `invalid_path`,
    `directory_unreadable`."""
    wanted = os.path.normpath(checked_host_path(path))
    root = next((root for root in roots if is_inside(wanted, root)), None)
    if root is None:
        raise _not_browsable(path)
    inner = wanted[len(root.rstrip("/")) :] or "/"
    problem = problem_of(inner)
    if problem is not None:
        raise invalid_path(path, problem)
    names = _named(path, Root(root), inner)
    parent = None if wanted in roots else str(Path(wanted).parent)
    return {
        "currentPath": wanted,
        "parentPath": parent,
        "directories": [_row(str(Path(wanted, name))) for name in names],
    }


def _named(path: str, root: Root, inner: str) -> Sequence[str]:
    try:
        with told(inner):
            return _folders(root, inner)
    except NotPermitted:
        raise _not_browsable(path) from None
    except (NotFound, InvalidRequest):
        raise invalid_path(path, "is not a folder that is there") from None
    except Unavailable as error:
        raise _unreadable(path, error) from None


def _folders(root: Root, inner: str) -> Sequence[str]:
    with opened_folder(root, segments(inner)) as place:
        fd = listable(place)
        try:
            with os.scandir(fd) as entries:
                names = (
                    entry.name
                    for entry in entries
                    if is_shown(entry) and entry.is_dir(follow_symlinks=False) and may_be_named(entry.name)
                )
                return heapq.nsmallest(MAX_DIRECTORIES, names, key=lambda name: (name.casefold(), name))
        finally:
            os.close(fd)


def _row(path: str) -> JsonValue:
    return {"name": label_of(path), "path": path}


def _not_browsable(path: str) -> NotPermitted:
    shown = path[:120]
    return NotPermitted("path_not_browsable", f"{shown!r} does not lie beneath a folder that may be browsed")


def _unreadable(path: str, error: PizzabotError) -> InvalidRequest:
    reason = error.detail.rpartition(": ")[2]
    return InvalidRequest("directory_unreadable", f"{path[:120]!r} cannot be read: {reason}", fields={"path": reason})
