"""Admission: a pending run, its input and its thread, or the run that the same request made before.

The order is the contract's: whose thread, whether the request is known, whether a person is waited for, and then what a
busy thread means for it.
"""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from pizzabot_builtin_plugins.sqlite_storage.interrupts import pending_ids
from pizzabot_builtin_plugins.sqlite_storage.queue import Place, is_empty, join
from pizzabot_builtin_plugins.sqlite_storage.rows import RUN_COLUMNS, Connection, Row, run_from
from pizzabot_builtin_plugins.sqlite_storage.run_messages import refuse_taken, take
from pizzabot_builtin_plugins.sqlite_storage.threads import insert_thread, touch_thread
from pizzabot_builtin_plugins.sqlite_storage.values import to_text_time
from pizzabot_hookspecs import Caller, Conflict, NotFound
from pizzabot_hookspecs.storage_backends import Admission, CancelReason, Multitask, NewRun, Run

_THREAD = "SELECT owner, next_seq FROM threads WHERE thread_id = ?"
_KNOWN = f"SELECT {RUN_COLUMNS}, fingerprint, first_seq FROM runs WHERE"
_RUN = f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = ?"
_ACTIVE = "SELECT run_id FROM runs WHERE thread_id = ? AND status IN ('running', 'cancelling')"
_SUPERSEDE_ACTIVE = (
    "UPDATE runs SET status = 'cancelling', cancel_reason = coalesce(cancel_reason, ?), "
    "cancel_requested_at = coalesce(cancel_requested_at, ?) WHERE run_id = ?"
)
_SUPERSEDE_PENDING = (
    "UPDATE runs SET cancel_reason = ?, cancel_requested_at = ? "
    "WHERE thread_id = ? AND status = 'pending' AND replacement AND cancel_requested_at IS NULL"
)


def admit_run(connection: Connection, new: NewRun, *, caller: Caller, now: float) -> Admission:
    row = owner_and_next_seq(connection, new.thread_id)
    owner, next_seq = row or (caller.owner, 1)
    if owner != caller.owner and not caller.system:
        raise no_such_thread(new.thread_id)
    known = known_admission(connection, new, owner, next_seq)
    if known is not None:
        return known
    _refuse_while_interrupted(connection, new.thread_id)
    if row is None:
        insert_thread(connection, new.thread_id, owner=owner, now=now)
    else:
        touch_thread(connection, new.thread_id, now=now)
    replaces = _make_room(connection, new, now)
    place = Place.REPLACEMENT if new.multitask is Multitask.INTERRUPT else Place.END
    join(connection, new, place=place, owner=owner, now=now)
    take(connection, new.thread_id, new.input)
    return created_admission(connection, new, next_seq, replaces=replaces)


def known_request(connection: Connection, new: NewRun, *, caller: Caller) -> Admission | None:
    owner, next_seq = owner_and_next_seq(connection, new.thread_id) or (caller.owner, 1)
    if owner != caller.owner and not caller.system:
        raise no_such_thread(new.thread_id)
    return known_admission(connection, new, owner, next_seq)


def no_such_thread(thread_id: str) -> NotFound:
    return NotFound("no_such_thread", f"there is no thread {thread_id!r}")


def owner_and_next_seq(connection: Connection, thread_id: str) -> tuple[str, int] | None:
    row: tuple[str, int] | None = connection.execute(_THREAD, (thread_id,)).fetchone()
    return row


def known_admission(connection: Connection, new: NewRun, owner: str, next_seq: int) -> Admission | None:
    """The first admission of a request that was made before. Raises `Conflict` `idempotency_mismatch`, `run_exists`."""
    known = _known_run(connection, new, owner)
    if known is None:
        refuse_taken(connection, new)
        return None
    run = run_from(known)
    fingerprint, first_seq = known[-2:]
    if run.owner != owner:
        raise Conflict("run_exists", f"run {new.run_id!r} exists already: mint another id")
    if run.thread_id != new.thread_id or fingerprint != new.fingerprint:
        raise Conflict(
            "idempotency_mismatch",
            f"run {run.run_id!r} was started by another request with the same run id, idempotency key or message id: "
            "send the first request again unchanged, or mint a new id",
        )
    return Admission(run=run, created=False, replaces=None, last_seq=(first_seq or next_seq) - 1)


def created_admission(connection: Connection, new: NewRun, next_seq: int, *, replaces: Run | None = None) -> Admission:
    run = run_from(connection.execute(_RUN, (new.run_id,)).fetchone())
    return Admission(run=run, created=True, replaces=replaces, last_seq=next_seq - 1)


def _known_run(connection: Connection, new: NewRun, owner: str) -> Row | None:
    keys: tuple[tuple[str, tuple[str | None, ...]], ...] = (
        ("run_id = ?", (new.run_id,)),
        ("owner = ? AND idempotency_key = ?", (owner, new.idempotency_key)),
        ("thread_id = ? AND message_id = ?", (new.thread_id, new.message_id)),
    )
    for condition, parameters in keys:
        if parameters[-1] is None:
            continue
        row: Row | None = connection.execute(f"{_KNOWN} {condition}", parameters).fetchone()
        if row is not None:
            return row
    return None


def _refuse_while_interrupted(connection: Connection, thread_id: str) -> None:
    ids = pending_ids(connection, thread_id)
    if ids:
        raise Conflict(
            "interrupt_pending",
            f"thread {thread_id!r} waits for an answer to {len(ids)} interrupt(s), the first is {ids[0]!r}: "
            "answer with input.respond, then send the message",
            fields={"interrupt_ids": ",".join(ids)},
        )


def _make_room(connection: Connection, new: NewRun, now: float) -> Run | None:
    """What the strategy does to the runs that are there; the active run that is asked to stop."""
    active = connection.execute(_ACTIVE, (new.thread_id,)).fetchone()
    if new.multitask is Multitask.REJECT and (active or not is_empty(connection, new.thread_id)):
        raise Conflict("run_active", f"thread {new.thread_id!r} has a run: wait for its end, stop it, or enqueue")
    if new.multitask is not Multitask.INTERRUPT:
        return None
    at = to_text_time(now)
    connection.execute(_SUPERSEDE_PENDING, (CancelReason.SUPERSEDED.value, at, new.thread_id))
    if active is None:
        return None
    connection.execute(_SUPERSEDE_ACTIVE, (CancelReason.SUPERSEDED.value, at, active[0]))
    return run_from(connection.execute(_RUN, active).fetchone())
