"""Admission: a pending run, its input and its thread, or the run that the same request made before.

The order is the contract's: whose thread, then whether the request is known, then what a busy thread means for it.
"""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from pizzabot_builtin_plugins.sqlite_storage.rows import RUN_COLUMNS, Connection, Row, run_from
from pizzabot_builtin_plugins.sqlite_storage.threads import insert_thread
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_time
from pizzabot_hookspecs import Caller, Conflict, NotFound
from pizzabot_hookspecs.storage_backends import Admission, CancelReason, Multitask, NewRun, Run

_KNOWN = f"SELECT {RUN_COLUMNS}, fingerprint, first_seq FROM runs WHERE"
_RUN = f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = ?"
_ACTIVE = "SELECT run_id FROM runs WHERE thread_id = ? AND status IN ('running', 'cancelling')"
_QUEUE = "SELECT min(position), max(position) FROM runs WHERE thread_id = ? AND status = 'pending'"
_INSERT = (
    "INSERT INTO runs (run_id, thread_id, owner, status, input, options, created_at, idempotency_key, message_id, "
    "fingerprint, position, replacement) VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SUPERSEDE_ACTIVE = (
    "UPDATE runs SET status = 'cancelling', cancel_reason = coalesce(cancel_reason, ?), "
    "cancel_requested_at = coalesce(cancel_requested_at, ?) WHERE run_id = ?"
)
_SUPERSEDE_PENDING = (
    "UPDATE runs SET cancel_reason = ?, cancel_requested_at = ? "
    "WHERE thread_id = ? AND status = 'pending' AND replacement AND cancel_requested_at IS NULL"
)


def admit_run(connection: Connection, new: NewRun, *, caller: Caller, now: float) -> Admission:
    row = connection.execute("SELECT owner, next_seq FROM threads WHERE thread_id = ?", (new.thread_id,)).fetchone()
    owner, next_seq = row or (caller.owner, 1)
    if owner != caller.owner and not caller.system:
        raise NotFound("no_such_thread", f"there is no thread {new.thread_id!r}")
    known = _known_run(connection, new, owner)
    if known is not None:
        return _repeated(new, known, owner, next_seq)
    if row is None:
        insert_thread(connection, new.thread_id, owner=owner, now=now)
    else:
        _touch(connection, new.thread_id, now)
    replaces = _make_room(connection, new, now)
    _insert(connection, new, owner, now)
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


def _repeated(new: NewRun, known: Row, owner: str, next_seq: int) -> Admission:
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


def _make_room(connection: Connection, new: NewRun, now: float) -> Run | None:
    """What the strategy does to the runs that are there; the active run that is asked to stop."""
    active = connection.execute(_ACTIVE, (new.thread_id,)).fetchone()
    if new.multitask is Multitask.REJECT and (active or _queue(connection, new.thread_id) != (None, None)):
        raise Conflict("run_active", f"thread {new.thread_id!r} has a run: wait for its end, stop it, or enqueue")
    if new.multitask is not Multitask.INTERRUPT:
        return None
    at = to_text_time(now)
    connection.execute(_SUPERSEDE_PENDING, (CancelReason.SUPERSEDED.value, at, new.thread_id))
    if active is None:
        return None
    connection.execute(_SUPERSEDE_ACTIVE, (CancelReason.SUPERSEDED.value, at, active[0]))
    return run_from(connection.execute(_RUN, active).fetchone())


def _insert(connection: Connection, new: NewRun, owner: str, now: float) -> None:
    first, last = _queue(connection, new.thread_id)
    replacement = new.multitask is Multitask.INTERRUPT
    position = (first or 0) - 1 if replacement else (last or 0) + 1
    row = (
        new.run_id,
        new.thread_id,
        owner,
        to_json(new.input),
        to_json(new.options),
        to_text_time(now),
        new.idempotency_key,
        new.message_id,
        new.fingerprint,
        position,
        replacement,
    )
    connection.execute(_INSERT, row)


def _queue(connection: Connection, thread_id: str) -> tuple[int | None, int | None]:
    """The positions of the first and the last pending run."""
    first, last = connection.execute(_QUEUE, (thread_id,)).fetchone()
    return first, last


def _touch(connection: Connection, thread_id: str, now: float) -> None:
    connection.execute(
        "UPDATE threads SET last_activity_at = max(last_activity_at, ?) WHERE thread_id = ?",
        (to_text_time(now), thread_id),
    )
