"""The event log of one thread: appending, observers with a cursor, filters and views (design/wire.md §3)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import replace
from typing import Any

from pizzabot_hookspecs import TooLarge
from pizzabot_hookspecs.host import ClientView, EventBatch, EventFilter
from pizzabot_hookspecs.storage_backends import StoredEvent
from pizzabot_hookspecs.wire import Namespace

MAX_EVENTS = 100_000
BATCH_EVENTS = 256


class Changes:
    """Wakes everyone who waits for something to have changed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self.wait()


class Log:
    """Events in order, `seq` from 1, and whoever follows them."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.events: list[StoredEvent] = []
        self.last_seq = 0
        self.latest_run_seq: int | None = None
        self.observers = 0
        self.closed = False
        self.changes = Changes()

    def append(
        self,
        method: str,
        data: Mapping[str, Any],
        *,
        timestamp: int,
        namespace: Namespace = (),
        node: str | None = None,
        run_id: str | None = None,
    ) -> StoredEvent:
        """Raises `TooLarge` `log_full`."""
        if len(self.events) >= MAX_EVENTS:
            raise TooLarge("log_full", f"thread {self.thread_id} has {MAX_EVENTS} events, the most a script may write")
        self.last_seq += 1
        event = StoredEvent(
            seq=self.last_seq,
            thread_id=self.thread_id,
            run_id=run_id,
            method=method,
            data=clean(json.dumps(data, ensure_ascii=False)).encode(),
            timestamp=timestamp,
            namespace=namespace,
            node=node,
            name=data.get("name") if method == "custom" else None,
        )
        self.events.append(event)
        self.changes.notify()
        return event

    def forget_before(self, seq: int) -> None:
        self.events = [event for event in self.events if event.seq >= seq]

    def close(self) -> None:
        self.closed = True
        self.changes.notify()

    async def follow(
        self, wanted: EventFilter, since: int | None, idle_seconds: float
    ) -> AsyncGenerator[EventBatch, None]:
        """The first batch, an empty one, comes at once and says that the observer is attached."""
        self.observers += 1
        self.changes.notify()
        try:
            yield EventBatch()
            cursor = since if since is not None else (self.latest_run_seq or 1) - 1
            gap = self._gap(since)
            while not self.closed:
                fresh = self._after(cursor)
                cursor = fresh[-1].seq if fresh else cursor
                shown = [event for event in (seen(event, wanted.view) for event in fresh) if matches(event, wanted)]
                if shown or gap:
                    yield EventBatch(events=shown, gap=gap)
                    gap = None
                elif not fresh and not await self._woken(idle_seconds):
                    yield EventBatch()
        finally:
            self.observers -= 1
            self.changes.notify()

    def _after(self, cursor: int) -> list[StoredEvent]:
        first = self.events[0].seq if self.events else 1
        start = max(cursor - first + 1, 0)
        return self.events[start : start + BATCH_EVENTS]

    async def _woken(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.changes.wait()
        except TimeoutError:
            return False
        return True

    def _gap(self, since: int | None) -> Mapping[str, int] | None:
        earliest = self.events[0].seq if self.events else 1
        if since is None or since + 1 >= earliest:
            return None
        return {"requested": since, "earliest": earliest, "latest": self.last_seq}


def seen(event: StoredEvent, view: ClientView) -> StoredEvent:
    """The event in a connection's view: Python's SDK wants the root's own messages and tools at `[]`."""
    own = len(event.namespace) == 1 and event.method in ("messages", "tools")
    return replace(event, namespace=()) if view is ClientView.PYTHON and own else event


def matches(event: StoredEvent, wanted: EventFilter) -> bool:
    """The channel is asked for, and some namespace prefix fits within the depth."""
    channel = "input" if event.method.startswith("input.") else event.method
    named = channel == "custom" and event.name is not None and f"custom:{event.name}" in wanted.channels
    if channel not in wanted.channels and not named:
        return False
    return not wanted.namespaces or any(_within(event.namespace, prefix, wanted.depth) for prefix in wanted.namespaces)


def _within(namespace: Namespace, prefix: Namespace, depth: int | None) -> bool:
    if len(namespace) < len(prefix) or (depth is not None and len(namespace) - len(prefix) > depth):
        return False
    pairs = zip(namespace, prefix, strict=False)
    return all(segment == part or (":" not in part and segment.split(":")[0] == part) for segment, part in pairs)


def clean(text: str) -> str:
    """Halves of surrogate pairs cannot be encoded; a host replaces them (cases/reproduced.md R9)."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
