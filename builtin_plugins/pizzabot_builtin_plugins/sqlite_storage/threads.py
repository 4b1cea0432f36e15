"""The table `threads`. Each function is one transaction's work on a connection."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pizzabot_builtin_plugins.sqlite_storage.rows import (
    MINE,
    THREAD_COLUMNS,
    Connection,
    check_limit,
    check_offset,
    mine,
    thread_from,
)
from pizzabot_builtin_plugins.sqlite_storage.status import CANDIDATES, THREAD_STATUS
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_time
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.storage_backends import Thread, ThreadCopy, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue

DEFAULT_TITLE = "New conversation"
DEFAULT_SOURCE = "user"

_INSERT = (
    "INSERT INTO threads (thread_id, owner, title, source, created_at, last_activity_at, metadata) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_SELECT = f"SELECT {THREAD_COLUMNS}, {THREAD_STATUS} FROM threads WHERE"
_ONE = f"{_SELECT} thread_id = ? AND {MINE}"
_NEWEST_FIRST = "ORDER BY last_activity_at DESC, rowid DESC"


def insert_thread(
    connection: Connection,
    thread_id: str,
    *,
    owner: str,
    now: float,
    title: str = DEFAULT_TITLE,
    source: str = DEFAULT_SOURCE,
    metadata: Mapping[str, JsonValue] | None = None,
) -> None:
    at = to_text_time(now)
    connection.execute(_INSERT, (thread_id, owner, title, source, at, at, to_json(metadata or {})))


def create_thread(
    connection: Connection,
    thread_id: str,
    *,
    caller: Caller,
    now: float,
    title: str,
    source: str,
    metadata: Mapping[str, JsonValue] | None,
) -> Thread:
    if connection.execute("SELECT 1 FROM threads WHERE thread_id = ?", (thread_id,)).fetchone():
        raise Conflict("thread_exists", f"thread {thread_id!r} exists already: use it, or choose another id")
    insert_thread(connection, thread_id, owner=caller.owner, now=now, title=title, source=source, metadata=metadata)
    return thread_from(connection.execute(_ONE, (thread_id, *mine(caller))).fetchone())


def thread(connection: Connection, thread_id: str, *, caller: Caller) -> Thread | None:
    row = connection.execute(_ONE, (thread_id, *mine(caller))).fetchone()
    return thread_from(row) if row else None


def threads(
    connection: Connection, *, caller: Caller, limit: int, offset: int, status: ThreadStatus | None
) -> Sequence[Thread]:
    check_limit(limit)
    check_offset(offset)
    owner = () if caller.system else (caller.owner,)
    wanted = () if status is None else (status.value,)
    query = page_query(own=bool(owner), status=status)
    return [thread_from(row) for row in connection.execute(query, (*owner, *wanted, limit, offset)).fetchall()]


def page_query(*, own: bool, status: ThreadStatus | None) -> str:
    """Its parameters: the owner if `own`, the status if there is one, limit, offset.

    The page is chosen in an index first: `threads_by_activity`, which serves no OR (MINE), or where there are
    candidates theirs, which a `+` keeps SQLite from leaving for it.
    """
    candidates = CANDIDATES.get(status) if status else None
    conditions = [
        ("+owner = ?" if candidates else "owner = ?") if own else "",
        f"thread_id IN ({candidates})" if candidates else "",
        f"{THREAD_STATUS} = ?" if status else "",
    ]
    where = " AND ".join(filter(None, conditions)) or "true"
    return (
        f"{_SELECT} rowid IN (SELECT rowid FROM threads WHERE {where} {_NEWEST_FIRST} LIMIT ? OFFSET ?) {_NEWEST_FIRST}"
    )


def finish_copy(connection: Connection, copy: ThreadCopy, *, caller: Caller) -> Thread:
    """What a thread that was just created has of its log and its model; the thread as it is then."""
    connection.execute(
        "UPDATE threads SET next_seq = ?, model_id = ? WHERE thread_id = ?",
        (len(copy.events) + 1, copy.model_id, copy.thread_id),
    )
    return thread_from(connection.execute(_ONE, (copy.thread_id, *mine(caller))).fetchone())


def pin_model(connection: Connection, thread_id: str, model_id: str | None, *, caller: Caller) -> None:
    connection.execute(
        f"UPDATE threads SET model_id = ? WHERE thread_id = ? AND {MINE}", (model_id, thread_id, *mine(caller))
    )


def touch_thread(connection: Connection, thread_id: str, *, now: float) -> None:
    """Something happened on it. Activity never moves back, whatever the clock does."""
    connection.execute(
        "UPDATE threads SET last_activity_at = max(last_activity_at, ?) WHERE thread_id = ?",
        (to_text_time(now), thread_id),
    )


def delete_thread(connection: Connection, thread_id: str, *, caller: Caller) -> bool:
    """Runs, events, transcript, interrupts, intents, files and attachments go with it, by their foreign keys."""
    cursor = connection.execute(f"DELETE FROM threads WHERE thread_id = ? AND {MINE}", (thread_id, *mine(caller)))
    return cursor.rowcount > 0
