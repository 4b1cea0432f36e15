"""`RotatedFile`: `audit.ndjson`, and before it `audit.1.ndjson`, `audit.2.ndjson`, … the oldest last. Blocking."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path


class RotatedFile:
    """At most `max_files` files; a new one is begun when the current one has reached `max_bytes`."""

    def __init__(self, folder: Path, *, max_bytes: int, max_files: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_files = max_files

    @property
    def current(self) -> Path:
        return self._folder / "audit.ndjson"

    def prepare(self) -> None:
        """Make the folder, for this user only."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def append(self, lines: Sequence[str]) -> None:
        """Write the lines, each to the file that has room for it."""
        waiting = [line.encode() + b"\n" for line in lines]
        while waiting:
            room = self._max_bytes - self._size()
            if room <= 0:
                self._rotate()
                room = self._max_bytes
            fitting = _count_fitting(waiting, room)
            self._write(b"".join(waiting[:fitting]))
            waiting = waiting[fitting:]

    def _size(self) -> int:
        return self.current.stat().st_size if self.current.exists() else 0

    def _write(self, text: bytes) -> None:
        descriptor = os.open(self.current, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(descriptor, "ab") as file:  # noqa: PTH123 - a descriptor: the file is private from its first byte
            file.write(text)

    def _rotate(self) -> None:
        names = [self.current, *(self._folder / f"audit.{number}.ndjson" for number in range(1, self._max_files))]
        names[-1].unlink(missing_ok=True)
        for younger, older in reversed(list(pairwise(names))):
            if younger.exists():
                younger.rename(older)


def _count_fitting(lines: Sequence[bytes], room: int) -> int:
    """How many lines go into `room` bytes: those that begin within it, so at least one."""
    used = 0
    for count, line in enumerate(lines):
        if used >= room:
            return count
        used += len(line)
    return len(lines)
