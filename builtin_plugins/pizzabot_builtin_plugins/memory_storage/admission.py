"""Admission, in the order of the contract, and the queue."""

from __future__ import annotations

from pizzabot_builtin_plugins.memory_storage.rows import (
    Place,
    RunRow,
    ThreadRow,
    copied,
    may_touch,
    no_such_thread,
    run_copy,
)
from pizzabot_builtin_plugins.memory_storage.state import State, request_keys, said
from pizzabot_builtin_plugins.memory_storage.threads import ThreadTables
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.storage_backends import Admission, CancelReason, Multitask, NewRun, Run, RunStatus

PENDING_NAMED = 200
"""Ids that a refusal names: as many as `open_interrupts` lists unasked."""


class QueueTables(State):
    def _join(self, row: ThreadRow, run: Run, fingerprint: str, place: Place) -> None:
        resumes = sum(self._runs[run_id].place is Place.RESUME for run_id in row.queue)
        row.queue.insert(len(row.queue) if place is Place.END else resumes, run.run_id)
        row.runs.append(run.run_id)
        self._runs[run.run_id] = RunRow(run=run, fingerprint=fingerprint, place=place)
        self._keys.update(dict.fromkeys(request_keys(run), run.run_id))

    def _known_admission(self, new: NewRun, owner: str, next_seq: int) -> Admission | None:
        """The first admission of a request that was made before."""
        found = [new.run_id, *(self._keys.get(key, "") for key in request_keys(pending_run(new, owner, 0.0)))]
        known = next((self._runs[run_id] for run_id in found if run_id in self._runs), None)
        if known is None:
            self._refuse_taken(new)
            return None
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

    def _refuse_taken(self, new: NewRun) -> None:
        known = self._messages.get(new.thread_id, {})
        for message_id, parts in said(new.input).items() if new.message_id is not None else ():
            if known.get(message_id, parts) != parts:
                raise Conflict(
                    "idempotency_mismatch",
                    f"thread {new.thread_id!r} has another message {message_id!r}, which this one would replace: "
                    "mint a new id",
                )


class AdmissionTables(QueueTables, ThreadTables):
    def admit_run(self, new: NewRun, *, caller: Caller, now: float) -> Admission:
        known = self.known_request(new, caller=caller)
        row = self._threads.get(new.thread_id)
        owner = row.thread.owner if row else caller.owner
        if known is not None:
            return known
        self._refuse_while_interrupted(new.thread_id)
        if new.multitask is Multitask.REJECT and row and (row.queue or row.active):
            raise Conflict("run_active", f"thread {new.thread_id!r} has a run: wait for its end, stop it, or enqueue")
        run = pending_run(new, owner, now)
        if row is None:
            self.create_thread(new.thread_id, caller=caller, now=now)
            row = self._threads[new.thread_id]
        self._touch(row, now)
        replacement = new.multitask is Multitask.INTERRUPT
        replaces = self._supersede(row, now) if replacement else None
        self._join(row, run, new.fingerprint, Place.REPLACEMENT if replacement else Place.END)
        self._remember(new.thread_id, new.input)
        return Admission(run=run_copy(run), created=True, replaces=replaces, last_seq=row.thread.next_seq - 1)

    def known_request(self, new: NewRun, *, caller: Caller) -> Admission | None:
        row = self._threads.get(new.thread_id)
        if row is not None and not may_touch(row.thread.owner, caller):
            raise no_such_thread(new.thread_id)
        owner, next_seq = (row.thread.owner, row.thread.next_seq) if row else (caller.owner, 1)
        return self._known_admission(new, owner, next_seq)

    def _refuse_while_interrupted(self, thread_id: str) -> None:
        ids = [interrupt.interrupt_id for interrupt in self._open_of_thread(thread_id)][:PENDING_NAMED]
        if ids:
            raise Conflict(
                "interrupt_pending",
                f"thread {thread_id!r} waits for an answer to {len(ids)} interrupt(s), the first is {ids[0]!r}: "
                "answer with input.respond, then send the message",
                fields={"interrupt_ids": ",".join(ids)},
            )

    def _supersede(self, row: ThreadRow, now: float) -> Run | None:
        for run_id in row.queue:
            if self._runs[run_id].place is Place.REPLACEMENT:
                self._mark_cancelled(self._runs[run_id], CancelReason.SUPERSEDED, now)
        if row.active is None:
            return None
        return run_copy(self._mark_cancelled(self._runs[row.active], CancelReason.SUPERSEDED, now))


def pending_run(new: NewRun, owner: str, now: float) -> Run:
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
