"""The subscriptions of one connection: each is a task that follows a thread's log, or what changes on all threads.

A slow reader loses its subscription, and no event.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any, TypeAlias

from pizzabot_hookspecs import Caller, Conflict, Logger, NotFound, Unavailable
from pizzabot_hookspecs.host import EventBatch, Host
from pizzabot_lines.lines import End, activity_lines, batch_lines, line
from pizzabot_lines.outbox import Outbox
from pizzabot_lines.requests import Request, RequestId, event_filter
from pizzabot_lines.settings import Limits

Followed: TypeAlias = tuple[AsyncGenerator[Any, None], Callable[[RequestId, Any], Iterator[bytes]]]
"""What the host tells, and how one piece of it is written."""


class Subscriptions:
    """Named by the id of the request that made them."""

    def __init__(
        self, host: Host, outbox: Outbox, limits: Limits, *, clock: Callable[[], float], logger: Logger
    ) -> None:
        self._host = host
        self._outbox = outbox
        self._limits = limits
        self._clock = clock
        self._logger = logger
        self._tasks: dict[RequestId, asyncio.Task[None]] = {}

    async def add(self, request: Request, caller: Caller, answer: bytes) -> None:
        """Attach, say `answer`, and follow. Raises what the host says of the thread or the cursor.

        Raises `Conflict` `id_in_use` and `Unavailable` `too_many_subscriptions` for what is asked of this connection.
        """
        if request.id in self._tasks:
            raise Conflict("id_in_use", f"the id {request.id!r} is that of another subscription of this connection")
        if len(self._tasks) >= self._limits.subscriptions:
            limit = self._limits.subscriptions
            raise Unavailable("too_many_subscriptions", f"{limit} subscriptions are open; end one with unsubscribe")
        attached = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._follow(request, caller, answer, attached), name=f"{request.op} {request.id}")
        self._tasks[request.id] = task
        task.add_done_callback(lambda task: self._ended(request.id, task))
        await asyncio.wait({task, attached}, return_when=asyncio.FIRST_COMPLETED)
        if not attached.done():
            task.result()

    async def remove(self, request_id: RequestId) -> None:
        """Raises `NotFound` `no_such_subscription`."""
        task = self._tasks.get(request_id)
        if task is None:
            raise NotFound("no_such_subscription", f"there is no subscription {request_id!r} on this connection")
        await _cancelled(task)
        await self._outbox.say(line(request_id, end=End.UNSUBSCRIBED.value))

    def _ended(self, request_id: RequestId, task: asyncio.Task[None]) -> None:
        self._tasks.pop(request_id, None)
        if not task.cancelled():
            task.exception()  # `add` has raised it, unless its connection was over by then

    async def close(self) -> None:
        for task in list(self._tasks.values()):
            await _cancelled(task)

    def cancel(self) -> None:
        """Like `close`, without waiting."""
        for task in self._tasks.values():
            task.cancel()

    async def _opened(self, request: Request, caller: Caller) -> Followed:
        idle = self._limits.heartbeat_seconds
        if request.op == "activity":
            return await self._host.activity(idle_seconds=idle, caller=caller), activity_lines
        thread_id, wanted, since = request.text("thread_id"), event_filter(request), request.count("since")
        observed = await self._host.runs.observe(thread_id, wanted, since=since, idle_seconds=idle, caller=caller)
        return observed, self._batch_lines

    def _batch_lines(self, request_id: RequestId, batch: EventBatch) -> Iterator[bytes]:
        return batch_lines(request_id, batch, now_ms=int(self._clock() * 1000))

    async def _follow(self, request: Request, caller: Caller, answer: bytes, attached: asyncio.Future[None]) -> None:
        told, written = await self._opened(request, caller)
        # Whatever ends this task, the observer is let go.
        async with aclosing(told):
            await self._outbox.put(answer, seconds=self._limits.write_seconds)
            attached.set_result(None)
            end = await self._pump(request.id, told, written)
        await self._outbox.say(line(request.id, end=end.value))

    async def _pump(
        self,
        request_id: RequestId,
        told: AsyncGenerator[Any, None],
        written: Callable[[RequestId, Any], Iterator[bytes]],
    ) -> End:
        try:
            async for piece in told:
                for text in written(request_id, piece):
                    if not await self._outbox.put(text, seconds=self._limits.write_seconds):
                        return End.SLOW
        except Exception:
            self._logger.exception("lines.subscription_failed", subscription=str(request_id))
            return End.FAILED
        return End.CLOSED


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
