"""`SqliteRuns`: the contract's `RunStorage` and `EventLog`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pizzabot_builtin_plugins.sqlite_storage import admission, events, merging, runs
from pizzabot_builtin_plugins.sqlite_storage.connected import Connected
from pizzabot_builtin_plugins.sqlite_storage.interrupts import open_all, withdraw_all
from pizzabot_builtin_plugins.sqlite_storage.rows import Connection
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.interrupts import NewInterrupt
from pizzabot_hookspecs.storage_backends import (
    Admission,
    CancelReason,
    LogBounds,
    MergedEvents,
    NewEvent,
    NewRun,
    Run,
    RunStatus,
    StoredEvent,
)


class SqliteRuns(Connected):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        return await self._write(partial(admission.admit_run, new=new, caller=caller, now=self._clock()), durable=True)

    async def known_request(self, new: NewRun, /, *, caller: Caller) -> Admission | None:
        return await self._read(partial(admission.known_request, new=new, caller=caller))

    async def claim_run(
        self, run_id: str, /, *, server_id: str, takeover: bool = False, lease_seconds: float = 30.0, caller: Caller
    ) -> Run | None:
        work = partial(
            runs.claim_run,
            run_id=run_id,
            server_id=server_id,
            takeover=takeover,
            lease_seconds=lease_seconds,
            caller=caller,
            clock=self._clock,
        )
        return await self._write(work)

    async def renew_leases(self, server_id: str, /, *, lease_seconds: float, caller: Caller) -> frozenset[str]:
        work = partial(
            runs.renew_leases, server_id=server_id, lease_seconds=lease_seconds, caller=caller, clock=self._clock
        )
        return await self._write(work)

    async def release_runs(self, server_id: str, /, *, caller: Caller) -> frozenset[str]:
        return await self._write(partial(runs.release_runs, server_id=server_id, caller=caller, now=self._clock()))

    async def append_events(self, run_id: str, epoch: int, new: Sequence[NewEvent], /, *, caller: Caller) -> int:
        batch = tuple(new)
        return await self._write(partial(events.append, run_id=run_id, epoch=epoch, events=batch, caller=caller))

    async def finish_run(
        self,
        run_id: str,
        epoch: int,
        new: Sequence[NewEvent],
        /,
        *,
        status: RunStatus,
        error_code: str | None = None,
        error: str | None = None,
        interrupts: Sequence[NewInterrupt] = (),
        withdraw: bool = False,
        caller: Caller,
    ) -> int:
        runs.check_final(status)
        batch, opened, now = tuple(new), tuple(interrupts), self._clock()

        def finish(connection: Connection) -> int:
            seq = events.append(connection, run_id, epoch, batch, caller=caller)
            runs.end_run(connection, run_id, status=status, error_code=error_code, error=error, now=now)
            open_all(connection, run_id, opened, now=now)
            if withdraw:
                withdraw_all(connection, run_id, now=now)
                runs.stop_resumes(connection, run_id, now=now)
            return seq

        return await self._write(finish)

    async def request_cancel(self, run_id: str, /, *, reason: CancelReason, caller: Caller) -> Run | None:
        work = partial(runs.request_cancel, run_id=run_id, reason=reason, caller=caller, now=self._clock())
        return await self._write(work, durable=True)

    async def run(self, run_id: str, /, *, caller: Caller) -> Run | None:
        return await self._read(partial(runs.run, run_id=run_id, caller=caller))

    async def active_run(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        return await self._read(partial(runs.active_run, thread_id=thread_id, caller=caller))

    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        return await self._read(partial(runs.next_pending, thread_id=thread_id, caller=caller))

    async def waiting_runs(self, thread_id: str, /, *, caller: Caller) -> int:
        return await self._read(partial(runs.waiting_runs, thread_id=thread_id, caller=caller))

    async def unfinished_runs(self, *, caller: Caller) -> Sequence[Run]:
        return await self._read(partial(runs.unfinished_runs, caller=caller))

    # The log

    async def events(self, thread_id: str, /, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        return await self._read(partial(events.events, thread_id=thread_id, after=after, limit=limit, caller=caller))

    async def log_bounds(self, thread_id: str, /, *, caller: Caller) -> LogBounds:
        return await self._read(partial(events.log_bounds, thread_id=thread_id, caller=caller))

    async def mergeable_runs(self, *, ended_before: float, limit: int, caller: Caller) -> Sequence[Run]:
        return await self._read(partial(merging.mergeable_runs, ended_before=ended_before, limit=limit, caller=caller))

    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        work = partial(merging.merge_events, run_id=run_id, merged=tuple(merged), caller=caller, now=self._clock())
        await self._write(work)
