"""What changes on a person's threads, told to whoever watches all of them: states, read when they are told.

A watcher holds the ids of threads that changed, at most `MAX_CHANGED`; one that falls further behind is told the whole
again. So being slow costs no memory and misses nothing that still holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing
from typing import Any

from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.host import Activity
from pizzabot_hookspecs.storage_backends import Storage, Thread

MAX_CHANGED = 200
"""Threads that changed and were not told to one watcher yet, and rows of a complete `Activity`."""
GATHER_SECONDS = 0.05
"""How long a change waits for others: a run that begins and asks at once is told once."""


class ActivityBoard:
    """The watchers of one host. `changed` and `close` are called on its loop."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._watches: set[_Watch] = set()
        self._closed = False

    def changed(self, owner: str, thread_id: str, *, inbox: bool = False) -> None:
        """A thread, or what waits on it, is not as it was. Cheap where nobody watches."""
        for watch in self._watches:
            if watch.sees(owner):
                watch.note(thread_id, inbox=inbox)

    def watch(self, *, idle_seconds: float, caller: Caller) -> AsyncGenerator[Activity, None]:
        """Watches from now on, until the generator is closed; the first `Activity` is the whole."""
        watch = _Watch(self._storage, self._watches, caller)
        if self._closed:
            watch.close()
        return _Told(watch, watch.told(idle_seconds))

    def close(self) -> None:
        """End every watcher; later ones end at once."""
        self._closed = True
        for watch in list(self._watches):
            watch.close()

    def __len__(self) -> int:
        return len(self._watches)


class _Watch:
    """What one watcher was not told yet."""

    def __init__(self, storage: Storage, watches: set[_Watch], caller: Caller) -> None:
        self._storage = storage
        self._caller = caller
        self._watches = watches
        self._wake = asyncio.Event()
        self._complete = True
        self._threads: set[str] = set()
        self._inbox = False
        self._ended = False
        watches.add(self)

    def sees(self, owner: str) -> bool:
        return self._caller.system or self._caller.owner == owner

    def note(self, thread_id: str, *, inbox: bool) -> None:
        self._threads.add(thread_id)
        self._inbox = self._inbox or inbox
        if len(self._threads) > MAX_CHANGED:
            self._complete = True
            self._threads.clear()
        self._wake.set()

    def close(self) -> None:
        self._watches.discard(self)
        self._ended = True
        self._wake.set()

    async def told(self, idle_seconds: float) -> AsyncGenerator[Activity, None]:
        while not self._ended:
            yield await self._activity()
            if self._complete or self._wake.is_set():
                await asyncio.sleep(GATHER_SECONDS)
                continue
            try:
                async with asyncio.timeout(idle_seconds):
                    await self._wake.wait()
                await asyncio.sleep(GATHER_SECONDS)
            except TimeoutError:
                continue  # nothing changed: an empty one is told

    async def _activity(self) -> Activity:
        complete, changed, inbox = self._complete, sorted(self._threads), self._inbox
        self._complete, self._inbox = False, False
        self._threads.clear()
        self._wake.clear()  # before the reading: what changes meanwhile is told again
        waiting = await self._storage.open_interrupts(caller=self._caller) if complete or inbox else None
        if complete:
            threads = await self._storage.threads(limit=MAX_CHANGED, caller=self._caller)
            return Activity(complete=True, threads=threads, inbox=waiting)
        rows: list[Thread] = []
        deleted: list[str] = []
        for thread_id in changed:
            row = await self._storage.thread(thread_id, caller=self._caller)
            if row is None:
                deleted.append(thread_id)
            else:
                rows.append(row)
        return Activity(threads=rows, deleted=deleted, inbox=waiting)


class _Told(AsyncGenerator[Activity, None]):
    """The activities; closing them ends the watch, also when nobody ever read one."""

    def __init__(self, watch: _Watch, told: AsyncGenerator[Activity, None]) -> None:
        self._watch = watch
        self._told = told

    async def asend(self, value: None, /) -> Activity:
        return await self._told.asend(value)

    async def athrow(self, *error: Any) -> Activity:
        return await self._told.athrow(*error)

    async def aclose(self) -> None:
        with closing(self._watch):
            await self._told.aclose()
