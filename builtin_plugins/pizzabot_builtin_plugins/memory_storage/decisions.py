"""Interrupts with their decisions, and intents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pizzabot_builtin_plugins.memory_storage.admission import QueueTables, pending_run
from pizzabot_builtin_plugins.memory_storage.rows import (
    Place,
    RunRow,
    check_limit,
    copied,
    interrupt_copy,
    may_touch,
    run_copy,
)
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.interrupts import Decision, Intent, Interrupt, InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import Admission, NewRun
from pizzabot_hookspecs.wire import JsonValue, Namespace


class DecisionTables(QueueTables):
    def open_interrupts(self, thread_id: str | None, *, limit: int, caller: Caller) -> Sequence[Interrupt]:
        check_limit(limit)
        found = [
            interrupt
            for interrupt in self._interrupts.values()
            if interrupt.state is InterruptState.OPEN
            and may_touch(interrupt.owner, caller)
            and thread_id in {None, interrupt.thread_id}
        ]
        return [interrupt_copy(interrupt) for interrupt in found[:limit]]

    def interrupt(self, interrupt_id: str, *, caller: Caller) -> Interrupt | None:
        """An id is unique in its thread; of several (a copied thread) the open one counts, else the newest."""
        found = [
            interrupt
            for (_, of_id), interrupt in self._interrupts.items()
            if of_id == interrupt_id and may_touch(interrupt.owner, caller)
        ]
        is_open = [interrupt for interrupt in found if interrupt.state is InterruptState.OPEN]
        return interrupt_copy((is_open or found)[-1]) if found else None

    def decide(
        self, decisions: Sequence[Decision], resume: NewRun, *, by: str, caller: Caller, now: float
    ) -> Admission:
        row = self._thread_row(resume.thread_id, caller)
        if row is None:
            raise _no_such_interrupt(resume.thread_id, [decision.interrupt_id for decision in decisions])
        known = self._known_admission(resume, row.thread.owner, row.thread.next_seq)
        if known is not None:
            return known
        answers = self._checked(decisions, resume.thread_id)
        run = pending_run(resume, row.thread.owner, now)
        for place, answer in answers.items():
            self._interrupts[place] = replace(
                self._interrupts[place], state=InterruptState.DECIDED, answer=answer, decided_by=by, decided_at=now
            )
        self._touch(row, now)
        self._join(row, run, resume.fingerprint, Place.RESUME)
        return Admission(run=run_copy(run), created=True, replaces=None, last_seq=row.thread.next_seq - 1)

    def _checked(self, decisions: Sequence[Decision], thread_id: str) -> dict[tuple[str, str], JsonValue]:
        """The answers, by place; raises unless every one of them can be stored."""
        if not decisions:
            raise _no_such_interrupt(thread_id, [])
        answers: dict[tuple[str, str], JsonValue] = {}
        for decision in decisions:
            place = (thread_id, decision.interrupt_id)
            interrupt = self._interrupts.get(place)
            if place in answers:
                raise _decided_twice(decision.interrupt_id)
            if interrupt is None:
                raise _no_such_interrupt(thread_id, [decision.interrupt_id])
            if interrupt.state is not InterruptState.OPEN:
                raise _already_decided(interrupt)
            answers[place] = copied(decision.answer)
        return answers

    def open_intent(
        self, run_id: str, epoch: int, *, call_id: str, tool: str, namespace: Namespace, caller: Caller, now: float
    ) -> None:
        row = self._held(run_id, epoch, caller)
        new = Intent(run_id=run_id, call_id=call_id, tool=tool, namespace=tuple(namespace), opened_at=now)
        row.intents.setdefault(call_id, new)

    def close_intent(self, run_id: str, epoch: int, *, call_id: str, caller: Caller) -> None:
        self._held(run_id, epoch, caller).intents.pop(call_id, None)

    def open_intents(self, run_id: str, *, caller: Caller) -> Sequence[Intent]:
        row = self._run_row(run_id, caller)
        return list(row.intents.values()) if row else []


def opened(row: RunRow, new: NewInterrupt, now: float) -> Interrupt:
    """Raises `InvalidRequest` `not_json`."""
    return Interrupt(
        interrupt_id=new.interrupt_id,
        run_id=row.run.run_id,
        thread_id=row.run.thread_id,
        owner=row.run.owner,
        kind=new.kind,
        payload=copied(new.payload),
        namespace=tuple(new.namespace),
        state=InterruptState.OPEN,
        created_at=now,
    )


def _no_such_interrupt(thread_id: str, ids: Sequence[str]) -> NotFound:
    which = f"interrupt {ids[0]!r}" if ids else "interrupt that is named"
    return NotFound("no_such_interrupt", f"thread {thread_id!r} has no {which}: nothing was decided")


def _decided_twice(interrupt_id: str) -> InvalidRequest:
    return InvalidRequest(
        "invalid_decision",
        f"interrupt {interrupt_id!r} is decided twice in one request: send one decision for it",
        fields={interrupt_id: "is there twice"},
    )


def _already_decided(interrupt: Interrupt) -> Conflict:
    at = datetime.fromtimestamp(interrupt.decided_at or 0.0, UTC).isoformat(timespec="microseconds")
    fields = {"interrupt_id": interrupt.interrupt_id, "decided_at": at}
    if interrupt.state is InterruptState.WITHDRAWN:
        cause = f"withdrawn at {at}, when its turn was stopped: nobody can answer it any more"
    else:
        cause = f"decided by {interrupt.decided_by!r} at {at}: look at the thread again"
        fields["decided_by"] = interrupt.decided_by or ""
    return Conflict("already_decided", f"interrupt {interrupt.interrupt_id!r} was {cause}", fields=fields)
