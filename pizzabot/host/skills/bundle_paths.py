"""Paths inside a bundle that a person or an archive gives: which ones are taken, and which two cannot be together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from pizzabot_hookspecs.skill_sources import SKILL_FILE

MAX_DEPTH = 16
"""Folders inside each other; the reader of the folder takes no more."""
MAX_PATH = 512
"""Characters of a path inside a bundle."""

_SEGMENT = re.compile(r"[a-z0-9][a-z0-9._-]{0,254}", re.IGNORECASE)


def path_fault(path: str) -> str | None:
    """Why a sibling of SKILL.md cannot have this path (spec/01 §7)."""
    if len(path) > MAX_PATH:
        return f"is longer than {MAX_PATH} characters"
    if path.count("/") >= MAX_DEPTH:
        return f"is nested deeper than {MAX_DEPTH} folders"
    if not all(_SEGMENT.fullmatch(segment) for segment in path.split("/")):
        return "has to be names of A-Z a-z 0-9 . _ - with `/` between them, each beginning with a letter or digit"
    if path.lower() == SKILL_FILE.lower():
        return f"is the skill itself: its text is `body`, not a file named {SKILL_FILE}"
    return None


def clash(paths: Iterable[str]) -> str | None:
    """The first path that is another one's in other letters, or that another one needs as a folder."""
    seen: set[str] = set()
    folders: set[str] = set()
    for path in paths:
        lowered = path.lower()
        parents = [str(parent) for parent in PurePosixPath(lowered).parents if str(parent) != "."]
        if lowered in seen or lowered in folders or any(parent in seen for parent in parents):
            return path
        seen.add(lowered)
        folders.update(parents)
    return None
