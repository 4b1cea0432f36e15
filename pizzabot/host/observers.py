"""Plugins that are told: each has a queue and a task of its own, so that none can hold up a run or another one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.observers import Observer
from pizzabot_hookspecs.storage_backends import Run

OBSERVER_SECONDS = 10.0
MAX_WAITING_CALLS = 1000
"""Calls that wait for one observer; further ones are dropped, counted and logged."""
DRAIN_SECONDS = 5.0

_Call = tuple[str, Callable[[], Awaitable[None]]]


class _Told:
    """One observer with its queue."""

    def __init__(self, name: str, observer: Observer, logger: Logger) -> None:
        self._name = name
        self.observer = observer
        self._logger = logger
        self._queue: asyncio.Queue[_Call | None] = asyncio.Queue(MAX_WAITING_CALLS)
        self.dropped = 0
        self.task = asyncio.create_task(self._work(), name=f"observer {name}")

    def tell(self, what: str, call: Callable[[], Awaitable[None]]) -> None:
        try:
            self._queue.put_nowait((what, call))
        except asyncio.QueueFull:
            self.dropped += 1
            if self.dropped == 1 or self.dropped % MAX_WAITING_CALLS == 0:
                self._logger.warning("observer.behind", observer=self._name, dropped=self.dropped)

    async def _work(self) -> None:
        while (item := await self._queue.get()) is not None:
            what, call = item
            try:
                async with asyncio.timeout(OBSERVER_SECONDS):
                    await call()
            except Exception as error:  # noqa: BLE001 - an observer's error is its own
                self._logger.error(
                    "observer.failed", observer=self._name, call=what, cause=type(error).__name__, detail=str(error)
                )

    async def drain(self) -> None:
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._queue.put(None)
                await self.task
        except TimeoutError:
            self.task.cancel()


class ObserverBoard:
    """Tells every observer; created with the host's loop running."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._told: list[_Told] = []

    def add(self, name: str, observer: Observer) -> None:
        self._told.append(_Told(name, observer, self._logger))

    def run_started(self, run: Run) -> None:
        self._tell("run_started", run)

    def run_finished(self, run: Run) -> None:
        self._tell("run_finished", run)

    def started(self) -> None:
        self._tell("started")

    def _tell(self, what: str, *facts: object) -> None:
        for told in self._told:
            method = getattr(told.observer, what, None)
            if method is not None:
                told.tell(what, partial(method, *facts))

    async def stop(self) -> None:
        """Tell them that the host stops, and let each finish what it was told."""
        self._tell("stopping")
        await asyncio.gather(*(told.drain() for told in self._told))
