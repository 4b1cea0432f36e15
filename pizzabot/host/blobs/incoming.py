"""A file that is being written: under a name of its own, and under its right one when all of it is on the disk."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from pathlib import Path

PIECE_BYTES = 1024 * 1024
"""Bytes that are held before they are written."""


class Incoming:
    """`mark` begins its first name. Every method blocks. `keep` or `drop` ends it; both may be called twice."""

    def __init__(self, folder: Path, mark: str) -> None:
        descriptor, name = tempfile.mkstemp(prefix=mark, dir=folder)  # 0600
        self.path = Path(name)
        self.size = 0
        self._descriptor: int | None = descriptor
        self._digest = hashlib.sha256()
        self._lock = threading.Lock()  # who is cancelled drops it while a thread writes still

    def write(self, pieces: list[bytes]) -> None:
        with self._lock:
            assert self._descriptor is not None  # noqa: S101 - nobody writes to one that has ended
            for piece in pieces:
                self._digest.update(piece)
                self.size += len(piece)
                rest = memoryview(piece)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]

    def sync(self) -> str:
        """All of it to the disk; the SHA-256 in hex."""
        with self._lock:
            assert self._descriptor is not None  # noqa: S101
            os.fsync(self._descriptor)
            self._close()
            return self._digest.hexdigest()

    def keep(self, target: Path) -> None:
        """Under its right name, whatever stood there. It survives a loss of power from here on."""
        self.path.replace(target)
        sync_folder(target.parent)

    def drop(self) -> None:
        with self._lock:
            self._close()
            self.path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def private_folder(path: Path) -> None:
    """The folder, 0700, with those above it; new ones are on the disk when it returns."""
    if path.is_dir():
        return
    private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
