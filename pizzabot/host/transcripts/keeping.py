"""Making rows of the log: behind the runs, one thread at a time, so that no read has a long log before it.

Rows are made from rows and the log behind them, never from memory; whoever is quicker wins (`put_transcript`), and
what a crash leaves undone is done with the next run or read. `rebuild` begins at the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from pizzabot.host.transcript import Entry, entry_of_event, fold
from pizzabot.host.transcript.rows import rows_of, state_from_rows, summary_of, turns_of_events, unsettled_turns
from pizzabot_hookspecs import SYSTEM, Logger
from pizzabot_hookspecs.storage_backends import Storage, StoredEvent

KEEP_AFTER_EVENTS = 512
"""Events behind the rows, from which on new rows are made when a run has ended."""
EVENTS_AT_ONCE = 2_000
"""Events that are read and folded at once."""
MAX_WAITING_THREADS = 10_000
"""Threads that wait for rows, and whose cursor is remembered; further ones are looked at after their next run."""


class TranscriptKeeper:
    """`behind` is called for each run that has ended, and costs it nothing."""

    def __init__(self, storage: Storage, *, logger: Logger) -> None:
        self._storage = storage
        self._logger = logger
        self._waiting: dict[str, None] = {}
        self._cursors: dict[str, int] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._work(), name="transcript rows")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def behind(self, thread_id: str) -> None:
        """A run of the thread has ended, or a read had a long log before it: look whether rows are to be made."""
        if len(self._waiting) < MAX_WAITING_THREADS:
            self._waiting[thread_id] = None
            self._wake.set()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                thread_id = next(iter(self._waiting))
                del self._waiting[thread_id]
                try:
                    await self.keep(thread_id)
                except Exception as error:  # noqa: BLE001 - the log has everything: the next run or read tries again
                    self._logger.warning(
                        "transcript.not_kept", thread_id=thread_id, cause=type(error).__name__, detail=str(error)
                    )

    async def keep(self, thread_id: str, *, least: int = KEEP_AFTER_EVENTS) -> int:
        """Make rows of what is behind them where that are `least` events; how many events there were."""
        bounds = await self._storage.log_bounds(thread_id, caller=SYSTEM)
        known = self._cursors.get(thread_id, 0)
        if known > bounds.last_seq:
            known = 0  # another thread has the id now
        if bounds.last_seq - known < max(least, 1):
            return 0
        cursor = (await self._storage.transcript_index(thread_id, caller=SYSTEM)).cursor
        begun = cursor
        if bounds.last_seq - cursor >= max(least, 1):
            async for reached in self._advance(thread_id):
                cursor = reached
        if len(self._cursors) >= MAX_WAITING_THREADS:
            self._cursors.clear()
        self._cursors[thread_id] = cursor
        return cursor - begun

    async def rebuild(self, thread_id: str) -> AsyncIterator[int]:
        """Drop the rows and make them anew; yields how many events are folded so far, after each step."""
        await self._storage.drop_transcript(thread_id, caller=SYSTEM)
        async for cursor in self._advance(thread_id):
            yield cursor

    async def _advance(self, thread_id: str) -> AsyncIterator[int]:
        storage = self._storage
        thread = await storage.thread(thread_id, caller=SYSTEM)
        while thread is not None:
            index = await storage.transcript_index(thread_id, caller=SYSTEM)
            events = await storage.events(thread_id, after=index.cursor, limit=EVENTS_AT_ONCE, caller=SYSTEM)
            if not events:
                return
            entries = await asyncio.to_thread(entries_of, events)
            light = await asyncio.to_thread(state_from_rows, (), index)
            needed = list({*unsettled_turns(index), *turns_of_events(light, entries)})
            loaded = await storage.transcript_turns(thread_id, needed, caller=SYSTEM)
            before = await asyncio.to_thread(state_from_rows, loaded, index)
            after = await asyncio.to_thread(fold, before, entries)
            rows = await asyncio.to_thread(rows_of, after, before)
            now = await storage.thread(thread_id, caller=SYSTEM)
            if now is None or now.created_at != thread.created_at:
                return  # it was deleted, and made anew perhaps
            kept = await storage.put_transcript(
                thread_id,
                rows,
                after=index.cursor,
                cursor=after["cursor"],
                summary=summary_of(after),
                caller=SYSTEM,
            )
            if kept:  # else somebody was quicker: on from there
                yield after["cursor"]


def entries_of(events: Sequence[StoredEvent]) -> list[Entry]:
    return [entry_of_event(event) for event in events]
