"""Who is told about new events: one subscription per observer, bounded, and never the place where events live.

A subscription that falls behind drops what it holds and says `lagging`; its reader then goes back to the stored log.
So a slow reader costs memory up to `MAX_PENDING_EVENTS` and never an event (durable-runs rule 4).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pizzabot_hookspecs.storage_backends import StoredEvent

MAX_PENDING_EVENTS = 2048
"""Events that wait for one observer before it is sent back to the log."""


class Subscription:
    """What one observer has not seen yet. `closed` means that nothing more will come."""

    __slots__ = ("_batches", "_count", "_wake", "closed", "lagging")

    def __init__(self) -> None:
        self._batches: deque[Sequence[StoredEvent]] = deque()
        self._count = 0
        self._wake = asyncio.Event()
        self.lagging = False
        self.closed = False

    def push(self, events: Sequence[StoredEvent]) -> None:
        if self._count + len(events) > MAX_PENDING_EVENTS:
            self._batches.clear()
            self._count = 0
            self.lagging = True
        else:
            self._batches.append(events)
            self._count += len(events)
        self._wake.set()

    def close(self) -> None:
        self.closed = True
        self._wake.set()

    def take(self) -> list[StoredEvent]:
        """Everything that waits, oldest first; empty when nothing does or the reader has to catch up."""
        taken = [event for batch in self._batches for event in batch]
        self._batches.clear()
        self._count = 0
        self._wake.clear()
        return taken

    async def wait(self, seconds: float) -> bool:
        """Until something happens, at most `seconds`; whether it did."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True


class Hub:
    """The subscriptions by thread."""

    def __init__(self) -> None:
        self._subscriptions: dict[str, set[Subscription]] = {}
        self._closed = False

    @contextmanager
    def subscribe(self, thread_id: str) -> Iterator[Subscription]:
        subscription = Subscription()
        if self._closed:
            subscription.close()
        self._subscriptions.setdefault(thread_id, set()).add(subscription)
        try:
            yield subscription
        finally:
            held = self._subscriptions.get(thread_id)
            if held is not None:
                held.discard(subscription)
                if not held:
                    del self._subscriptions[thread_id]

    def watched(self, thread_id: str) -> bool:
        return thread_id in self._subscriptions

    def publish(self, thread_id: str, events: Sequence[StoredEvent]) -> None:
        """Tell the thread's observers about events that are stored."""
        for subscription in self._subscriptions.get(thread_id, ()):
            subscription.push(events)

    def close_thread(self, thread_id: str) -> None:
        for subscription in self._subscriptions.get(thread_id, ()):
            subscription.close()

    def close(self) -> None:
        """End every observer; later ones end at once."""
        self._closed = True
        for thread_id in list(self._subscriptions):
            self.close_thread(thread_id)

    def __len__(self) -> int:
        return sum(len(held) for held in self._subscriptions.values())
