"""Who is told about new events: one tail per watched thread, shared by its observers; the log is where events live.

An observer has nothing but its cursor. What lies between the cursor and the tail's end is handed out from the tail, to
all observers the same; one that fell further behind goes back to the stored log. So a slow reader costs no memory and
never an event (durable-runs rule 4), and many readers cost a run little: they are woken together, and not again before
nine times as long has passed as they took.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pizzabot.host.runs.filters import select
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.host import EventFilter
from pizzabot_hookspecs.storage_backends import StoredEvent

MAX_TAIL_EVENTS = 16_384
"""Events that a watched thread's tail holds, for all its observers together."""
MAX_TAIL_BYTES = 8 * 1024 * 1024
OBSERVERS_SHARE = 0.1
"""Of the loop's time, what the observers of one thread take while its run goes on."""
MAX_PAUSE_SECONDS = 0.1
"""Between two times that observers are woken, however long they took."""
_KEPT_SELECTIONS = 16


class Subscription:
    """One observer of a thread. `closed` means that nothing more will come."""

    __slots__ = ("_tail", "_wake", "closed")

    def __init__(self, tail: Tail) -> None:
        self._tail = tail
        self._wake = asyncio.Event()
        self.closed = False

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        self.closed = True
        self._wake.set()

    def after(self, cursor: int, *, caller: Caller) -> Sequence[StoredEvent] | None:
        """What was published after `cursor`, oldest first; None when some of it has to be read from the log.

        The log alone knows whose thread it is where the tail belongs to another owner: it shows nothing then.
        """
        self._wake.clear()
        return self._tail.after(cursor) if self._tail.may_be_seen_by(caller) else None

    def selected(self, events: Sequence[StoredEvent], wanted: EventFilter) -> Sequence[StoredEvent]:
        """Those of `events`, which `after` gave, that are wanted; the same object for all who want the same."""
        return self._tail.selected(events, wanted)

    async def wait(self, seconds: float) -> bool:
        """Until something happens, at most `seconds`; whether it did."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True


class Tail:
    """The newest events of a watched thread, without a gap between them, and who is to be woken for them."""

    def __init__(self) -> None:
        self.subscriptions: set[Subscription] = set()
        self._owner: str | None = None
        self._events: list[StoredEvent] = []
        self._bytes = 0
        self._selections: dict[tuple[EventFilter, int, int], Sequence[StoredEvent]] = {}
        self._waking: asyncio.Handle | None = None
        self._not_before = 0.0

    def may_be_seen_by(self, caller: Caller) -> bool:
        return self._owner is None or caller.system or caller.owner == self._owner

    def publish(self, events: Sequence[StoredEvent], *, owner: str) -> None:
        self._owner = owner
        if self._events and events[0].seq != self._events[-1].seq + 1:
            self._events, self._bytes = [], 0  # another process wrote in between
        self._events.extend(events)
        self._bytes += sum(len(event.data) for event in events)
        if len(self._events) > MAX_TAIL_EVENTS or self._bytes > MAX_TAIL_BYTES:
            self._forget_the_oldest()
        if self._waking is None:
            loop = asyncio.get_running_loop()
            self._waking = loop.call_at(max(self._not_before, loop.time()), self._wake_all)

    def after(self, cursor: int) -> Sequence[StoredEvent] | None:
        if not self._events or self._events[-1].seq <= cursor:
            return ()
        first = self._events[0].seq
        return None if cursor + 1 < first else self._events[cursor + 1 - first :]

    def selected(self, events: Sequence[StoredEvent], wanted: EventFilter) -> Sequence[StoredEvent]:
        key = (wanted, events[0].seq, events[-1].seq)
        known = self._selections.get(key)
        if known is None:
            if len(self._selections) >= _KEPT_SELECTIONS:
                self._selections.clear()
            known = self._selections[key] = select(events, wanted)
        return known

    def _forget_the_oldest(self) -> None:
        """Down to half of either limit, so that it happens rarely; the newest event stays."""
        first, size = len(self._events) - 1, len(self._events[-1].data)
        while first > max(0, len(self._events) - MAX_TAIL_EVENTS // 2):
            larger = size + len(self._events[first - 1].data)
            if larger > MAX_TAIL_BYTES // 2:
                break
            first, size = first - 1, larger
        del self._events[:first]
        self._bytes = size
        self._selections.clear()

    def _wake_all(self) -> None:
        self._waking = None
        loop = asyncio.get_running_loop()
        for subscription in self.subscriptions:
            subscription.wake()
        # What was just woken runs before this, all in the loop's next round.
        loop.call_soon(self._woken, loop.time())

    def _woken(self, began: float) -> None:
        now = asyncio.get_running_loop().time()
        self._not_before = now + min((now - began) * (1 / OBSERVERS_SHARE - 1), MAX_PAUSE_SECONDS)


class Hub:
    """The tails of the threads that somebody watches."""

    def __init__(self) -> None:
        self._tails: dict[str, Tail] = {}
        self._closed = False

    @contextmanager
    def subscribe(self, thread_id: str) -> Iterator[Subscription]:
        tail = self._tails.setdefault(thread_id, Tail())
        subscription = Subscription(tail)
        if self._closed:
            subscription.close()
        tail.subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            tail.subscriptions.discard(subscription)
            if not tail.subscriptions and self._tails.get(thread_id) is tail:
                del self._tails[thread_id]

    def watched(self, thread_id: str) -> bool:
        return thread_id in self._tails

    def publish(self, thread_id: str, events: Sequence[StoredEvent], *, owner: str) -> None:
        """Tell the thread's observers about events of `owner`'s that are stored."""
        tail = self._tails.get(thread_id)
        if tail is not None and events:
            tail.publish(events, owner=owner)

    def close_thread(self, thread_id: str) -> None:
        """End the observers that the thread has; what comes under its id later is another thread's."""
        tail = self._tails.pop(thread_id, None)
        for subscription in () if tail is None else tail.subscriptions:
            subscription.close()

    def close(self) -> None:
        """End every observer; later ones end at once."""
        self._closed = True
        for thread_id in list(self._tails):
            self.close_thread(thread_id)

    def __len__(self) -> int:
        return sum(len(tail.subscriptions) for tail in self._tails.values())
