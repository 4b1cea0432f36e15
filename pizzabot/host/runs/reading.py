"""A thread's log for one observer: subscribe, read what is stored, then tail (durable-runs rule 4, in this order)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Protocol

from pizzabot.host.runs.filters import select
from pizzabot.host.runs.hub import Hub, Subscription
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.host import EventBatch, EventFilter
from pizzabot_hookspecs.storage_backends import EventLog, InterruptStorage, LogBounds, RunStatus, RunStorage

PAGE_EVENTS = 512
"""Events read from storage at a time."""


async def open_observer(
    log: RunLog,
    hub: Hub,
    thread_id: str,
    wanted: EventFilter,
    *,
    since: int | None,
    idle_seconds: float,
    clock: Callable[[], float],
    caller: Caller,
) -> AsyncGenerator[EventBatch, None]:
    """Subscribe and place the cursor; raises `Conflict` `cursor_ahead`. The generator owns the subscription."""
    held = hub.subscribe(thread_id)
    subscription = held.__enter__()
    try:
        bounds = await log.log_bounds(thread_id, caller=caller)
        if since is None:
            cursor = await _before_latest_run(log, thread_id, bounds, skip_finished=wanted.skip_finished, caller=caller)
        else:
            cursor = _checked_cursor(bounds, since)
    except BaseException:
        held.__exit__(None, None, None)
        raise
    gap = _gap(bounds, since)
    behind = cursor < bounds.last_seq  # else the tail has what comes: it was there before the bounds were read
    reader = _Reader(log, thread_id, wanted, subscription, cursor, idle_seconds, clock, caller, behind=behind)

    async def observe() -> AsyncGenerator[EventBatch, None]:
        try:
            if gap is not None:
                yield EventBatch(gap=gap)
            async for batch in reader.batches():
                yield batch
        finally:
            held.__exit__(None, None, None)

    return observe()


class RunLog(RunStorage, InterruptStorage, EventLog, Protocol):
    """What an observer reads: the log, and which run of the thread is the latest."""


async def _before_latest_run(
    log: RunLog, thread_id: str, bounds: LogBounds, *, skip_finished: bool, caller: Caller
) -> int:
    """The cursor in front of the run that was admitted last, also while it has no event yet.

    A client that opens its stream right after `run.start` must not be shown the run before: it would take that one's
    end for its own (wire.md §3.3). `bounds` were read first, so an event of a run without one lies behind them.
    """
    pending = await log.next_pending(thread_id, caller=caller)  # asked first: a run goes from there to the active one
    active = await log.active_run(thread_id, caller=caller)
    if active is not None and active.status is RunStatus.RUNNING:
        return bounds.last_seq if active.first_seq is None else active.first_seq - 1
    if pending is not None:
        return bounds.last_seq
    if active is None:
        bounds = await log.log_bounds(thread_id, caller=caller)  # a short run may have come and gone since
        if skip_finished and not await log.open_interrupts(thread_id, limit=1, caller=caller):
            return bounds.last_seq
    return bounds.last_seq if bounds.latest_run_seq is None else bounds.latest_run_seq - 1


def _checked_cursor(bounds: LogBounds, since: int) -> int:
    if since > bounds.last_seq:
        raise Conflict(
            "cursor_ahead",
            f"since={since} lies beyond the end of this thread's log ({bounds.last_seq}): "
            "read from 0, or without since for the latest run",
        )
    return since


def _gap(bounds: LogBounds, since: int | None) -> Mapping[str, int] | None:
    if since is None or bounds.first_seq == 0 or since + 1 >= bounds.first_seq:
        return None
    return {"requested": since, "earliest": bounds.first_seq, "latest": bounds.last_seq}


class _Reader:
    """The cursor of one observer, and what moves it."""

    def __init__(
        self,
        log: EventLog,
        thread_id: str,
        wanted: EventFilter,
        subscription: Subscription,
        cursor: int,
        idle_seconds: float,
        clock: Callable[[], float],
        caller: Caller,
        *,
        behind: bool,
    ) -> None:
        self._log = log
        self._thread_id = thread_id
        self._wanted = wanted
        self._subscription = subscription
        self._cursor = cursor
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._caller = caller
        self._behind = behind

    async def batches(self) -> AsyncGenerator[EventBatch, None]:
        spoke = self._clock()
        behind = self._behind
        while not self._subscription.closed:
            if behind:
                async for batch in self._catch_up():
                    spoke = self._clock()
                    yield batch
            quiet = self._clock() - spoke
            if quiet >= self._idle_seconds:
                spoke = self._clock()
                yield EventBatch()
                quiet = 0.0
            woken = await self._subscription.wait(self._idle_seconds - quiet)
            tail = self._tail()
            behind = tail is None or not woken
            if tail is not None and tail.events:
                spoke = self._clock()
                yield tail

    async def _catch_up(self) -> AsyncGenerator[EventBatch, None]:
        """What is stored after the cursor. Also taken after each silence: another process may write to the same log."""
        while not self._subscription.closed:
            events = await self._log.events(self._thread_id, after=self._cursor, limit=PAGE_EVENTS, caller=self._caller)
            if not events:
                return
            self._cursor = events[-1].seq
            if wanted := select(events, self._wanted):
                yield EventBatch(events=wanted)
            if len(events) < PAGE_EVENTS:
                return

    def _tail(self) -> EventBatch | None:
        """What was published after the cursor and not read already; None when the log must be read instead."""
        events = self._subscription.after(self._cursor, caller=self._caller)
        if events is None:
            return None
        if not events:
            return EventBatch()
        self._cursor = events[-1].seq
        return EventBatch(events=self._subscription.selected(events, self._wanted))
