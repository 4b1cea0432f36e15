"""The table `settings`: JSON values by owner and key."""

from __future__ import annotations

from pizzabot_builtin_plugins.sqlite_storage.rows import Connection
from pizzabot_builtin_plugins.sqlite_storage.values import from_json, to_json, to_text_time
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.wire import JsonValue

_PUT = (
    "INSERT INTO settings (owner, key, value, updated_at) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (owner, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at"
)


def setting(connection: Connection, key: str, *, caller: Caller) -> JsonValue:
    row = connection.execute("SELECT value FROM settings WHERE owner = ? AND key = ?", (caller.owner, key)).fetchone()
    value: JsonValue = from_json(row[0]) if row else None
    return value


def put_setting(connection: Connection, key: str, value: JsonValue, *, caller: Caller, now: float) -> None:
    if value is None:
        connection.execute("DELETE FROM settings WHERE owner = ? AND key = ?", (caller.owner, key))
    else:
        connection.execute(_PUT, (caller.owner, key, to_json(value), to_text_time(now)))
