"""Activity of a scripted host: a subscriber remembers what it told and tells the difference."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from pizzabot.testing.scripted_host.log import Changes
from pizzabot_hookspecs.host import Activity
from pizzabot_hookspecs.interrupts import Interrupt
from pizzabot_hookspecs.storage_backends import Thread

MAX_TOLD = 200

Reading = tuple[Sequence[Thread], Sequence[Interrupt]]


class ActivityFeed:
    """Whoever follows the activity of a host. `changes.notify` says that something may have changed."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.subscribers = 0
        self.closed = False

    def close(self) -> None:
        self.closed = True
        self.changes.notify()

    async def follow(self, read: Callable[[], Reading], idle_seconds: float) -> AsyncGenerator[Activity, None]:
        """The first item, an empty one, comes at once and says that the subscriber is attached."""
        self.subscribers += 1
        self.changes.notify()
        try:
            yield Activity()
            threads, inbox = read()
            yield Activity(complete=True, threads=threads[:MAX_TOLD], inbox=inbox[:MAX_TOLD])
            while not self.closed:
                before = {thread.thread_id: thread for thread in threads}, inbox
                threads, inbox = read()
                told = _difference(before, (threads, inbox))
                if told is not None:
                    yield told
                elif not await self._woken(idle_seconds):
                    yield Activity()
        finally:
            self.subscribers -= 1
            self.changes.notify()

    async def _woken(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self.changes.wait()
        except TimeoutError:
            return False
        return True


def _difference(before: tuple[dict[str, Thread], Sequence[Interrupt]], now: Reading) -> Activity | None:
    known, inbox_before = before
    threads, inbox = now
    changed = [thread for thread in threads if known.get(thread.thread_id) != thread]
    deleted = sorted(known.keys() - {thread.thread_id for thread in threads})
    waits = None if inbox == inbox_before else inbox[:MAX_TOLD]
    if not changed and not deleted and waits is None:
        return None
    return Activity(threads=changed, deleted=deleted, inbox=waits)
