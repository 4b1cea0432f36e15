"""The table `threads`. Each function is one transaction's work on a connection."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pizzabot_builtin_plugins.sqlite_storage.rows import (
    MINE,
    THREAD_COLUMNS,
    Connection,
    check_limit,
    mine,
    thread_from,
)
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_time
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.storage_backends import Thread
from pizzabot_hookspecs.wire import JsonValue

DEFAULT_TITLE = "New conversation"
DEFAULT_SOURCE = "user"

_INSERT = (
    "INSERT INTO threads (thread_id, owner, title, source, created_at, last_activity_at, metadata) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_ONE = f"SELECT {THREAD_COLUMNS} FROM threads WHERE thread_id = ? AND {MINE}"
# Two texts instead of MINE: the index on (owner, last_activity_at) serves the first one only without an OR.
_OWN = f"SELECT {THREAD_COLUMNS} FROM threads WHERE owner = ? ORDER BY last_activity_at DESC, rowid DESC LIMIT ?"
_ALL = f"SELECT {THREAD_COLUMNS} FROM threads ORDER BY last_activity_at DESC, rowid DESC LIMIT ?"


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


def threads(connection: Connection, *, caller: Caller, limit: int) -> Sequence[Thread]:
    check_limit(limit)
    rows = connection.execute(_ALL, (limit,)) if caller.system else connection.execute(_OWN, (caller.owner, limit))
    return [thread_from(row) for row in rows.fetchall()]


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
    """Runs, events, interrupts and intents go with it, by their foreign keys."""
    cursor = connection.execute(f"DELETE FROM threads WHERE thread_id = ? AND {MINE}", (thread_id, *mine(caller)))
    return cursor.rowcount > 0
