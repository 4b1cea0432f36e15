"""The fence that every write of a run passes: the epoch that it carries is the row's, and the run has not ended."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from typing import NamedTuple

from pizzabot_builtin_plugins.sqlite_storage.rows import MINE, Connection, mine
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.storage_backends import RunStatus

_FENCE = (
    "SELECT runs.thread_id, runs.first_seq, threads.next_seq, runs.epoch, runs.status "
    f"FROM runs JOIN threads USING (thread_id) WHERE run_id = ? AND {MINE.replace('owner', 'runs.owner')}"
)


class HeldRun(NamedTuple):
    """Where a run that is held writes: its thread, its first event if it has one, the thread's next number."""

    thread_id: str
    first_seq: int | None
    next_seq: int


def held_run(connection: Connection, run_id: str, epoch: int, *, caller: Caller) -> HeldRun:
    """Raises `Conflict` `lease_lost` when `epoch` is not the row's, or the run is final, gone or another owner's."""
    row = connection.execute(_FENCE, (run_id, *mine(caller))).fetchone()
    if row is None:
        raise lease_lost(run_id, epoch, "there is no such run any more")
    thread_id, first_seq, next_seq, held, status = row
    if held != epoch:
        raise lease_lost(run_id, epoch, f"it is held with epoch {held}")
    if RunStatus(status).final:
        raise lease_lost(run_id, epoch, f"it has ended as {status!r}")
    return HeldRun(thread_id, first_seq, next_seq)


def lease_lost(run_id: str, epoch: int, cause: str) -> Conflict:
    return Conflict(
        "lease_lost", f"run {run_id!r} is not held with epoch {epoch}: {cause}; stop and write nothing more"
    )
