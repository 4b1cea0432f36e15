"""Threads, runs, events and settings as dictionaries. Synchronous: on one loop, each call is one transaction.

Every method looks first and changes afterwards, so that one that raises has changed nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pizzabot_builtin_plugins.memory_storage.rows import (
    RunRow,
    ThreadRow,
    check_limit,
    copied,
    may_touch,
    run_copy,
    thread_copy,
)
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.storage_backends import (
    Admission,
    CancelReason,
    LogBounds,
    Multitask,
    NewEvent,
    NewRun,
    Run,
    RunStatus,
    StoredEvent,
    Thread,
)
from pizzabot_hookspecs.wire import JsonValue


class Tables:
    def __init__(self) -> None:
        self._threads: dict[str, ThreadRow] = {}
        self._runs: dict[str, RunRow] = {}
        self._keys: dict[tuple[str, str, str], str] = {}
        self._settings: dict[tuple[str, str], JsonValue] = {}

    # Threads

    def create_thread(
        self,
        thread_id: str,
        *,
        caller: Caller,
        now: float,
        title: str,
        source: str,
        metadata: Mapping[str, JsonValue] | None,
    ) -> Thread:
        if thread_id in self._threads:
            raise Conflict("thread_exists", f"thread {thread_id!r} exists already: use it, or choose another id")
        return self._insert_thread(
            Thread(
                thread_id=thread_id,
                owner=caller.owner,
                title=title,
                source=source,
                created_at=now,
                last_activity_at=now,
                next_seq=1,
                metadata=copied(metadata or {}),
            )
        )

    def thread(self, thread_id: str, *, caller: Caller) -> Thread | None:
        row = self._thread_row(thread_id, caller)
        return thread_copy(row.thread) if row else None

    def threads(self, *, caller: Caller, limit: int) -> Sequence[Thread]:
        check_limit(limit)
        found = [row.thread for row in self._threads.values() if may_touch(row.thread.owner, caller)]
        oldest_first = sorted(found, key=lambda thread: thread.last_activity_at)
        return [thread_copy(thread) for thread in oldest_first[::-1][:limit]]

    def pin_model(self, thread_id: str, model_id: str | None, *, caller: Caller) -> None:
        row = self._thread_row(thread_id, caller)
        if row is not None:
            row.thread = replace(row.thread, model_id=model_id)

    def delete_thread(self, thread_id: str, *, caller: Caller) -> bool:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return False
        for run_id in row.runs:
            for key in _keys(self._runs.pop(run_id).run):
                del self._keys[key]
        del self._threads[thread_id]
        return True

    # Admission

    def admit_run(self, new: NewRun, *, caller: Caller, now: float) -> Admission:
        row = self._threads.get(new.thread_id)
        if row is not None and not may_touch(row.thread.owner, caller):
            raise NotFound("no_such_thread", f"there is no thread {new.thread_id!r}")
        owner = row.thread.owner if row else caller.owner
        known = self._known_run(new, owner)
        if known is not None:
            return self._repeated(new, known, owner, row.thread.next_seq if row else 1)
        if new.multitask is Multitask.REJECT and row and (row.queue or row.active):
            raise Conflict("run_active", f"thread {new.thread_id!r} has a run: wait for its end, stop it, or enqueue")
        run = _pending(new, owner, now)
        if row is None:
            self.create_thread(
                new.thread_id, caller=caller, now=now, title="New conversation", source="user", metadata=None
            )
            row = self._threads[new.thread_id]
        self._touch(row, now)
        replaces = self._supersede(row, now) if new.multitask is Multitask.INTERRUPT else None
        row.queue.insert(0 if new.multitask is Multitask.INTERRUPT else len(row.queue), run.run_id)
        row.runs.append(run.run_id)
        self._runs[run.run_id] = RunRow(run=run, fingerprint=new.fingerprint, multitask=new.multitask)
        self._keys.update(dict.fromkeys(_keys(run), run.run_id))
        return Admission(run=run_copy(run), created=True, replaces=replaces, last_seq=row.thread.next_seq - 1)

    def _known_run(self, new: NewRun, owner: str) -> RunRow | None:
        found = [new.run_id, *(self._keys.get(key, "") for key in _keys(_pending(new, owner, 0.0)))]
        return next((self._runs[run_id] for run_id in found if run_id in self._runs), None)

    def _repeated(self, new: NewRun, known: RunRow, owner: str, next_seq: int) -> Admission:
        run = known.run
        if run.owner != owner:
            raise Conflict("run_exists", f"run {new.run_id!r} exists already: mint another id")
        if run.thread_id != new.thread_id or known.fingerprint != new.fingerprint:
            raise Conflict(
                "idempotency_mismatch",
                f"run {run.run_id!r} was started by another request with the same run id, idempotency key or "
                "message id: send the first request again unchanged, or mint a new id",
            )
        last_seq = (known.first_seq or next_seq) - 1
        return Admission(run=run_copy(run), created=False, replaces=None, last_seq=last_seq)

    def _supersede(self, row: ThreadRow, now: float) -> Run | None:
        for run_id in row.queue:
            if self._runs[run_id].multitask is Multitask.INTERRUPT:
                self._mark_cancelled(self._runs[run_id], CancelReason.SUPERSEDED, now)
        if row.active is None:
            return None
        return self._mark_cancelled(self._runs[row.active], CancelReason.SUPERSEDED, now)

    # The life of a run

    def claim_run(self, run_id: str, *, server_id: str, takeover: bool, caller: Caller, now: float) -> Run | None:
        row = self._run_row(run_id, caller)
        if row is None:
            return None
        run, thread = row.run, self._threads[row.run.thread_id]
        claimed = replace(run, epoch=run.epoch + 1, attempt=run.attempt + 1, server_id=server_id)
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

    def append(self, run_id: str, epoch: int, events: Sequence[NewEvent], *, caller: Caller) -> int:
        row = self._held(run_id, epoch, caller)
        thread = self._threads[row.run.thread_id]
        first = thread.thread.next_seq
        stored = [_stored(event, seq, row.run) for seq, event in enumerate(events, start=first)]
        thread.events.extend(stored)
        thread.thread = replace(thread.thread, next_seq=first + len(stored))
        if stored and row.first_seq is None:
            row.first_seq = first
        return first

    def finish(
        self,
        run_id: str,
        epoch: int,
        events: Sequence[NewEvent],
        *,
        status: RunStatus,
        error_code: str | None,
        error: str | None,
        caller: Caller,
        now: float,
    ) -> int:
        if not status.final:
            raise InvalidRequest("invalid_status", f"a run cannot end as {status.value!r}: choose a final status")
        first = self.append(run_id, epoch, events, caller=caller)
        row = self._runs[run_id]
        thread = self._threads[row.run.thread_id]
        if thread.active == run_id:
            thread.active = None
        else:
            thread.queue.remove(run_id)
        row.run = replace(row.run, status=status, ended_at=now, error_code=error_code, error=error)
        self._touch(thread, now)
        return first

    def request_cancel(self, run_id: str, *, reason: CancelReason, caller: Caller, now: float) -> Run | None:
        row = self._run_row(run_id, caller)
        if row is None or row.run.status.final:
            return None
        return self._mark_cancelled(row, reason, now)

    def run(self, run_id: str, *, caller: Caller) -> Run | None:
        row = self._run_row(run_id, caller)
        return run_copy(row.run) if row else None

    def active_run(self, thread_id: str, *, caller: Caller) -> Run | None:
        row = self._thread_row(thread_id, caller)
        return self.run(row.active, caller=caller) if row and row.active else None

    def next_pending(self, thread_id: str, *, caller: Caller) -> Run | None:
        row = self._thread_row(thread_id, caller)
        return self.run(row.queue[0], caller=caller) if row and row.queue else None

    def unfinished_runs(self, *, caller: Caller) -> Sequence[Run]:
        found = [
            row.run for row in self._runs.values() if may_touch(row.run.owner, caller) and not row.run.status.final
        ]
        return [run_copy(run) for run in sorted(found, key=lambda run: run.created_at)]

    # The log and settings

    def events(self, thread_id: str, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        check_limit(limit)
        row = self._thread_row(thread_id, caller)
        start = max(after, 0)
        return row.events[start : start + limit] if row else []

    def log_bounds(self, thread_id: str, *, caller: Caller) -> LogBounds:
        row = self._thread_row(thread_id, caller)
        if row is None or not row.events:
            return LogBounds(first_seq=0, last_seq=0, latest_run_seq=None)
        begun = [
            (run.began, run.first_seq) for run in map(self._runs.__getitem__, row.runs) if run.first_seq is not None
        ]
        latest = max(begun)[1] if begun else None
        return LogBounds(first_seq=row.events[0].seq, last_seq=row.events[-1].seq, latest_run_seq=latest)

    def setting(self, key: str, *, caller: Caller) -> JsonValue:
        value: JsonValue = copied(self._settings.get((caller.owner, key)))
        return value

    def put_setting(self, key: str, value: JsonValue, *, caller: Caller) -> None:
        if value is None:
            self._settings.pop((caller.owner, key), None)
        else:
            self._settings[caller.owner, key] = copied(value)

    # Looking

    def _insert_thread(self, thread: Thread) -> Thread:
        self._threads[thread.thread_id] = ThreadRow(thread=thread)
        return thread_copy(thread)

    def _thread_row(self, thread_id: str, caller: Caller) -> ThreadRow | None:
        row = self._threads.get(thread_id)
        return row if row is not None and may_touch(row.thread.owner, caller) else None

    def _run_row(self, run_id: str, caller: Caller) -> RunRow | None:
        row = self._runs.get(run_id)
        return row if row is not None and may_touch(row.run.owner, caller) else None

    def _held(self, run_id: str, epoch: int, caller: Caller) -> RunRow:
        row = self._run_row(run_id, caller)
        if row is None or row.run.epoch != epoch or row.run.status.final:
            raise Conflict("lease_lost", f"run {run_id!r} is not held with epoch {epoch}: stop and write nothing more")
        return row

    @staticmethod
    def _mark_cancelled(row: RunRow, reason: CancelReason, now: float) -> Run:
        run = row.run
        row.run = replace(
            run,
            status=RunStatus.CANCELLING if run.status.active else run.status,
            cancel_reason=run.cancel_reason or reason,
            cancel_requested_at=now if run.cancel_requested_at is None else run.cancel_requested_at,
        )
        return run_copy(row.run)

    @staticmethod
    def _touch(row: ThreadRow, now: float) -> None:
        row.thread = replace(row.thread, last_activity_at=max(row.thread.last_activity_at, now))


def _pending(new: NewRun, owner: str, now: float) -> Run:
    return Run(
        run_id=new.run_id,
        thread_id=new.thread_id,
        owner=owner,
        status=RunStatus.PENDING,
        input=copied(new.input),
        options=copied(new.options),
        created_at=now,
        idempotency_key=new.idempotency_key,
        message_id=new.message_id,
    )


def _keys(run: Run) -> list[tuple[str, str, str]]:
    """What else than its id a resent request is recognised by."""
    keys = [("key", run.owner, run.idempotency_key), ("message", run.thread_id, run.message_id)]
    return [(kind, scope, value) for kind, scope, value in keys if value is not None]


def _stored(event: NewEvent, seq: int, run: Run) -> StoredEvent:
    return StoredEvent(
        seq=seq,
        thread_id=run.thread_id,
        run_id=run.run_id,
        method=event.method,
        data=event.data,
        timestamp=event.timestamp,
        namespace=event.namespace,
        node=event.node,
        name=event.name,
    )
