"""The table `intents`: calls of tools that must not run twice, stored before they run and closed by their result."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Sequence

from pizzabot_builtin_plugins.sqlite_storage.fencing import held_run
from pizzabot_builtin_plugins.sqlite_storage.rows import INTENT_COLUMNS, MINE, Connection, intent_from, mine
from pizzabot_builtin_plugins.sqlite_storage.values import to_text_namespace, to_text_time
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.interrupts import Intent
from pizzabot_hookspecs.wire import Namespace

# A call that was closed and is opened again, in a later attempt, goes to the end of the order.
_FORGET_CLOSED = "DELETE FROM intents WHERE run_id = ? AND call_id = ? AND closed_at IS NOT NULL"
_OPEN = (
    "INSERT INTO intents (run_id, call_id, tool, namespace, opened_at) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (run_id, call_id) DO NOTHING"
)
_CLOSE = "UPDATE intents SET closed_at = ? WHERE run_id = ? AND call_id = ? AND closed_at IS NULL"
_OF_RUN = (
    f"SELECT {INTENT_COLUMNS} FROM intents WHERE run_id = ? AND closed_at IS NULL "
    f"AND EXISTS (SELECT 1 FROM runs WHERE runs.run_id = intents.run_id AND {MINE}) ORDER BY place"
)


def open_intent(
    connection: Connection,
    run_id: str,
    epoch: int,
    *,
    call_id: str,
    tool: str,
    namespace: Namespace,
    caller: Caller,
    now: float,
) -> None:
    held_run(connection, run_id, epoch, caller=caller)
    connection.execute(_FORGET_CLOSED, (run_id, call_id))
    connection.execute(_OPEN, (run_id, call_id, tool, to_text_namespace(namespace), to_text_time(now)))


def close_intent(connection: Connection, run_id: str, epoch: int, *, call_id: str, caller: Caller, now: float) -> None:
    held_run(connection, run_id, epoch, caller=caller)
    connection.execute(_CLOSE, (to_text_time(now), run_id, call_id))


def open_intents(connection: Connection, run_id: str, *, caller: Caller) -> Sequence[Intent]:
    return [intent_from(row) for row in connection.execute(_OF_RUN, (run_id, *mine(caller))).fetchall()]
