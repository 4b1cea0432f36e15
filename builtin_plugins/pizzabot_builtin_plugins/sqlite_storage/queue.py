"""A thread's queue: what resumes an interrupt comes first, then replacements, then what was enqueued.

A resume is never behind a message: on a thread that waits, LangGraph would drop the approval (reproduced R3).
"""

from __future__ import annotations

from enum import Enum

from pizzabot_builtin_plugins.sqlite_storage.rows import Connection
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_time
from pizzabot_hookspecs.storage_backends import NewRun

_ENDS = "SELECT min(position), max(position) FROM runs WHERE thread_id = ? AND status = 'pending'"
_INSERT = (
    "INSERT INTO runs (run_id, thread_id, owner, status, input, options, created_at, idempotency_key, message_id, "
    "fingerprint, position, replacement, resume) VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class Place(Enum):
    """Where a run joins the queue."""

    RESUME = "in front of all messages, behind the resumes that wait"
    REPLACEMENT = "in front of the other messages"
    END = "at the end"


def is_empty(connection: Connection, thread_id: str) -> bool:
    return _ends(connection, thread_id) == (None, None)


def join(connection: Connection, new: NewRun, *, place: Place, owner: str, now: float) -> None:
    """Insert the run as pending, at its place."""
    first, last = _ends(connection, new.thread_id)
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
        (first or 0) - 1 if place is Place.REPLACEMENT else (last or 0) + 1,
        place is Place.REPLACEMENT,
        place is Place.RESUME,
    )
    connection.execute(_INSERT, row)


def _ends(connection: Connection, thread_id: str) -> tuple[int | None, int | None]:
    """The positions of the first and the last pending run."""
    first, last = connection.execute(_ENDS, (thread_id,)).fetchone()
    return first, last
