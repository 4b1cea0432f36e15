"""The life of a run after its admission: claim, lease, cancel, end, and the questions about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pizzabot_builtin_plugins.memory_storage.decisions import opened
from pizzabot_builtin_plugins.memory_storage.log import LogTables
from pizzabot_builtin_plugins.memory_storage.rows import may_touch, run_copy
from pizzabot_hookspecs import Caller, InvalidRequest
from pizzabot_hookspecs.interrupts import NewInterrupt
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
            if run.status is not RunStatus.PENDING or thread.active:
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
        self._touch(thread, now)
        return first

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
        return self.run(row.queue[0], caller=caller) if row and row.queue else None

    def waiting_runs(self, thread_id: str, *, caller: Caller) -> int:
        row = self._thread_row(thread_id, caller)
        return len(row.queue) if row else 0

    def unfinished_runs(self, *, caller: Caller) -> Sequence[Run]:
        found = [
            row.run for row in self._runs.values() if may_touch(row.run.owner, caller) and not row.run.status.final
        ]
        return [run_copy(run) for run in sorted(found, key=lambda run: run.created_at)]
