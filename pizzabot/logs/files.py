"""Log files: one per process, day and sequence, mode 0600; rotated by size, removed by age and by total size."""

from __future__ import annotations

import errno
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pizzabot.logs.limits import LogLimits

_PROCESS = re.compile(r"[a-z][a-z0-9_]{0,31}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}-\d{4}-\d{2}-\d{2}-\d{1,10}-\d{1,6}\.ndjson")
_DAY_SECONDS = 86_400


@dataclass(frozen=True)
class _Kept:
    path: Path
    size: int
    modified: float


class PartlyWrittenError(OSError):
    """The disk is full; `whole` lines are in the file."""

    def __init__(self, whole: int, path: str) -> None:
        super().__init__(errno.ENOSPC, "no space left for a whole line", path)
        self.whole = whole


class LogFiles:
    """Writes whole lines. Not safe for threads: one thread writes. Raises OSError when it cannot."""

    def __init__(self, folder: Path, process: str, limits: LogLimits) -> None:
        if not _PROCESS.fullmatch(process):
            raise ValueError(f"a process is called by lower-case letters, digits and _ in log names, not {process!r}")
        self._folder = folder
        self._process = process
        self._limits = limits
        self._descriptor: int | None = None
        self._path: Path | None = None
        self._size = 0
        self._day = ""
        self._sequence = 0

    @property
    def path(self) -> Path | None:
        """The file being written; None before the first line."""
        return self._path

    def write(self, lines: bytes, now: float) -> None:
        """Append `lines`, each ending with a newline, in one call per file, so that no reader sees lines mixed.

        Raises `PartlyWrittenError` where some are in the file and others are not.
        """
        day = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d")
        begin = 0
        while begin < len(lines):
            if (
                self._descriptor is None
                or day != self._day
                or self._size + lines.index(b"\n", begin) + 1 - begin > (self._limits.file_bytes)
            ):
                self._next(day, now)
            begin = self._append(lines, begin)

    def _append(self, lines: bytes, begin: int) -> int:
        """Write what has room in the file, at least one line; where to go on."""
        room = max(self._limits.file_bytes - self._size, 0)
        end = len(lines) if len(lines) - begin <= room else lines.rfind(b"\n", begin, begin + room) + 1
        if end <= begin:  # longer than a whole file may be: it gets one of its own
            end = lines.index(b"\n", begin) + 1
        if self._descriptor is None:
            return end
        written = os.write(self._descriptor, lines[begin:end])
        self._size += written
        if written < end - begin:  # the disk is full: what follows goes to a file of its own
            self.close()
            raise PartlyWrittenError(lines.count(b"\n", 0, begin + written), str(self._path))
        return end

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _next(self, day: str, now: float) -> None:
        self.close()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        self._sequence = 0 if day != self._day else self._sequence + 1
        self._day = day
        while True:
            path = self._folder / f"{self._process}-{day}-{os.getpid()}-{self._sequence}.ndjson"
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                self._descriptor = os.open(path, flags, 0o600)
            except FileExistsError:  # of an earlier process with this number
                self._sequence += 1
                continue
            self._path, self._size = path, 0
            break
        self.remove_old(now)

    def remove_old(self, now: float) -> None:
        """Files older than the retention, then the oldest until the total fits. Others' names are never touched."""
        kept = sorted(self._others(), key=lambda file: file.modified)
        total = sum(file.size for file in kept)
        oldest = now - self._limits.retention_days * _DAY_SECONDS
        for file in kept:
            if file.modified < oldest or total + self._limits.file_bytes > self._limits.total_bytes:
                with suppress(OSError):
                    file.path.unlink()
                    total -= file.size

    def _others(self) -> list[_Kept]:
        found = []
        for entry in os.scandir(self._folder):
            if not _NAME.fullmatch(entry.name) or Path(entry.path) == self._path:
                continue
            with suppress(OSError):
                if entry.is_file(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    found.append(_Kept(Path(entry.path), status.st_size, status.st_mtime))
        return found
