"""The subscriptions of one socket: each is a task that reads the host's observer and writes what it yields."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from pizzabot_builtin_plugins.http_server.access_log import unforeseen
from pizzabot_builtin_plugins.http_server.rows import activity_message, is_silence
from pizzabot_builtin_plugins.http_server.services import Services, checked_id
from pizzabot_builtin_plugins.http_server.subscriptions import Subscription, read_subscription
from pizzabot_builtin_plugins.http_server.websocket import frames
from pizzabot_builtin_plugins.http_server.websocket.messages import Subscribe
from pizzabot_builtin_plugins.http_server.websocket.outbox import GoneError, Outbox
from pizzabot_hookspecs import Caller, InvalidRequest, PizzabotError, TooLarge

MAX_THREADS = 64
"""Threads that the subscriptions of one socket are about."""
MAX_SUBSCRIPTIONS = 256
"""Subscriptions of one socket."""


@dataclass(kw_only=True)
class _Open:
    """A number that is in use. `thread` is None for activity."""

    thread: str | None
    task: asyncio.Task[None] | None = None


class Subscriptions:
    """A number is in use from `subscribe` until its `closed` was written.

    No event is lost by a client that reads slowly: its tasks wait in the outbox, the host keeps a bounded number of
    events in memory, and an observer that fell behind those is sent back to the log.
    """

    def __init__(self, services: Services, outbox: Outbox, caller: Caller, user_agent: str | None) -> None:
        self._services = services
        self._outbox = outbox
        self._caller = caller
        self._user_agent = user_agent
        self._open: dict[int, _Open] = {}

    async def begin(self, asked: Subscribe) -> None:
        """Raises `InvalidRequest` `sub_in_use`; whatever else is wrong is told as the subscription's end."""
        if asked.sub in self._open:
            raise InvalidRequest("sub_in_use", f"subscription {asked.sub} is open; take another number")
        try:
            thread, wanted = self._checked(asked)
            self._check_room(thread)
        except PizzabotError as error:
            await self._outbox.write(frames.closed(asked.sub, error.code, error.detail))
            return
        entry = self._open[asked.sub] = _Open(thread=thread)
        entry.task = asyncio.create_task(self._carry(asked.sub, thread, wanted))

    async def end(self, sub: int) -> None:
        """Raises `InvalidRequest` `no_such_subscription`, also when it has just ended by itself."""
        entry = self._open.get(sub)
        if entry is not None:
            await _cancelled([entry])
            if self._open.get(sub) is entry:
                await self._outbox.write(frames.closed(sub, "unsubscribed", "the client wanted no more of it"))
                del self._open[sub]
                return
        raise InvalidRequest("no_such_subscription", f"subscription {sub} is not open")

    async def end_all(self, code: str, message: str) -> None:
        """Tell the client of each that it has ended."""
        await self.cancel_all()
        for sub in list(self._open):
            await self._outbox.write(frames.closed(sub, code, message))
            del self._open[sub]

    async def cancel_all(self) -> None:
        """Without a word; when it returns no task and no observer is left."""
        await _cancelled(list(self._open.values()))

    def _checked(self, asked: Subscribe) -> tuple[str | None, Subscription | None]:
        wanted = asked.wanted
        if "activity" in wanted:
            if wanted["activity"] is not True or "thread" in wanted:
                raise _invalid("activity", "must be true, and goes without `thread`")
            return None, None
        thread = wanted.get("thread")
        if not isinstance(thread, str):
            raise _invalid("thread", "must be the id of a thread; or write `activity`: true")
        try:
            checked_id(thread, "thread")
        except InvalidRequest as error:
            raise InvalidRequest("invalid_subscription", error.detail, fields=error.fields) from error
        return thread, read_subscription(wanted, last_event_id=None, user_agent=self._user_agent)

    def _check_room(self, thread: str | None) -> None:
        if len(self._open) >= MAX_SUBSCRIPTIONS:
            raise TooLarge("too_many_subscriptions", f"a socket has {MAX_SUBSCRIPTIONS} subscriptions; end one first")
        threads = {entry.thread for entry in self._open.values()} - {None}
        if thread is not None and thread not in threads and len(threads) >= MAX_THREADS:
            detail = f"a socket is about {MAX_THREADS} threads; end the subscriptions of one first"
            raise TooLarge("too_many_threads", detail)

    async def _carry(self, sub: int, thread: str | None, wanted: Subscription | None) -> None:
        try:
            code, message = await self._pump(sub, thread, wanted)
            await self._outbox.write(frames.closed(sub, code, message))
        except GoneError:
            return
        del self._open[sub]

    async def _pump(self, sub: int, thread: str | None, wanted: Subscription | None) -> tuple[str, str]:
        """Everything that comes of a subscription but its end, which is returned: code and message."""
        try:
            messages = self._activity(sub) if thread is None or wanted is None else self._events(sub, thread, wanted)
            async with aclosing(messages):
                async for message in messages:
                    await self._outbox.write(message)
        except PizzabotError as error:
            return error.code, self._services.redact(error.detail)
        except GoneError:
            raise
        except Exception:
            request_id = self._caller.request_id or ""
            self._services.logger.exception("http.socket.subscription_failed", request_id=request_id, thread=thread)
            return "internal_error", unforeseen(request_id)
        # The host closes its observers after the transports have stopped: here it can only be the thread.
        if thread is None:
            return "stopping", "the server is stopping; connect again in a moment"
        return "thread_deleted", f"thread {thread!r} was deleted"

    async def _events(self, sub: int, thread: str, wanted: Subscription) -> AsyncGenerator[bytes, None]:
        silence = self._services.settings.heartbeat_seconds
        batches = await self._services.host.runs.observe(
            thread, wanted.filter, since=wanted.since, idle_seconds=silence, caller=self._caller
        )
        async with aclosing(batches):
            yield frames.subscribed(sub)
            async for batch in batches:
                for message in frames.event_messages(sub, batch, now_ms=int(self._services.clock() * 1000)):
                    yield message

    async def _activity(self, sub: int) -> AsyncGenerator[bytes, None]:
        changes = await self._services.host.activity(
            idle_seconds=self._services.settings.heartbeat_seconds, caller=self._caller
        )
        async with aclosing(changes):
            yield frames.subscribed(sub)
            async for change in changes:
                if not is_silence(change):
                    yield frames.activity(sub, activity_message(change))


async def _cancelled(entries: list[_Open]) -> None:
    tasks = [entry.task for entry in entries if entry.task is not None]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _invalid(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_subscription", f"`{field}` {problem}", fields={field: problem})
