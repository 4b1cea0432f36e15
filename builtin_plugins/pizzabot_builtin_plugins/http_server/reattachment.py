"""The Python SDK's watcher: is it there for a run that has begun already? It must never be told of an older one's end.

The SDK takes the first root end that its watcher shows for that of its own run. With a thread id of the caller's it
opens the watcher before `run.start`: a thread whose latest run has ended must be silent until the next one. With an id
of its own it opens it after `run.start`, and it opens it again, without a cursor, when the connection broke before its
first event; a short run may have ended by then: that one must be shown. The two look alike on the wire, so the server
remembers runs that the SDK started and whose end no watcher was told.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Callable
from typing import Any, Self, TypeAlias

import orjson

from pizzabot_builtin_plugins.http_server.subscriptions import Subscription
from pizzabot_hookspecs.host import ClientView, EventBatch
from pizzabot_hookspecs.storage_backends import StoredEvent

MAX_EXPECTED = 4096
"""Threads with a run whose end is to be told; the oldest is forgotten first: its watcher waits for the next run."""
RETURN_SECONDS = 10.0
"""How long after its last watcher went a run's end is kept for one that returns. Later, a new one is meant."""

_WATCHED = frozenset({"lifecycle", "input"})

Key: TypeAlias = tuple[str, str]
"""Owner and thread."""


def is_watcher(wanted: Subscription) -> bool:
    """Whether this is the SDK's always-on watcher, with a cursor once it has seen an event."""
    return wanted.filter.view is ClientView.PYTHON and wanted.filter.channels == _WATCHED


class Reattachment:
    """Owned by one transport; `clock` is in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._watching: Counter[Key] = Counter()
        self._expected: OrderedDict[Key, float | None] = OrderedDict()
        self.starting: dict[Key, set[Start]] = {}

    def run_starts(self, key: Key) -> Start:
        """The SDK asks for a run; `came_about` is called when it was admitted. It may have ended by then."""
        return Start(self, key)

    def expect(self, key: Key) -> None:
        """A run was started whose end no watcher was told yet."""
        self._expected[key] = None
        self._expected.move_to_end(key)
        while len(self._expected) > MAX_EXPECTED:
            self._expected.popitem(last=False)

    def opens(self, key: Key) -> Watch:
        """A watcher is being opened: it counts from now on, not from its first event, for a run may start meanwhile."""
        until = self._expected.get(key, 0.0)
        if until is not None and until < self._clock():
            self._expected.pop(key, None)
        return Watch(self, key, came_first=key not in self._expected)

    def came(self, key: Key) -> None:
        self._watching[key] += 1

    def went(self, key: Key) -> None:
        self._watching[key] -= 1
        if not self._watching[key]:
            del self._watching[key]
            if key in self._expected:
                self._expected[key] = self._clock() + RETURN_SECONDS

    def end_was_told(self, key: Key) -> None:
        self._expected.pop(key, None)
        for start in self.starting.get(key, ()):
            start.ended = True


class Start:
    """A `run.start` under way. A watcher that is opened meanwhile came before the run, as far as anybody can tell."""

    def __init__(self, reattachment: Reattachment, key: Key) -> None:
        self.ended = False
        self._reattachment = reattachment
        self._key = key

    def __enter__(self) -> Self:
        self._reattachment.starting.setdefault(self._key, set()).add(self)
        return self

    def __exit__(self, *_: object) -> None:
        starting = self._reattachment.starting[self._key]
        starting.discard(self)
        if not starting:
            del self._reattachment.starting[self._key]

    def came_about(self) -> None:
        if not self.ended:
            self._reattachment.expect(self._key)


class Watch:
    """One watcher. `came_first` says whether it was there before its run; `release` when it is gone, once is enough."""

    def __init__(self, reattachment: Reattachment, key: Key, *, came_first: bool) -> None:
        self.came_first = came_first
        self._reattachment = reattachment
        self._key: Key | None = key
        reattachment.came(key)

    def end_was_told(self) -> None:
        if self._key is not None:
            self._reattachment.end_was_told(self._key)

    def release(self) -> None:
        if self._key is not None:
            self._reattachment.went(self._key)
            self._key = None


class Watched(AsyncGenerator[EventBatch, None]):
    """The same batches; closing them releases the watch. Who asks for the next one has written the one before."""

    def __init__(self, watch: Watch, batches: AsyncGenerator[EventBatch, None]) -> None:
        self._watch = watch
        self._batches = batches
        self._ended = False

    async def asend(self, value: None, /) -> EventBatch:
        if self._ended:
            self._watch.end_was_told()
        batch = await self._batches.asend(value)
        self._ended = any(_is_end(event) for event in batch.events)
        return batch

    async def athrow(self, *error: Any) -> EventBatch:
        return await self._batches.athrow(*error)

    async def aclose(self) -> None:
        self._watch.release()
        await self._batches.aclose()


def _is_end(event: StoredEvent) -> bool:
    if event.method != "lifecycle" or event.namespace:
        return False
    return bool(orjson.loads(event.data).get("event") != "running")
