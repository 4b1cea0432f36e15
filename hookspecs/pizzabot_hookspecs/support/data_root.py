"""The data root: `prepare_data_root` makes it private and writable, `DataRootLock` lets one server at a time have it.

The host takes the lock before plugins start (durable-runs rule 6) and keeps it until storage is closed. It is a lock of
the operating system: it ends with its process, however that ends, and a file left behind means nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from pizzabot_hookspecs.errors import Conflict, NotPermitted

LOCK_FILE = "lock"
"""Inside the data root; holds the pid of the process that has it, and nothing while nobody does."""

OURS = frozenset({LOCK_FILE, "app.sqlite", "secrets.json", "logs"})
"""What a folder that was a data root before has at least one of."""

_PID_BYTES = 32
_TRIED_BYTES = 4096
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def prepare_data_root(path: Path) -> Path:
    """Create the folder where it is missing, make it 0700 also where it was not, check that a file can be written.

    Returns the absolute path. Raises `NotPermitted` `data_root_not_writable`, and `data_root_is_shared` for a folder
    that others use and that was never a data root: making it private would take it from them. (spec/03 §1.)
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - `resolve` would follow a link that the person chose
    try:
        if _others_use(path):
            raise NotPermitted(
                "data_root_is_shared",
                f"data root {path} has other files in it and is open to other users, and would be made private;"
                " name a folder of its own with --data-root",
            )
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.chmod(0o700)
        with tempfile.TemporaryFile(dir=path, buffering=0) as file:
            file.write(bytes(_TRIED_BYTES))  # an empty file fits on a full disk
    except OSError as error:
        raise _not_writable(path, error) from error
    return path


def _others_use(path: Path) -> bool:
    """Whether the folder is not ours alone: open to others, not empty, and without anything that a server leaves."""
    if not path.is_dir() or not path.stat().st_mode & 0o077:
        return False
    names = {entry.name for entry in path.iterdir()}
    return bool(names) and not names & OURS


class DataRootLock:
    """The one server of a data root. A context manager, or `acquire` and `release`; not for reuse across forks.

    `acquire` raises `Conflict` `data_root_in_use`, naming the pid that holds it, and `NotPermitted`
    `data_root_not_writable`. It never waits.
    """

    def __init__(self, data_root: Path) -> None:
        self.path = data_root / LOCK_FILE
        self._descriptor: int | None = None

    def acquire(self) -> None:
        if self._descriptor is not None:
            return
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise _not_writable(self.path.parent, error) from error
        try:
            self._take(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """Give it back; safe to call twice. The file stays: removing it would let two servers lock two files."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        try:
            os.ftruncate(descriptor, 0)
            # Closing alone is not enough: a child between fork and exec has a copy of the descriptor for a moment.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Conflict("data_root_in_use", self._holder(descriptor)) from error
        except OSError as error:
            raise _not_writable(self.path.parent, error) from error
        try:
            os.fchmod(descriptor, 0o600)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        except OSError as error:
            raise _not_writable(self.path.parent, error) from error

    def _holder(self, descriptor: int) -> str:
        pid = os.pread(descriptor, _PID_BYTES, 0).decode("ascii", "replace").strip()
        process = f"process {pid}" if pid.isdigit() else "another process"
        return f"data root {self.path.parent} is in use by {process}: stop it, or choose another one with --data-root"

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _not_writable(path: Path, error: OSError) -> NotPermitted:
    cause, way_out = error.strerror or type(error).__name__, "give this user the folder, or choose"
    if error.errno in _NO_ROOM:
        way_out = "make room on that disk, or choose"
    elif os.path.isfile(path):  # noqa: PTH113 - `Path.is_file` raises for a name that is too long
        cause, way_out = "it is a file, not a folder", "choose"
    return NotPermitted(
        "data_root_not_writable", f"data root {path} cannot be used: {cause}; {way_out} another one with --data-root"
    )
