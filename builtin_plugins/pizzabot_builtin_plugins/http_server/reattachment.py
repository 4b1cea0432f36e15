"""The Python SDK's watcher: did it come before its run or after it? It must never be told of an older one's end.

The SDK takes the first root end that its watcher shows for that of its own run. With a thread id of the caller's it
opens the watcher before `run.start`: a thread whose latest run has ended must be silent until the next one. With an id
of its own it opens it after `run.start`, when a short run may have ended already: that one must be shown. The two look
alike on the wire, so the server remembers runs that the SDK started while none of its watchers was there.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator
from typing import Any, TypeAlias

from pizzabot_builtin_plugins.http_server.subscriptions import Subscription
from pizzabot_hookspecs.host import ClientView, EventBatch

MAX_EXPECTED = 4096
"""Threads whose watcher is still to come; the oldest is forgotten first: its watcher waits for the next run."""

_WATCHED = frozenset({"lifecycle", "input"})

Key: TypeAlias = tuple[str, str]
"""Owner and thread."""


def is_watcher(wanted: Subscription) -> bool:
    """Whether this is the SDK's always-on watcher, on its first connection."""
    asked = wanted.filter
    return asked.view is ClientView.PYTHON and wanted.since is None and asked.channels == _WATCHED


class Reattachment:
    """Owned by one transport."""

    def __init__(self) -> None:
        self._watching: Counter[Key] = Counter()
        self._expected: OrderedDict[Key, None] = OrderedDict()

    def run_started(self, key: Key) -> None:
        """The SDK started a run."""
        if self._watching[key] == 0:
            self._expected[key] = None
            self._expected.move_to_end(key)
            while len(self._expected) > MAX_EXPECTED:
                self._expected.popitem(last=False)

    def opens(self, key: Key) -> Watch:
        """A watcher is being opened: it counts from now on, not from its first event, for a run may start meanwhile."""
        came_first = key not in self._expected
        self._expected.pop(key, None)
        return Watch(self._watching, key, came_first=came_first)


class Watch:
    """One watcher. `came_first` says whether it was there before its run; `release` when it is gone, once is enough."""

    def __init__(self, watching: Counter[Key], key: Key, *, came_first: bool) -> None:
        self.came_first = came_first
        self._watching = watching
        self._key: Key | None = key
        watching[key] += 1

    def release(self) -> None:
        if self._key is not None:
            self._watching[self._key] -= 1
            if not self._watching[self._key]:
                del self._watching[self._key]
            self._key = None


class Watched(AsyncGenerator[EventBatch, None]):
    """The same batches; closing them releases the watch."""

    def __init__(self, watch: Watch, batches: AsyncGenerator[EventBatch, None]) -> None:
        self._watch = watch
        self._batches = batches

    async def asend(self, value: None, /) -> EventBatch:
        return await self._batches.asend(value)

    async def athrow(self, *error: Any) -> EventBatch:
        return await self._batches.athrow(*error)

    async def aclose(self) -> None:
        self._watch.release()
        await self._batches.aclose()
