"""The commands of one socket: those of a thread one after the other, those of several threads at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pizzabot_builtin_plugins.http_server.websocket.messages import SentCommand

MAX_COMMANDS = 16
"""Commands of one socket that were read and are not answered; with so many, nothing more is read from it."""


class Commands:
    """`do` carries out one command, answers it and does not raise."""

    def __init__(self, do: Callable[[SentCommand], Awaitable[None]]) -> None:
        self._do = do
        self._room = asyncio.Semaphore(MAX_COMMANDS)
        self._last: dict[str, asyncio.Task[None]] = {}
        self._going: set[asyncio.Task[None]] = set()

    async def take(self, command: SentCommand) -> None:
        """Begin it, or line it up behind the thread's last one; waits while `MAX_COMMANDS` are not answered."""
        await self._room.acquire()
        before = self._last.get(command.thread)
        task = asyncio.create_task(self._carry_out(command, before))
        self._last[command.thread] = task
        self._going.add(task)
        task.add_done_callback(lambda done: self._forget(command.thread, done))

    async def finish(self, seconds: float) -> None:
        """Let those that were read be carried out; what is not done in time is cancelled."""
        try:
            if self._going:
                await asyncio.wait(self._going, timeout=seconds)
        finally:
            left = list(self._going)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _carry_out(self, command: SentCommand, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        await self._do(command)

    def _forget(self, thread: str, task: asyncio.Task[None]) -> None:
        self._going.discard(task)
        self._room.release()
        if self._last.get(thread) is task:
            del self._last[thread]
