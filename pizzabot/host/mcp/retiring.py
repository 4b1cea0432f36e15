"""`Retiring`: sessions that were replaced or removed, kept until every run that was active then has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pizzabot.host.mcp.limits import MAX_RETIRED, RETIRE_SECONDS
from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.mcp_clients import McpConnection


class Retiring:
    """`runs_ended` waits until the runs that are active when it is called are over."""

    def __init__(self, runs_ended: Callable[[], Awaitable[None]], logger: Logger, *, seconds: float = RETIRE_SECONDS):  # noqa: ANN204
        self._runs_ended = runs_ended
        self._logger = logger
        self._seconds = seconds
        self._kept: dict[asyncio.Task[None], asyncio.Event] = {}

    def retire(self, connection: McpConnection) -> None:
        """Close it when the runs of now have ended, after `seconds` at the latest."""
        now = asyncio.Event()
        task = asyncio.create_task(self._close_later(connection, now), name="mcp retiring")
        self._kept[task] = now
        task.add_done_callback(lambda done: self._kept.pop(done, None))
        if len(self._kept) > MAX_RETIRED:
            next(iter(self._kept.values())).set()

    async def close(self) -> None:
        """Close them all now."""
        for now in list(self._kept.values()):
            now.set()
        await asyncio.gather(*self._kept, return_exceptions=True)

    async def _close_later(self, connection: McpConnection, now: asyncio.Event) -> None:
        waits = [asyncio.ensure_future(self._runs_ended()), asyncio.ensure_future(now.wait())]
        try:
            await asyncio.wait(waits, timeout=self._seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            await asyncio.gather(*waits, return_exceptions=True)
            await closed(connection, self._logger)


async def closed(connection: McpConnection, logger: Logger) -> None:
    """Close it; what that raises is a client's own matter."""
    try:
        await connection.close()
    except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and the rest goes on
        logger.error("mcp.close_failed", cause=type(error).__name__, detail=str(error))
