"""Merging: the deltas of a block of an ended run become one event, which keeps the last one's place (rule 5)."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Sequence

from pizzabot_builtin_plugins.sqlite_storage.rows import MINE, RUN_COLUMNS, Connection, check_limit, mine, run_from
from pizzabot_builtin_plugins.sqlite_storage.values import to_text_time
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.storage_backends import MergedEvents, Run, RunStatus

# Older than the run that `log_bounds` names, which is read from its start. The subquery is one step in an index.
_MERGEABLE = (
    f"SELECT {RUN_COLUMNS} FROM runs AS candidate WHERE ended_at IS NOT NULL AND merged_at IS NULL AND ended_at < ? "
    f"AND {MINE} AND (coalesce(began, 0), coalesce(first_seq, 0)) < "
    "(SELECT coalesce(began, 0), first_seq FROM runs AS latest WHERE latest.thread_id = candidate.thread_id "
    "AND first_seq IS NOT NULL ORDER BY began DESC, first_seq DESC LIMIT 1) ORDER BY ended_at LIMIT ?"
)
_RUN = f"SELECT thread_id, status FROM runs WHERE run_id = ? AND {MINE}"
# What is not there any more went into the next event that is, by an earlier merge: only strangers are looked for.
_OTHERS = "SELECT seq FROM run_events WHERE thread_id = ? AND seq BETWEEN ? AND ? AND run_id IS NOT ? LIMIT 1"
_LAST = "SELECT 1 FROM run_events WHERE thread_id = ? AND seq = ?"
_DELETE = "DELETE FROM run_events WHERE thread_id = ? AND seq >= ? AND seq < ?"
_REPLACE = "UPDATE run_events SET payload = ? WHERE thread_id = ? AND seq = ?"
_MERGED = "UPDATE runs SET merged_at = ? WHERE run_id = ?"


def mergeable_runs(connection: Connection, *, ended_before: float, limit: int, caller: Caller) -> Sequence[Run]:
    check_limit(limit)
    rows = connection.execute(_MERGEABLE, (to_text_time(ended_before), *mine(caller), limit)).fetchall()
    return [run_from(row) for row in rows]


def merge_events(
    connection: Connection, run_id: str, merged: Sequence[MergedEvents], *, caller: Caller, now: float
) -> None:
    row = connection.execute(_RUN, (run_id, *mine(caller))).fetchone()
    if row is None:
        raise NotFound("no_such_run", f"there is no run {run_id!r}")
    thread_id, status = row
    if not RunStatus(status).final:
        raise Conflict("run_active", f"run {run_id!r} is {status}: only the log of a run that has ended is merged")
    _check(connection, thread_id, run_id, merged)
    connection.executemany(_DELETE, [(thread_id, part.first_seq, part.last_seq) for part in merged])
    connection.executemany(_REPLACE, [(part.data, thread_id, part.last_seq) for part in merged])
    connection.execute(_MERGED, (to_text_time(now), run_id))


def _check(connection: Connection, thread_id: str, run_id: str, merged: Sequence[MergedEvents]) -> None:
    end = 0
    for part in sorted(merged, key=lambda part: part.first_seq):
        if not end < part.first_seq <= part.last_seq:
            raise _invalid(part, run_id, f"it has to begin after {end} and to end where it begins or later")
        stranger = connection.execute(_OTHERS, (thread_id, part.first_seq, part.last_seq, run_id)).fetchone()
        if stranger is not None:
            raise _invalid(part, run_id, f"event {stranger[0]} is not this run's")
        if connection.execute(_LAST, (thread_id, part.last_seq)).fetchone() is None:
            raise _invalid(part, run_id, f"there is no event {part.last_seq}")
        end = part.last_seq


def _invalid(part: MergedEvents, run_id: str, cause: str) -> InvalidRequest:
    return InvalidRequest(
        "invalid_range",
        f"events {part.first_seq} to {part.last_seq} of run {run_id!r} cannot become one: {cause}; nothing was merged",
    )
