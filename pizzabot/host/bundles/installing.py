"""`InstallFolder`: bundles on disk, put there whole and taken away whole. A crash between leaves the old or nothing.

Names with a dot first are ours: `.new-…` is being written. A bundle that is being uninstalled loses its manifest first:
its folder has `.removed-plugin` instead then, and the next start erases it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

from pizzabot_hookspecs import Conflict, Unavailable
from pizzabot_hookspecs.support.paths import safe_segment

ERASE_ATTEMPTS = 5
ERASE_PAUSE_SECONDS = 0.1

_NEW = ".new-"
_MANIFEST_FOLDER, _REMOVED = ".claude-plugin", ".removed-plugin"
_PRIVATE_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_PROGRAMS = (b"#!", b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")
"""How what can be run begins: an archive's own word for it is not asked for."""


class InstallFolder:
    """All blocking, one caller at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def prepare(self) -> None:
        """The folder, private; what a crash left half done is erased. Raises `Unavailable` `plugins_unwritable`."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
            for entry in list(self.path.iterdir()):
                if entry.name.startswith(_NEW) or _is_half_removed(entry):
                    _erase(entry)
        except OSError as error:
            raise _unwritable(self.path, error) from error

    def stage(self, files: Mapping[str, bytes]) -> Path:
        """A folder with these files, beside the bundles. Raises `InvalidRequest`, `Unavailable`."""
        paths = {path: [safe_segment(part, what="path segment") for part in path.split("/")] for path in files}
        staged = self.path / f"{_NEW}{uuid4().hex}"
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            staged.mkdir(mode=0o700)
            for path, segments in paths.items():
                _write(staged.joinpath(*segments), files[path])
        except OSError as error:
            _erase(staged)
            raise _unwritable(self.path, error) from error
        return staged

    def place(self, staged: Path, name: str) -> Path:
        """The staged bundle under its name. Raises `Conflict` `already_exists`, also for a file of that name."""
        target = self.path / safe_segment(name)
        if os.path.lexists(target):
            raise Conflict("already_exists", f"there is a folder {name!r} among the installed plugins already")
        try:
            staged.rename(target)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        return target

    def hide(self, folder: Path) -> None:
        """No bundle any more, for whoever reads the folder from now on; nothing of it that runs loses a file yet."""
        try:
            if folder.is_symlink():
                folder.unlink()
            else:
                _erase(folder / _REMOVED)  # of the bundle's own making
                (folder / _MANIFEST_FOLDER).rename(folder / _REMOVED)
        except OSError as error:
            raise _unwritable(folder, error) from error

    def erase(self, folder: Path) -> None:
        """All of it, with patience for a child that still writes. Raises `Unavailable` `plugins_unwritable`."""
        for attempt in range(ERASE_ATTEMPTS):
            if attempt:
                time.sleep(ERASE_PAUSE_SECONDS)
            _erase(folder)
            if not os.path.lexists(folder):
                return
        raise Unavailable("plugins_unwritable", f"{folder} cannot be removed as a whole; the next start tries it again")

    def folder_of(self, root: Path) -> Path | None:
        """The entry that is, or leads to, the bundle with that root."""
        try:
            return next((entry for entry in self.path.iterdir() if Path(os.path.realpath(entry)) == root), None)
        except OSError:
            return None


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = 0o700 if content.startswith(_PROGRAMS) else 0o600
    with open(os.open(path, _PRIVATE_FILE, mode), "wb") as file:  # noqa: PTH123 - a descriptor
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _is_half_removed(entry: Path) -> bool:
    return not entry.is_symlink() and (entry / _REMOVED).is_dir() and not os.path.lexists(entry / _MANIFEST_FOLDER)


def _erase(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)


def _unwritable(path: Path, error: OSError) -> Unavailable:
    return Unavailable("plugins_unwritable", f"{path} cannot be used for plugins: {error.strerror or error}")
