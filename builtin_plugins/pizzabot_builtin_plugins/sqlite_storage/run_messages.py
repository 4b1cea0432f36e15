"""Which messages a thread has: an id is one message's, on every branch and in a copy (durable-runs rule 11)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pizzabot_builtin_plugins.sqlite_storage.rows import Connection
from pizzabot_builtin_plugins.sqlite_storage.values import to_json
from pizzabot_hookspecs import Conflict
from pizzabot_hookspecs.storage_backends import NewRun

_KNOWN = (
    "SELECT message_id, digest FROM run_messages WHERE thread_id = ? AND message_id IN (SELECT value FROM json_each(?))"
)
_INSERT = "INSERT OR IGNORE INTO run_messages (thread_id, message_id, digest) VALUES (?, ?, ?)"


def digests(run_input: Mapping[str, Any]) -> dict[str, bytes]:
    """What a run was begun with: the digest of each message's parts, by its id."""
    return {
        message["id"]: hashlib.sha256(to_json(message.get("parts")).encode()).digest()
        for message in run_input.get("messages") or ()
        if isinstance(message, Mapping) and isinstance(message.get("id"), str)
    }


def refuse_taken(connection: Connection, new: NewRun) -> None:
    """Raises `Conflict` `idempotency_mismatch` for a message under an id that another one of the thread has."""
    brought = {} if new.message_id is None else digests(new.input)
    if not brought:
        return
    for message_id, digest in connection.execute(_KNOWN, (new.thread_id, to_json(list(brought)))):
        if digest != brought[message_id]:
            raise Conflict(
                "idempotency_mismatch",
                f"thread {new.thread_id!r} has another message {message_id!r}, which this one would replace: "
                "mint a new id",
            )


def take(connection: Connection, thread_id: str, run_input: Mapping[str, Any]) -> None:
    rows = [(thread_id, name, digest) for name, digest in digests(run_input).items()]
    if rows:
        connection.executemany(_INSERT, rows)
