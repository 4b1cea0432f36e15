"""`Lines`: whole lines out of chunks, with a limit on a line's length."""

from __future__ import annotations

from collections.abc import Iterator


class LineTooLong(ValueError):
    """A line is longer than the limit; what came of it is dropped."""


class Lines:
    """Each byte is looked at once, however long a line gets."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes, limit: int) -> Iterator[bytes]:
        """The lines that `chunk` completes, without their ends, empty ones left out. Raises `LineTooLong`."""
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            line = b"".join([*self._parts, part]) if self._parts else part
            self._parts, self._size = [], 0
            if len(line) > limit:
                raise LineTooLong
            if line := line.strip():
                yield line
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size > limit:
                self._parts, self._size = [], 0
                raise LineTooLong
