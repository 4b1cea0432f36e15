"""A bundle on disk is replaced as a whole: written beside, then renamed. A crash between leaves the old or the new one.

Names with a dot first are ours: `.new-…` is being written, `.old-<id>` was there before, `.gone-…` is being removed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from pizzabot_hookspecs import Conflict, InvalidRequest, Unavailable
from pizzabot_hookspecs.support.paths import safe_segment

_NEW, _OLD, _GONE = ".new-", ".old-", ".gone-"
_PRIVATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def prepare(folder: Path) -> None:
    """The folder, private; what a crash left half done is finished. Raises `Unavailable` `skills_unwritable`."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        for entry in list(folder.iterdir()):
            if entry.name.startswith(_OLD) and not os.path.lexists(folder / entry.name.removeprefix(_OLD)):
                entry.rename(folder / entry.name.removeprefix(_OLD))
            elif entry.name.startswith((_NEW, _OLD, _GONE)):
                _erase(entry)
    except OSError as error:
        raise Unavailable("skills_unwritable", f"{folder} cannot be used for skills: {error}") from error


def put(folder: Path, skill_id: str, files: Mapping[str, bytes], *, new: bool) -> None:
    """Raises `Conflict` `already_exists`, `InvalidRequest` `invalid_name`, `Unavailable` `skills_unwritable`."""
    target = folder / _id_segment(skill_id)
    paths = {path: [safe_segment(part, what="path segment") for part in path.split("/")] for path in files}
    if new and os.path.lexists(target):
        raise Conflict("already_exists", f"there is a folder {skill_id!r} among the skills already")
    staged = folder / f"{_NEW}{uuid4().hex}"
    try:
        staged.mkdir(mode=0o700)
        for path, segments in paths.items():
            _write(staged.joinpath(*segments), files[path], staged)
        _switch(staged, target, folder / f"{_OLD}{skill_id}")
    except OSError as error:
        raise Unavailable("skills_unwritable", f"skill {skill_id!r} cannot be written: {error}") from error
    finally:
        _erase(staged)


def remove(folder: Path, skill_id: str) -> bool:
    """Whether there was one. A link is removed, not what it leads to."""
    target, gone = folder / _id_segment(skill_id), folder / f"{_GONE}{uuid4().hex}"
    try:
        target.rename(gone)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unavailable("skills_unwritable", f"skill {skill_id!r} cannot be removed: {error}") from error
    _erase(gone)
    return True


def _id_segment(skill_id: str) -> str:
    if skill_id.startswith("."):
        raise InvalidRequest("invalid_name", f"skill {skill_id[:80]!r} cannot begin with a dot")
    return safe_segment(skill_id, what="skill")


def _write(path: Path, content: bytes, root: Path) -> None:
    for parent in reversed(path.relative_to(root).parents):
        (root / parent).mkdir(mode=0o700, exist_ok=True)
    with open(os.open(path, _PRIVATE_FILE, 0o600), "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _switch(staged: Path, target: Path, old: Path) -> None:
    """Two renames; between them only `.old-<id>` is there, which `prepare` puts back."""
    _erase(old)
    had = os.path.lexists(target)
    if had:
        target.rename(old)
    try:
        staged.rename(target)
    except OSError:
        if had:
            old.rename(target)
        raise
    _erase(old)


def _erase(path: Path) -> None:
    """Gone as far as that is possible: what stays begins with a dot, and the next start tries again."""
    if path.is_symlink() or path.is_file():
        with suppress(OSError):
            path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)
