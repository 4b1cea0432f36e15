"""The log of each thread: appending under an epoch, reading after a cursor, merging the deltas of ended runs."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import replace

from pizzabot_builtin_plugins.memory_storage.rows import (
    RunRow,
    ThreadRow,
    check_limit,
    may_touch,
    no_such_thread,
    run_copy,
)
from pizzabot_builtin_plugins.memory_storage.state import State
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.storage_backends import LogBounds, MergedEvents, NewEvent, Run, StoredEvent


class LogTables(State):
    def append(self, run_id: str, epoch: int, events: Sequence[NewEvent], *, caller: Caller) -> int:
        row = self._held(run_id, epoch, caller)
        first = self._append(self._threads[row.run.thread_id], run_id, events)
        if events and row.first_seq is None:
            row.first_seq = first
            row.run = replace(row.run, first_seq=first)
        return first

    def append_facts(self, thread_id: str, events: Sequence[NewEvent], *, caller: Caller) -> int:
        row = self._thread_row(thread_id, caller)
        if row is None:
            raise no_such_thread(thread_id)
        return self._append(row, None, events)

    def latest_fact(self, thread_id: str, names: Collection[str], *, caller: Caller) -> StoredEvent | None:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return None
        newest = [_newest(row, name) for name in names]
        return max((event for event in newest if event is not None), key=_seq, default=None)

    def events(self, thread_id: str, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        check_limit(limit)
        row = self._thread_row(thread_id, caller)
        if row is None:
            return []
        start = bisect_right(row.events, after, key=_seq)
        return row.events[start : start + limit]

    def log_bounds(self, thread_id: str, *, caller: Caller) -> LogBounds:
        row = self._thread_row(thread_id, caller)
        if row is None or not row.events:
            return LogBounds(first_seq=0, last_seq=0, latest_run_seq=None)
        latest = self._latest(row)
        return LogBounds(
            first_seq=row.events[0].seq,
            last_seq=row.events[-1].seq,
            latest_run_seq=None if latest is None else latest.first_seq,
        )

    def mergeable_runs(self, *, ended_before: float, limit: int, caller: Caller) -> Sequence[Run]:
        check_limit(limit)
        found = [
            (row.run.ended_at, run_id)
            for run_id, row in self._runs.items()
            if may_touch(row.run.owner, caller)
            and row.run.ended_at is not None
            and row.run.ended_at < ended_before
            and not row.merged
            and self._is_followed(row)
        ]
        return [run_copy(self._runs[run_id].run) for _, run_id in sorted(found, key=lambda pair: pair[0])[:limit]]

    def merge_events(self, run_id: str, merged: Sequence[MergedEvents], *, caller: Caller) -> None:
        row = self._run_row(run_id, caller)
        if row is None:
            raise NotFound("no_such_run", f"there is no run {run_id!r}")
        if not row.run.status.final:
            raise Conflict(
                "run_active", f"run {run_id!r} is {row.run.status}: only the log of a run that has ended is merged"
            )
        log = self._threads[row.run.thread_id].events
        _check(log, run_id, merged)
        for part in merged:
            start, end = bisect_left(log, part.first_seq, key=_seq), bisect_left(log, part.last_seq, key=_seq)
            log[start : end + 1] = [replace(log[end], data=part.data)]
        row.merged = True

    @staticmethod
    def _append(thread: ThreadRow, run_id: str | None, events: Sequence[NewEvent]) -> int:
        first = thread.thread.next_seq
        thread_id = thread.thread.thread_id
        stored = [stored_event(event, seq, thread_id, run_id) for seq, event in enumerate(events, start=first)]
        extend(thread, stored)
        return first

    def _latest(self, row: ThreadRow) -> RunRow | None:
        """The run that began last and has events; one that nobody claimed counts only where none was."""
        begun = [run for run in map(self._runs.__getitem__, row.runs) if run.first_seq is not None]
        return max(begun, key=lambda run: run.beginning, default=None)

    def _is_followed(self, row: RunRow) -> bool:
        latest = self._latest(self._threads[row.run.thread_id])
        return latest is not None and latest.beginning > row.beginning


def _seq(event: StoredEvent) -> int:
    return event.seq


def _check(log: Sequence[StoredEvent], run_id: str, merged: Sequence[MergedEvents]) -> None:
    end = 0
    for part in sorted(merged, key=lambda part: part.first_seq):
        inside = log[bisect_left(log, part.first_seq, key=_seq) : bisect_right(log, part.last_seq, key=_seq)]
        own = all(event.run_id == run_id for event in inside)
        if not (end < part.first_seq <= part.last_seq and own and inside and inside[-1].seq == part.last_seq):
            raise InvalidRequest(
                "invalid_range",
                f"events {part.first_seq} to {part.last_seq} of run {run_id!r} cannot become one: they are not all "
                "its own, not there or in another range too; nothing was merged",
            )
        end = part.last_seq


def extend(thread: ThreadRow, stored: Sequence[StoredEvent]) -> None:
    """Events with the next numbers of the thread."""
    thread.events.extend(stored)
    thread.thread = replace(thread.thread, next_seq=thread.thread.next_seq + len(stored))
    for event in stored:
        if event.name is not None:
            thread.named.setdefault(event.name, []).append(event.seq)


def _newest(row: ThreadRow, name: str) -> StoredEvent | None:
    for seq in reversed(row.named.get(name, [])):
        place = bisect_left(row.events, seq, key=_seq)
        if place < len(row.events) and row.events[place].seq == seq:  # else it was merged away
            return row.events[place]
    return None


def stored_event(event: NewEvent | StoredEvent, seq: int, thread_id: str, run_id: str | None) -> StoredEvent:
    return StoredEvent(
        seq=seq,
        thread_id=thread_id,
        run_id=run_id,
        method=event.method,
        data=event.data,
        timestamp=event.timestamp,
        namespace=event.namespace,
        node=event.node,
        name=event.name,
    )
