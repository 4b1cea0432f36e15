"""Events into the log: batched, fenced by the run's epoch, published once they are stored (durable-runs rule 3).

The pump never waits for the disk unless the buffer is full. One task per run writes: at once for the first event, after
`URGENT_SECONDS` for everything that is not a text delta (a graph's step makes several), else after `BATCH_SECONDS` or
`BATCH_EVENTS`. While a write is under way the next batch collects, so a slow disk makes larger batches and never more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from pizzabot.host.runs.hub import Hub
from pizzabot_hookspecs import SYSTEM, Logger, Unavailable
from pizzabot_hookspecs.interrupts import NewInterrupt
from pizzabot_hookspecs.storage_backends import NewEvent, Run, RunStatus, RunStorage, StoredEvent
from pizzabot_hookspecs.support.patience import patiently

BATCH_SECONDS = 0.03
URGENT_SECONDS = 0.002
BATCH_EVENTS = 32
MAX_BUFFER_EVENTS = 2048
"""Events that wait for the disk before the pump, and with it the model, is made to wait."""
MAX_TRANSACTION_EVENTS = 512

_Write: TypeAlias = Callable[[], Awaitable[int]]


class EventWriter:
    """The log's end for one claimed run. `failure` is set once, when nothing more can be written."""

    def __init__(self, storage: RunStorage, hub: Hub, run: Run, *, logger: Logger) -> None:
        self._storage = storage
        self._hub = hub
        self._run = run
        self._logger = logger
        self._buffer: list[NewEvent] = []
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._now = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._closing = False
        self._empty_log = True
        self.first_seq: int | None = None
        """Where this writer's first event is; None before it is stored."""
        self.failure: BaseException | None = None
        self._task = asyncio.create_task(self._write_batches(), name=f"log of {run.run_id}")

    async def add(self, event: NewEvent, *, urgent: bool) -> None:
        """Take an event. Raises what made writing impossible: the run has lost its row, or storage stays broken."""
        if self.failure is not None:
            raise self.failure
        self._buffer.append(event)
        self._wake.set()
        if self._empty_log or len(self._buffer) >= BATCH_EVENTS:
            self._empty_log = False
            self._now.set()
            self._hurry.set()
        elif urgent:
            self._hurry.set()
        if len(self._buffer) >= MAX_BUFFER_EVENTS:
            self._room.clear()
            await self._room.wait()

    async def finish(
        self,
        events: Sequence[NewEvent],
        *,
        status: RunStatus,
        error_code: str | None,
        error: str | None,
        interrupts: Sequence[NewInterrupt] = (),
        withdraw: bool = False,
    ) -> None:
        """Write what waits, then `events`, the status and the interrupts in one transaction, and publish them."""
        self._closing = True
        for event in (self._wake, self._hurry, self._now):
            event.set()
        await self._task
        if self.failure is not None:
            raise self.failure
        last = [*self._buffer, *events]
        self._buffer = []

        async def write() -> int:
            return await self._storage.finish_run(
                self._run.run_id,
                self._run.epoch,
                last,
                status=status,
                error_code=error_code,
                error=error,
                interrupts=interrupts,
                withdraw=withdraw,
                caller=SYSTEM,
            )

        self._publish(await self._patiently(write), last)

    async def abandon(self) -> None:
        """Write nothing more: the process is going down, or the row is somebody else's now."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _write_batches(self) -> None:
        try:
            while not self._has_last_batch():
                await self._wake.wait()
                if await _within(BATCH_SECONDS, self._hurry):
                    await _within(URGENT_SECONDS, self._now)
                if not self._has_last_batch():
                    await self._write_one()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - handed to the pump, which is the one that can act on it
            self.failure = error
            self._room.set()

    def _has_last_batch(self) -> bool:
        """Whether what waits goes into the transaction of the status."""
        return self._closing and len(self._buffer) <= MAX_TRANSACTION_EVENTS

    async def _write_one(self) -> None:
        batch, self._buffer = self._buffer[:MAX_TRANSACTION_EVENTS], self._buffer[MAX_TRANSACTION_EVENTS:]
        if not self._buffer:
            self._wake.clear()
            self._hurry.clear()
            self._now.clear()
        if len(self._buffer) < MAX_BUFFER_EVENTS:
            self._room.set()
        if not batch:
            return

        async def write() -> int:
            return await self._storage.append_events(self._run.run_id, self._run.epoch, batch, caller=SYSTEM)

        self._publish(await self._patiently(write), batch)

    async def _patiently(self, write: _Write) -> int:
        return await patiently(write, waits=self._tell_of_waiting)

    def _tell_of_waiting(self, error: Unavailable) -> None:
        self._logger.warning("run.log_waits", run_id=self._run.run_id, code=error.code, detail=error.detail)

    def _publish(self, first_seq: int, events: Sequence[NewEvent]) -> None:
        if self.first_seq is None:
            self.first_seq = first_seq
        thread_id = self._run.thread_id
        if not events or not self._hub.watched(thread_id):
            return
        self._hub.publish(
            thread_id,
            [
                StoredEvent(
                    seq=seq,
                    thread_id=thread_id,
                    run_id=self._run.run_id,
                    method=event.method,
                    data=event.data,
                    timestamp=event.timestamp,
                    namespace=event.namespace,
                    node=event.node,
                    name=event.name,
                )
                for seq, event in enumerate(events, start=first_seq)
            ],
            owner=self._run.owner,
        )


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Whether the event is set by then."""
    if not event.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()
    return event.is_set()
