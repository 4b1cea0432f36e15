"""Decisions: several interrupts of one thread, each once, together with the admission of the run that goes on."""

from __future__ import annotations

from collections.abc import Sequence

from pizzabot_builtin_plugins.sqlite_storage.admission import created_admission, known_admission, owner_and_next_seq
from pizzabot_builtin_plugins.sqlite_storage.queue import Place, join
from pizzabot_builtin_plugins.sqlite_storage.rows import Connection
from pizzabot_builtin_plugins.sqlite_storage.threads import touch_thread
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_time
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.interrupts import Decision, InterruptState
from pizzabot_hookspecs.storage_backends import Admission, NewRun

_DECIDE = (
    "UPDATE interrupts SET state = 'decided', answer = ?, decided_by = ?, decided_at = ? "
    "WHERE thread_id = ? AND interrupt_id = ? AND state = 'open'"
)
_CLOSED = "SELECT state, decided_by, decided_at FROM interrupts WHERE thread_id = ? AND interrupt_id = ?"


def decide(
    connection: Connection, decisions: Sequence[Decision], resume: NewRun, *, by: str, caller: Caller, now: float
) -> Admission:
    """All of it or, by the savepoint that every write has, nothing. Errors as the contract's `decide` lists them."""
    row = owner_and_next_seq(connection, resume.thread_id)
    if row is None or (row[0] != caller.owner and not caller.system):
        raise _no_such_interrupt(resume.thread_id, decisions)
    owner, next_seq = row
    known = known_admission(connection, resume, owner, next_seq)
    if known is not None:
        return known
    _check(decisions, resume.thread_id)
    for decision in decisions:
        _decide(connection, resume.thread_id, decision, by=by, at=to_text_time(now))
    touch_thread(connection, resume.thread_id, now=now)
    join(connection, resume, place=Place.RESUME, owner=owner, now=now)
    return created_admission(connection, resume, next_seq)


def _check(decisions: Sequence[Decision], thread_id: str) -> None:
    if not decisions:
        raise _no_such_interrupt(thread_id, decisions)
    seen: set[str] = set()
    for decision in decisions:
        if decision.interrupt_id in seen:
            raise InvalidRequest(
                "invalid_decision",
                f"interrupt {decision.interrupt_id!r} is decided twice in one request: send one decision for it",
                fields={decision.interrupt_id: "is there twice"},
            )
        seen.add(decision.interrupt_id)


def _decide(connection: Connection, thread_id: str, decision: Decision, *, by: str, at: str) -> None:
    key = (thread_id, decision.interrupt_id)
    if connection.execute(_DECIDE, (to_json(decision.answer), by, at, *key)).rowcount == 1:
        return
    row = connection.execute(_CLOSED, key).fetchone()
    if row is None:
        raise _no_such_interrupt(thread_id, [decision])
    raise _already_decided(decision.interrupt_id, *row)


def _already_decided(interrupt_id: str, state: str, by: str | None, at: str) -> Conflict:
    fields = {"interrupt_id": interrupt_id, "decided_at": at}
    if state == InterruptState.WITHDRAWN:
        cause = f"withdrawn at {at}, when its turn was stopped: nobody can answer it any more"
    else:
        cause = f"decided by {by!r} at {at}: look at the thread again"
        fields["decided_by"] = by or ""
    return Conflict("already_decided", f"interrupt {interrupt_id!r} was {cause}", fields=fields)


def _no_such_interrupt(thread_id: str, decisions: Sequence[Decision]) -> NotFound:
    if not decisions:
        return NotFound("no_such_interrupt", f"no interrupt of thread {thread_id!r} is named: nothing was decided")
    return NotFound(
        "no_such_interrupt", f"thread {thread_id!r} has no interrupt {decisions[0].interrupt_id!r}: nothing was decided"
    )
