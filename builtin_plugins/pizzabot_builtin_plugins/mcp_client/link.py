"""`Link`: how a session ended and what the server said beside the protocol: the last stderr lines, noise on stdout."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pizzabot_builtin_plugins.mcp_client.settings import (
    MAX_LISTING_BYTES,
    MAX_MESSAGE_BYTES,
    MAX_NOISE_LINES,
    MAX_STDERR_LINE,
    MAX_STDERR_LINES,
)
from pizzabot_hookspecs import Unavailable

T = TypeVar("T")

_SHOWN = 200


class Link:
    """One per connection, used on its loop. `end` counts once: the first reason is the cause."""

    def __init__(self, server_id: str) -> None:
        self.server_id = server_id
        self.ended: asyncio.Future[Unavailable] = asyncio.get_running_loop().create_future()
        self.listed = False
        self.closing = False
        self.tools_changed = asyncio.Event()
        self.suspect: Callable[[], None] = lambda: None
        self._stderr: deque[str] = deque(maxlen=MAX_STDERR_LINES)
        self._noise = 0
        self._last_noise = ""

    def end(self, why: str, *, code: str = "mcp_failed") -> None:
        if not self.ended.done():
            self.ended.set_result(self.failure(why, code=code))

    @property
    def most_bytes(self) -> int:
        """Of one message, now."""
        return MAX_MESSAGE_BYTES if self.listed else MAX_LISTING_BYTES

    def too_long(self) -> None:
        self.end(f"sent a message of more than {self.most_bytes:,} bytes")

    def failure(self, why: str, *, code: str = "mcp_failed") -> Unavailable:
        """`mcp_failed` of this server; `fields["stderr"]` has its last lines."""
        stderr = "\n".join(self._stderr)
        return Unavailable(code, f'MCP server "{self.server_id}" {why}', fields={"stderr": stderr} if stderr else None)

    def stderr(self) -> tuple[str, ...]:
        return tuple(self._stderr)

    def said(self, line: str) -> None:
        """A line on stderr."""
        if line.strip():
            self._stderr.append(line[:MAX_STDERR_LINE])

    def noise(self, line: bytes) -> None:
        """A line on stdout that is no message. Many servers print a banner there; one that only does is none."""
        self._noise += 1
        self._last_noise = line[:_SHOWN].decode("utf-8", "replace").strip()
        if self._noise > MAX_NOISE_LINES and not self.listed:
            self.end(f"writes what is not MCP to its stdout: {self._last_noise!r}")

    def last_words(self) -> str:
        """What it said last, for the end of a sentence."""
        last = " ".join((self._stderr[-1] if self._stderr else self._last_noise).split())
        return f": {last[:_SHOWN]}" if last else ""

    async def unless_ended(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`; raises why the session ended where that comes first. Nothing goes on afterwards."""
        task = asyncio.ensure_future(work)
        try:
            both: set[asyncio.Future[Any]] = {task, self.ended}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise self.over()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    def over(self) -> Unavailable:
        """Why it ended, as an exception of its own: one that is raised twice would grow a traceback."""
        cause = self.ended.result()
        return Unavailable(cause.code, cause.detail, fields=cause.fields)
