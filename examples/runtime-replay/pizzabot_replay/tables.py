"""The two tables of the archive and what is done with them, inside the caller's transaction. Blocking."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pizzabot_replay.messages import Stored

SCHEMA_VERSION = 1

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS messages (
    thread_id TEXT NOT NULL, position INTEGER NOT NULL, message TEXT NOT NULL, created_at REAL NOT NULL,
    PRIMARY KEY (thread_id, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS recordings (
    number INTEGER PRIMARY KEY, digest TEXT NOT NULL UNIQUE, answer TEXT NOT NULL, created_at REAL NOT NULL
);
PRAGMA user_version = {SCHEMA_VERSION};
"""


@dataclass(frozen=True, kw_only=True)
class Conversation:
    """`created_at` holds for each message when it was stored, in seconds since the epoch."""

    messages: tuple[Stored, ...] = ()
    created_at: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recording:
    """An answer as it was streamed. `pieces` are `(text or reasoning, what it says)`."""

    digest: str
    pieces: tuple[tuple[str, str], ...]


def connect(path: Path) -> sqlite3.Connection:
    """Open the file, make the tables where they are missing. Raises `sqlite3.Error` and `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        path.chmod(0o600)
        _check_version(connection)
        connection.executescript(f"PRAGMA journal_mode = WAL; {_SCHEMA}")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise sqlite3.DatabaseError(f"a newer version of this plugin has written it ({version} > {SCHEMA_VERSION})")


def conversation(connection: sqlite3.Connection, thread_id: str) -> Conversation:
    query = "SELECT message, created_at FROM messages WHERE thread_id = ? ORDER BY position"
    rows = connection.execute(query, (thread_id,)).fetchall()
    return Conversation(messages=tuple(json.loads(row[0]) for row in rows), created_at=tuple(row[1] for row in rows))


def add(
    connection: sqlite3.Connection, thread_id: str, messages: Sequence[Stored], *, keep: int | None, now: float
) -> Conversation:
    if keep is not None:
        connection.execute("DELETE FROM messages WHERE thread_id = ? AND position >= ?", (thread_id, keep))
    so_far = conversation(connection, thread_id)
    known = {message["id"] for message in so_far.messages}
    fresh = [message for message in messages if message["id"] not in known]
    rows = [(thread_id, len(known) + place, json.dumps(message), now) for place, message in enumerate(fresh)]
    connection.executemany("INSERT INTO messages VALUES (?, ?, ?, ?)", rows)
    return Conversation(messages=(*so_far.messages, *fresh), created_at=(*so_far.created_at, *(now for _ in fresh)))


def record(connection: sqlite3.Connection, recording: Recording, *, now: float, limit: int) -> None:
    """Keep the recording instead of an older one of the same digest, and only the newest `limit` of all."""
    row = (recording.digest, json.dumps(recording.pieces), now)
    connection.execute("INSERT OR REPLACE INTO recordings (digest, answer, created_at) VALUES (?, ?, ?)", row)
    newest = "SELECT number FROM recordings ORDER BY number DESC LIMIT ?"
    connection.execute(f"DELETE FROM recordings WHERE number NOT IN ({newest})", (limit,))  # noqa: S608 - constants


def recording(connection: sqlite3.Connection, digest: str) -> Recording | None:
    row = connection.execute("SELECT answer FROM recordings WHERE digest = ?", (digest,)).fetchone()
    if row is None:
        return None
    return Recording(digest=digest, pieces=tuple((kind, text) for kind, text in json.loads(row[0])))


def forget(connection: sqlite3.Connection, thread_id: str) -> None:
    connection.execute("DELETE FROM messages WHERE thread_id = ?", (thread_id,))
