"""The life of a run after its admission: claim, lease, cancel, end, and the questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pizzabot_builtin_plugins.memory_storage.decisions import opened
from pizzabot_builtin_plugins.memory_storage.log import LogTables
from pizzabot_builtin_plugins.memory_storage.rows import Place, ThreadRow, may_touch, run_copy
from pizzabot_hookspecs import Caller, InvalidRequest
from pizzabot_hookspecs.interrupts import InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import CancelReason, NewEvent, Run, RunStatus


class RunTables(LogTables):
    def claim_run(
        self, run_id: str, *, server_id: str, takeover: bool, lease_seconds: float, caller: Caller, now: float
    ) -> Run | None:
        row = self._run_row(run_id, caller)
        if row is None:
            return None
        thread, run = self._threads[row.run.thread_id], row.run
        claimed = replace(
            run,
            epoch=run.epoch + 1,
            attempt=run.attempt + 1,
            server_id=server_id,
            lease_until=now + lease_seconds,
        )
        if takeover:
            if not run.status.active:
                return None
            row.run = claimed
        else:
            asked = bool(self._open_of_thread(run.thread_id))
            if thread.active or run_id not in self._may_begin(thread, asked=asked):
                return None
            row.run = replace(claimed, status=RunStatus.RUNNING, started_at=now)
            thread.queue.remove(run_id)
            thread.active = run_id
            thread.beginnings += 1
            row.began = thread.beginnings
        return run_copy(row.run)

    def renew_leases(self, server_id: str, *, lease_seconds: float, caller: Caller, now: float) -> frozenset[str]:
        until = now + lease_seconds
        ours = frozenset(
            run_id
            for run_id, row in self._runs.items()
            if row.run.server_id == server_id and row.run.status.active and may_touch(row.run.owner, caller)
        )
        for run_id in ours:
            row = self._runs[run_id]
            row.run = replace(row.run, lease_until=max(row.run.lease_until or until, until))
        return ours

    def release_runs(self, server_id: str, *, caller: Caller, now: float) -> frozenset[str]:
        ours = self.renew_leases(server_id, lease_seconds=0, caller=caller, now=now)
        for run_id in ours:
            row = self._runs[run_id]
            row.run = replace(row.run, released=row.run.released + 1, lease_until=now)
        return ours

    def finish(
        self,
        run_id: str,
        epoch: int,
        events: Sequence[NewEvent],
        *,
        status: RunStatus,
        error_code: str | None,
        error: str | None,
        interrupts: Sequence[NewInterrupt],
        withdraw: bool,
        caller: Caller,
        now: float,
    ) -> int:
        if not status.final:
            raise InvalidRequest("invalid_status", f"a run cannot end as {status.value!r}: choose a final status")
        row = self._held(run_id, epoch, caller)
        waiting = [opened(row, new, now) for new in interrupts]
        first = self.append(run_id, epoch, events, caller=caller)
        thread = self._threads[row.run.thread_id]
        if thread.active == run_id:
            thread.active = None
        else:
            thread.queue.remove(run_id)
        row.run = replace(row.run, status=status, ended_at=now, error_code=error_code, error=error)
        for interrupt in waiting:
            self._interrupts.setdefault((interrupt.thread_id, interrupt.interrupt_id), interrupt)
        if withdraw:
            self._withdraw(thread, now)
        if thread.ended is None or row.beginning >= self._runs[thread.ended].beginning:
            thread.ended = run_id
        self._touch(thread, now)
        return first

    def _withdraw(self, thread: ThreadRow, now: float) -> None:
        """The turn was given up: nobody is asked any more, and no resume goes on with it."""
        for interrupt in self._open_of_thread(thread.thread.thread_id):
            withdrawn = replace(interrupt, state=InterruptState.WITHDRAWN, decided_at=now)
            self._interrupts[interrupt.thread_id, interrupt.interrupt_id] = withdrawn
        for waiting in map(self._runs.__getitem__, thread.queue):
            if waiting.place is Place.RESUME:
                self._mark_cancelled(waiting, CancelReason.STOPPED, now)

    def request_cancel(self, run_id: str, *, reason: CancelReason, caller: Caller, now: float) -> Run | None:
        row = self._run_row(run_id, caller)
        if row is None or row.run.status.final:
            return None
        return run_copy(self._mark_cancelled(row, reason, now))

    def run(self, run_id: str, *, caller: Caller) -> Run | None:
        row = self._run_row(run_id, caller)
        return run_copy(row.run) if row else None

    def active_run(self, thread_id: str, *, caller: Caller) -> Run | None:
        row = self._thread_row(thread_id, caller)
        return self.run(row.active, caller=caller) if row and row.active else None

    def next_pending(self, thread_id: str, *, caller: Caller) -> Run | None:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return None
        may_begin = self._may_begin(row, asked=bool(self._open_of_thread(thread_id)))
        first = may_begin[:1]
        if not any(self._runs[run_id].place is Place.RESUME for run_id in first):
            # In the order of admission: a replaced run ends before the one that replaces it.
            stopped = (run_id for run_id in row.runs if self._runs[run_id].run.cancel_requested_at is not None)
            first = [run_id for run_id in stopped if run_id in may_begin][:1] or first
        return self.run(first[0], caller=caller) if first else None

    def waiting_runs(self, thread_id: str, *, caller: Caller) -> int:
        row = self._thread_row(thread_id, caller)
        return len(row.queue) if row else 0

    def unfinished_runs(self, *, caller: Caller) -> Sequence[Run]:
        found = [
            row.run for row in self._runs.values() if may_touch(row.run.owner, caller) and not row.run.status.final
        ]
        return [run_copy(run) for run in sorted(found, key=lambda run: run.created_at)]
