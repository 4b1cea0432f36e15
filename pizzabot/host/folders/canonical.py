"""A path that somebody wrote down, as the one canonical path of the folder it means."""

from __future__ import annotations

import os
from pathlib import Path

from pizzabot_hookspecs import InvalidRequest

MAX_HOST_PATH = 4_096
"""Characters of a path of the machine."""
_SHOWN = 120


def checked_host_path(path: str) -> str:
    """Raises `InvalidRequest` `invalid_path`: blank, too long, relative, not text that a path can be."""
    problem = None
    if not path.strip():
        problem = "is blank"
    elif len(path) > MAX_HOST_PATH:
        problem = f"has {len(path)} characters; at most {MAX_HOST_PATH} are allowed"
    elif "\0" in path or any("\ud800" <= character <= "\udfff" for character in path):
        problem = "is not text that a path can be"
    elif not Path(path).is_absolute():
        problem = "is relative; write it from the root of the disk"
    if problem is not None:
        raise invalid_path(path, problem)
    return path


def canonical_folder(path: str) -> str:
    """Blocks on the disk. Raises `InvalidRequest` `invalid_path`: as above, or not there, or no folder."""
    checked_host_path(path)
    try:
        canonical = os.path.realpath(path, strict=True)
        is_folder = Path(canonical).is_dir()
        canonical.encode()
    except UnicodeEncodeError:
        raise invalid_path(path, "has a name that is not UTF-8") from None
    except OSError as error:
        reason = (os.strerror(error.errno) if error.errno else "it cannot be looked at").lower()
        raise invalid_path(path, f"cannot be used: {reason}") from None
    if not is_folder:
        raise invalid_path(path, "is not a folder")
    return canonical


def invalid_path(path: str, problem: str) -> InvalidRequest:
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}…"
    return InvalidRequest("invalid_path", f"the folder {shown!r} {problem}", fields={"path": problem})
