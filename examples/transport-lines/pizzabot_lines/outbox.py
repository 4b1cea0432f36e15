"""`Outbox`: lines on their way to one client, bounded in bytes and in how long anybody waits for it to read."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque


class Outbox:
    """`put` waits while there is no room; `say` does not wait and is for the few short lines that must not be lost."""

    def __init__(self, writer: asyncio.StreamWriter, *, limit: int) -> None:
        self._writer = writer
        self._limit = limit
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._closed = False
        self._changed = asyncio.Condition()
        self._sending = asyncio.create_task(self._send(), name="lines to a client")

    async def put(self, line: bytes, *, seconds: float) -> bool:
        """Whether there was room within `seconds`. A line that is larger than the limit goes out alone."""
        try:
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(lambda: self._closed or self._has_room_for(line))
                if self._closed:
                    return False
                self._append(line)
        except TimeoutError:
            return False
        return True

    async def say(self, line: bytes) -> None:
        async with self._changed:
            self._append(line)

    async def close(self, *, seconds: float) -> None:
        """Take no more lines, and give those that wait up to `seconds`."""
        async with self._changed:
            self._closed = True
            self._changed.notify_all()
        await asyncio.wait({self._sending}, timeout=seconds)
        self.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)

    def cancel(self) -> None:
        """Drop what waits."""
        self._closed = True
        self._sending.cancel()

    def _has_room_for(self, line: bytes) -> bool:
        return not self._lines or self._bytes + len(line) <= self._limit

    def _append(self, line: bytes) -> None:
        self._lines.append(line)
        self._bytes += len(line)
        self._changed.notify_all()

    async def _send(self) -> None:
        with contextlib.suppress(ConnectionError):
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: self._lines or self._closed)
                    if not self._lines:
                        return
                    line = self._lines.popleft()
                    self._bytes -= len(line)
                    self._changed.notify_all()
                self._writer.write(line)
                await self._writer.drain()
        async with self._changed:  # the client is gone: nobody waits for it any longer
            self._closed = True
            self._changed.notify_all()
