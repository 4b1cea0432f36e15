"""The log: appending under an epoch, reading after a cursor, what a thread's log holds."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice

from pizzabot_builtin_plugins.sqlite_storage.fencing import held_run
from pizzabot_builtin_plugins.sqlite_storage.rows import (
    EVENT_COLUMNS,
    MINE,
    Connection,
    Row,
    check_limit,
    event_from,
    mine,
)
from pizzabot_builtin_plugins.sqlite_storage.values import to_text_namespace
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import LogBounds, NewEvent, StoredEvent

ROWS_PER_INSERT = 32
"""Rows of one statement: each statement is one turn at the interpreter lock, which a busy loop makes expensive."""

_READ = (
    f"SELECT {EVENT_COLUMNS} FROM run_events WHERE thread_id = ? AND seq > ? "
    f"AND EXISTS (SELECT 1 FROM threads WHERE thread_id = ? AND {MINE}) ORDER BY seq LIMIT ?"
)
# One statement is one snapshot. A run that nobody claimed (ended while pending) counts only where none was.
_BOUNDS = (
    "SELECT (SELECT min(seq) FROM run_events WHERE thread_id = t.thread_id), "
    "(SELECT max(seq) FROM run_events WHERE thread_id = t.thread_id), "
    "(SELECT first_seq FROM runs WHERE thread_id = t.thread_id AND first_seq IS NOT NULL "
    "ORDER BY began DESC, first_seq DESC LIMIT 1) "
    f"FROM threads AS t WHERE thread_id = ? AND {MINE}"
)


def append(connection: Connection, run_id: str, epoch: int, events: Sequence[NewEvent], *, caller: Caller) -> int:
    """Write the batch and return its first `seq`. Raises `Conflict` `lease_lost`, before anything is written."""
    thread_id, first_seq, next_seq = held_run(connection, run_id, epoch, caller=caller)
    if events:
        rows = (event_row(thread_id, run_id, event, seq=seq, epoch=epoch) for seq, event in enumerate(events, next_seq))
        insert_rows(connection, rows)
        connection.execute("UPDATE threads SET next_seq = ? WHERE thread_id = ?", (next_seq + len(events), thread_id))
        if first_seq is None:
            connection.execute("UPDATE runs SET first_seq = ? WHERE run_id = ?", (next_seq, run_id))
    return next_seq


def events(connection: Connection, thread_id: str, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
    check_limit(limit)
    rows = connection.execute(_READ, (thread_id, after, thread_id, *mine(caller), limit)).fetchall()
    return [event_from(row, thread_id) for row in rows]


def log_bounds(connection: Connection, thread_id: str, *, caller: Caller) -> LogBounds:
    first, last, latest = connection.execute(_BOUNDS, (thread_id, *mine(caller))).fetchone() or (0, 0, None)
    return LogBounds(first_seq=first or 0, last_seq=last or 0, latest_run_seq=latest)


def event_row(thread_id: str, run_id: str | None, event: NewEvent | StoredEvent, *, seq: int, epoch: int = 0) -> Row:
    return (
        thread_id,
        seq,
        run_id,
        epoch,
        event.method,
        to_text_namespace(event.namespace),
        event.data,
        event.timestamp,
        event.node,
        event.name,
    )


def insert_rows(connection: Connection, rows: Iterable[Row]) -> None:
    """Rows as `event_row` makes them. Whoever calls it moves the thread's `next_seq`, in the same transaction."""
    left: Iterator[Row] = iter(rows)
    while group := list(islice(left, ROWS_PER_INSERT)):
        connection.execute(_insert_statement(len(group)), list(chain.from_iterable(group)))


@cache
def _insert_statement(rows: int) -> str:
    columns = "thread_id, seq, run_id, epoch, method, namespace, payload, at, node, name"
    return f"INSERT INTO run_events ({columns}) VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"] * rows)
