"""The table `interrupts`: opened and withdrawn with the end of a run, listed by thread and for the inbox."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Sequence

from pizzabot_builtin_plugins.sqlite_storage.rows import (
    INTERRUPT_COLUMNS,
    MINE,
    Connection,
    check_limit,
    interrupt_from,
    mine,
)
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_namespace, to_text_time
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.interrupts import Interrupt, NewInterrupt

PENDING_NAMED = 200
"""Ids that a refusal names: as many as `open_interrupts` lists unasked."""

# An id that the thread knows stays as it is: what a resumed run reports again may be decided by now.
_OPEN = (
    "INSERT INTO interrupts (interrupt_id, thread_id, run_id, owner, kind, namespace, payload, state, created_at) "
    "SELECT ?, thread_id, run_id, owner, ?, ?, ?, 'open', ? FROM runs WHERE run_id = ? "
    "ON CONFLICT (thread_id, interrupt_id) DO NOTHING"
)
_WITHDRAW = (
    "UPDATE interrupts SET state = 'withdrawn', decided_at = ? "
    "WHERE thread_id = (SELECT thread_id FROM runs WHERE run_id = ?) AND state = 'open'"
)
_OF_THREAD = (
    f"SELECT {INTERRUPT_COLUMNS} FROM interrupts WHERE thread_id = ? AND state = 'open' AND {MINE} "
    "ORDER BY place LIMIT ?"
)
# Two texts instead of MINE: the index on owner serves the first one only without an OR.
_OWN = f"SELECT {INTERRUPT_COLUMNS} FROM interrupts WHERE owner = ? AND state = 'open' ORDER BY place LIMIT ?"
_ALL = f"SELECT {INTERRUPT_COLUMNS} FROM interrupts WHERE state = 'open' ORDER BY place LIMIT ?"
_ONE = (
    f"SELECT {INTERRUPT_COLUMNS} FROM interrupts WHERE interrupt_id = ? AND {MINE} "
    "ORDER BY state = 'open' DESC, place DESC LIMIT 1"
)
_PENDING = "SELECT interrupt_id FROM interrupts WHERE thread_id = ? AND state = 'open' ORDER BY place LIMIT ?"


def open_all(connection: Connection, run_id: str, interrupts: Sequence[NewInterrupt], *, now: float) -> None:
    at = to_text_time(now)
    for new in interrupts:
        namespace = to_text_namespace(tuple(new.namespace))
        row = (new.interrupt_id, new.kind.value, namespace, to_json(new.payload), at, run_id)
        connection.execute(_OPEN, row)


def withdraw_all(connection: Connection, run_id: str, *, now: float) -> None:
    """Every open interrupt of this run's thread: the turn that asked was given up."""
    connection.execute(_WITHDRAW, (to_text_time(now), run_id))


def open_interrupts(
    connection: Connection, *, thread_id: str | None, limit: int, caller: Caller
) -> Sequence[Interrupt]:
    check_limit(limit)
    if thread_id is not None:
        rows = connection.execute(_OF_THREAD, (thread_id, *mine(caller), limit))
    elif caller.system:
        rows = connection.execute(_ALL, (limit,))
    else:
        rows = connection.execute(_OWN, (caller.owner, limit))
    return [interrupt_from(row) for row in rows.fetchall()]


def interrupt(connection: Connection, interrupt_id: str, *, caller: Caller) -> Interrupt | None:
    """An id is unique in its thread; of several (a copied thread) the open one counts, else the newest."""
    row = connection.execute(_ONE, (interrupt_id, *mine(caller))).fetchone()
    return interrupt_from(row) if row else None


def pending_ids(connection: Connection, thread_id: str) -> list[str]:
    """The first `PENDING_NAMED` open ones, oldest first."""
    return [row[0] for row in connection.execute(_PENDING, (thread_id, PENDING_NAMED)).fetchall()]
