"""Facts: events of a thread that belong to no run, and the newest event of a name."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Sequence

from pizzabot_builtin_plugins.sqlite_storage.admission import no_such_thread
from pizzabot_builtin_plugins.sqlite_storage.events import event_row, insert_rows
from pizzabot_builtin_plugins.sqlite_storage.rows import EVENT_COLUMNS, MINE, Connection, event_from, mine, snapshot
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import NewEvent, StoredEvent

_NEXT_SEQ = f"SELECT next_seq FROM threads WHERE thread_id = ? AND {MINE}"
_NEWEST = (
    "SELECT max(seq) FROM run_events WHERE thread_id = ? AND name = ? "
    f"AND EXISTS (SELECT 1 FROM threads WHERE thread_id = ? AND {MINE})"
)
_ONE = f"SELECT {EVENT_COLUMNS} FROM run_events WHERE thread_id = ? AND seq = ?"


def append_facts(connection: Connection, thread_id: str, events: Sequence[NewEvent], *, caller: Caller) -> int:
    row = connection.execute(_NEXT_SEQ, (thread_id, *mine(caller))).fetchone()
    if row is None:
        raise no_such_thread(thread_id)
    next_seq: int = row[0]
    insert_rows(connection, (event_row(thread_id, None, event, seq=seq) for seq, event in enumerate(events, next_seq)))
    connection.execute("UPDATE threads SET next_seq = ? WHERE thread_id = ?", (next_seq + len(events), thread_id))
    return next_seq


def latest_fact(connection: Connection, thread_id: str, names: Sequence[str], *, caller: Caller) -> StoredEvent | None:
    with snapshot(connection):
        found = [
            connection.execute(_NEWEST, (thread_id, name, thread_id, *mine(caller))).fetchone()[0] for name in names
        ]
        newest = max((seq for seq in found if seq is not None), default=None)
        if newest is None:
            return None
        return event_from(connection.execute(_ONE, (thread_id, newest)).fetchone(), thread_id)
