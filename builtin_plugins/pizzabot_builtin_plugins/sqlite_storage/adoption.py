"""Adopting: a thread that is a copy of another one is stored whole, with its runs, its log and its files."""

from __future__ import annotations

from typing import NamedTuple

from pizzabot_builtin_plugins.sqlite_storage.attachments import belong
from pizzabot_builtin_plugins.sqlite_storage.events import event_row, insert_rows
from pizzabot_builtin_plugins.sqlite_storage.rows import Connection, Row
from pizzabot_builtin_plugins.sqlite_storage.run_messages import take
from pizzabot_builtin_plugins.sqlite_storage.threads import create_thread, finish_copy
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_time
from pizzabot_builtin_plugins.sqlite_storage.workspace import insert_files
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest
from pizzabot_hookspecs.storage_backends import Run, Thread, ThreadCopy

_RUN_EXISTS = "SELECT 1 FROM runs WHERE run_id = ?"
# No key and no message id: nothing that is sent again means this run. No fingerprint is empty, so none matches.
_INSERT_RUN = (
    "INSERT INTO runs (run_id, thread_id, owner, status, input, options, created_at, started_at, ended_at, "
    "cancel_requested_at, cancel_reason, error_code, error, began, first_seq, fingerprint, position, replacement) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0)"
)


class Stretch(NamedTuple):
    """Where a run's events lie in the log."""

    first_seq: int
    last_seq: int


def adopt_thread(connection: Connection, copy: ThreadCopy, *, caller: Caller, now: float) -> Thread:
    """Raises `Conflict` `thread_exists`, `run_exists` and `InvalidRequest` `invalid_copy`."""
    stretches = checked(copy)
    check_files(copy)
    create_thread(
        connection,
        copy.thread_id,
        caller=caller,
        now=now,
        title=copy.title,
        source=copy.source,
        metadata=copy.metadata,
    )
    began = beginnings(copy, stretches)
    for run in copy.runs:
        if connection.execute(_RUN_EXISTS, (run.run_id,)).fetchone():
            raise Conflict("run_exists", f"run {run.run_id!r} exists already: mint another id for the copy")
        stretch = stretches.get(run.run_id)
        row = _run_row(run, caller.owner, began.get(run.run_id), stretch.first_seq if stretch else None)
        connection.execute(_INSERT_RUN, row)
        take(connection, copy.thread_id, run.input)
    insert_rows(connection, (event_row(copy.thread_id, event.run_id, event, seq=event.seq) for event in copy.events))
    insert_files(connection, copy.files)
    belong(connection, copy.thread_id, copy.attachments, owner=caller.owner)
    return finish_copy(connection, copy, caller=caller)


def checked(copy: ThreadCopy) -> dict[str, Stretch]:
    """Where each run's events lie. Raises `InvalidRequest` `invalid_copy` for what is no log of final runs."""
    ids = {run.run_id for run in copy.runs}
    for run in copy.runs:
        if not run.status.final or run.thread_id != copy.thread_id:
            raise _invalid(copy, f"run {run.run_id!r} is {run.status.value} and of thread {run.thread_id!r}")
    stretches: dict[str, Stretch] = {}
    for seq, event in enumerate(copy.events, start=1):
        if event.seq != seq or event.thread_id != copy.thread_id:
            raise _invalid(copy, f"event {seq} has the number {event.seq} and is of thread {event.thread_id!r}")
        if event.run_id is None:
            continue
        if event.run_id not in ids:
            raise _invalid(copy, f"event {seq} is of run {event.run_id!r}, which is not in the copy")
        known = stretches.get(event.run_id)
        stretches[event.run_id] = Stretch(known.first_seq if known else seq, seq)
    return stretches


def check_files(copy: ThreadCopy) -> None:
    """Raises `InvalidRequest` `invalid_copy` for versions that are not the copy's, or two of one number."""
    run_ids: set[str | None] = {None, *(run.run_id for run in copy.runs)}
    seen: set[tuple[str, int]] = set()
    for file in copy.files:
        what, place = f"version {file.version} of file {file.path!r}", (file.path, file.version)
        if file.thread_id != copy.thread_id or file.run_id not in run_ids:
            raise _invalid(copy, f"{what} is of thread {file.thread_id!r} and run {file.run_id!r}")
        if not 1 <= file.seq <= len(copy.events):
            raise _invalid(copy, f"{what} names event {file.seq}, of {len(copy.events)}")
        if file.version < 1 or place in seen:
            raise _invalid(copy, f"{what} is there twice, or counts from less than 1")
        seen.add(place)


def beginnings(copy: ThreadCopy, stretches: dict[str, Stretch]) -> dict[str, int]:
    """The place of each run that was claimed in the order of the beginnings.

    One run at a time is active on a thread, and writes its last event while it is: the log has the order, whatever
    the clock did.
    """

    def end(run: Run) -> tuple[int, float]:
        stretch = stretches.get(run.run_id)
        return stretch.last_seq if stretch else 0, run.ended_at or 0.0

    claimed = sorted((run for run in copy.runs if run.started_at is not None), key=end)
    return {run.run_id: place for place, run in enumerate(claimed, start=1)}


def _run_row(run: Run, owner: str, began: int | None, first_seq: int | None) -> Row:
    return (
        run.run_id,
        run.thread_id,
        owner,
        run.status.value,
        to_json(run.input),
        to_json(run.options),
        to_text_time(run.created_at),
        _time(run.started_at),
        _time(run.ended_at),
        _time(run.cancel_requested_at),
        run.cancel_reason.value if run.cancel_reason else None,
        run.error_code,
        run.error,
        began,
        first_seq,
    )


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else to_text_time(seconds)


def _invalid(copy: ThreadCopy, cause: str) -> InvalidRequest:
    return InvalidRequest(
        "invalid_copy",
        f"thread {copy.thread_id!r} cannot be stored as a copy: {cause}; it takes runs of its own that are final, "
        "events that count from 1, and versions of files that name one of each",
    )
