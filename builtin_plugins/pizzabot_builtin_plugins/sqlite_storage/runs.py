"""The life of a run after its admission: claim, lease, cancel, end, and the questions about it."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Callable, Sequence

from pizzabot_builtin_plugins.sqlite_storage.rows import MINE, RUN_COLUMNS, Connection, mine, run_from
from pizzabot_builtin_plugins.sqlite_storage.values import to_text_time
from pizzabot_hookspecs import Caller, InvalidRequest
from pizzabot_hookspecs.storage_backends import CancelReason, Run, RunStatus

_ONE = f"SELECT {RUN_COLUMNS} FROM runs WHERE run_id = ? AND {MINE}"
_ACTIVE = f"SELECT {RUN_COLUMNS} FROM runs WHERE thread_id = ? AND status IN ('running', 'cancelling') AND {MINE}"
# While a person is asked, a message waits: LangGraph would drop the approval (reproduced R3). What is stopped may end.
MAY_BEGIN = (
    "(resume OR cancel_requested_at IS NOT NULL OR NOT EXISTS "
    "(SELECT 1 FROM interrupts WHERE interrupts.thread_id = runs.thread_id AND interrupts.state = 'open'))"
)
_FRONT = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE thread_id = ? AND status = 'pending' AND {MINE} AND {MAY_BEGIN} "
    "ORDER BY resume DESC, position LIMIT 1"
)
_STOPPED = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE thread_id = ? AND status = 'pending' AND cancel_requested_at IS NOT NULL "
    f"AND NOT resume AND {MINE} ORDER BY rowid LIMIT 1"
)
_RESUMES = "SELECT 1 FROM runs WHERE thread_id = ? AND status = 'pending' AND resume LIMIT 1"
_WAITING = f"SELECT count(*) FROM runs WHERE thread_id = ? AND status = 'pending' AND {MINE}"
_UNFINISHED = (
    f"SELECT {RUN_COLUMNS} FROM runs WHERE status IN ('pending', 'running', 'cancelling') AND {MINE} "
    "ORDER BY created_at, rowid"
)
# In a thread one run begins at a time, so that a count orders the beginnings whatever the clock does.
_CLAIM = (
    "UPDATE runs SET status = 'running', epoch = epoch + 1, attempt = attempt + 1, server_id = ?, lease_until = ?, "
    "started_at = ?, began = (SELECT coalesce(max(began), 0) + 1 FROM runs WHERE thread_id = ?) WHERE run_id = ?"
)
_TAKE_OVER = "UPDATE runs SET epoch = epoch + 1, attempt = attempt + 1, server_id = ?, lease_until = ? WHERE run_id = ?"
# The later deadline stays: a renewal that waited behind a longer one must not shorten it (hard-cases 55).
_RENEW = (
    "UPDATE runs SET lease_until = max(coalesce(lease_until, ''), ?) "
    f"WHERE status IN ('running', 'cancelling') AND server_id = ? AND {MINE} RETURNING run_id"
)
_RELEASE = (
    "UPDATE runs SET released = released + 1, lease_until = ? "
    f"WHERE status IN ('running', 'cancelling') AND server_id = ? AND {MINE} RETURNING run_id"
)
_REQUEST_CANCEL = (
    "UPDATE runs SET status = ?, cancel_reason = coalesce(cancel_reason, ?), "
    "cancel_requested_at = coalesce(cancel_requested_at, ?) WHERE run_id = ?"
)
_STOP_RESUMES = (
    "UPDATE runs SET cancel_reason = coalesce(cancel_reason, ?), "
    "cancel_requested_at = coalesce(cancel_requested_at, ?) "
    "WHERE status = 'pending' AND resume AND thread_id = (SELECT thread_id FROM runs WHERE run_id = ?)"
)
_END = "UPDATE runs SET status = ?, ended_at = ?, error_code = ?, error = ? WHERE run_id = ?"


def claim_run(
    connection: Connection,
    run_id: str,
    *,
    server_id: str,
    takeover: bool,
    lease_seconds: float,
    caller: Caller,
    clock: Callable[[], float],
) -> Run | None:
    found = run(connection, run_id, caller=caller)
    if found is None:
        return None
    # The clock is read here: a lease does not run while the claim waits for its turn.
    now = clock()
    lease_until = to_text_time(now + lease_seconds)
    if takeover:
        if not found.status.active:
            return None
        connection.execute(_TAKE_OVER, (server_id, lease_until, run_id))
    else:
        if found.status is not RunStatus.PENDING or not _may_begin(connection, run_id):
            return None
        connection.execute(_CLAIM, (server_id, lease_until, to_text_time(now), found.thread_id, run_id))
    return run(connection, run_id, caller=caller)


def renew_leases(
    connection: Connection, server_id: str, *, lease_seconds: float, caller: Caller, clock: Callable[[], float]
) -> frozenset[str]:
    until = to_text_time(clock() + lease_seconds)
    return frozenset(row[0] for row in connection.execute(_RENEW, (until, server_id, *mine(caller))).fetchall())


def release_runs(connection: Connection, server_id: str, *, caller: Caller, now: float) -> frozenset[str]:
    released = connection.execute(_RELEASE, (to_text_time(now), server_id, *mine(caller))).fetchall()
    return frozenset(row[0] for row in released)


def request_cancel(
    connection: Connection, run_id: str, *, reason: CancelReason, caller: Caller, now: float
) -> Run | None:
    found = run(connection, run_id, caller=caller)
    if found is None or found.status.final:
        return None
    status = RunStatus.PENDING if found.status is RunStatus.PENDING else RunStatus.CANCELLING
    connection.execute(_REQUEST_CANCEL, (status.value, reason.value, to_text_time(now), run_id))
    return run(connection, run_id, caller=caller)


def check_final(status: RunStatus) -> None:
    if not status.final:
        raise InvalidRequest("invalid_status", f"a run cannot end as {status.value!r}: choose a final status")


def end_run(
    connection: Connection, run_id: str, *, status: RunStatus, error_code: str | None, error: str | None, now: float
) -> None:
    """Set the final status. Whether the epoch still holds was checked in the same transaction (`events.append`)."""
    at = to_text_time(now)
    connection.execute(_END, (status.value, at, error_code, error, run_id))
    connection.execute(
        "UPDATE threads SET last_activity_at = max(last_activity_at, ?) "
        "WHERE thread_id = (SELECT thread_id FROM runs WHERE run_id = ?)",
        (at, run_id),
    )


def stop_resumes(connection: Connection, run_id: str, *, now: float) -> None:
    """Ask every resume that waits on this run's thread to stop."""
    connection.execute(_STOP_RESUMES, (CancelReason.STOPPED.value, to_text_time(now), run_id))


def run(connection: Connection, run_id: str, *, caller: Caller) -> Run | None:
    return _first(connection, _ONE, run_id, caller)


def active_run(connection: Connection, thread_id: str, *, caller: Caller) -> Run | None:
    return _first(connection, _ACTIVE, thread_id, caller)


def next_pending(connection: Connection, thread_id: str, *, caller: Caller) -> Run | None:
    stopped = _first(connection, _STOPPED, thread_id, caller)
    if stopped is not None and connection.execute(_RESUMES, (thread_id,)).fetchone() is None:
        return stopped
    return _first(connection, _FRONT, thread_id, caller)


def waiting_runs(connection: Connection, thread_id: str, *, caller: Caller) -> int:
    count: int = connection.execute(_WAITING, (thread_id, *mine(caller))).fetchone()[0]
    return count


def unfinished_runs(connection: Connection, *, caller: Caller) -> Sequence[Run]:
    return [run_from(row) for row in connection.execute(_UNFINISHED, mine(caller)).fetchall()]


def _first(connection: Connection, query: str, key: str, caller: Caller) -> Run | None:
    row = connection.execute(query, (key, *mine(caller))).fetchone()
    return run_from(row) if row else None


def _may_begin(connection: Connection, run_id: str) -> bool:
    """Whether the thread is free, and nobody is asked on it whom the run would pass over."""
    query = (
        f"SELECT 1 FROM runs WHERE run_id = ? AND {MAY_BEGIN} AND NOT EXISTS (SELECT 1 FROM runs AS active "
        "WHERE active.thread_id = runs.thread_id AND active.status IN ('running', 'cancelling'))"
    )
    return connection.execute(query, (run_id,)).fetchone() is not None
