"""Adopting: a thread that is a copy of another one is stored whole, with its runs, its log and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pizzabot_builtin_plugins.memory_storage.log import extend, stored_event
from pizzabot_builtin_plugins.memory_storage.rows import Place, RunRow, copied, thread_copy
from pizzabot_builtin_plugins.memory_storage.threads import ThreadTables
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest
from pizzabot_hookspecs.file_storage import FileVersion
from pizzabot_hookspecs.storage_backends import Run, Thread, ThreadCopy

_Stretch = tuple[int, int]
"""The first and the last event of a run."""


class AdoptionTables(ThreadTables):
    def adopt_thread(self, copy: ThreadCopy, *, caller: Caller, now: float) -> Thread:
        """Raises `Conflict` `thread_exists`, `run_exists` and `InvalidRequest` `invalid_copy`."""
        stretches = _checked(copy)
        files = _checked_files(copy)
        if copy.thread_id not in self._threads:  # else `create_thread` refuses it
            self._refuse_known_runs(copy)
        rows = _run_rows(copy, stretches, caller.owner)
        self.create_thread(
            copy.thread_id, caller=caller, now=now, title=copy.title, source=copy.source, metadata=copy.metadata
        )
        thread = self._threads[copy.thread_id]
        extend(thread, [stored_event(event, event.seq, copy.thread_id, event.run_id) for event in copy.events])
        thread.thread = replace(thread.thread, model_id=copy.model_id)
        thread.files = files
        thread.runs = list(rows)
        thread.beginnings = max((row.began for row in rows.values()), default=0)
        thread.ended = _ended_last(rows)
        self._runs.update(rows)
        for run in copy.runs:
            self._remember(copy.thread_id, run.input)
        self.belong(copy.thread_id, copy.attachments, owner=caller.owner)
        return thread_copy(thread.thread, self._status(thread, asked=False))

    def _refuse_known_runs(self, copy: ThreadCopy) -> None:
        seen: set[str] = set()
        for run in copy.runs:
            if run.run_id in seen or run.run_id in self._runs:
                raise Conflict("run_exists", f"run {run.run_id!r} exists already: mint another id for the copy")
            seen.add(run.run_id)


def _run_rows(copy: ThreadCopy, stretches: Mapping[str, _Stretch], owner: str) -> dict[str, RunRow]:
    """Without what a run needs to go on or to be found by a request that is sent again."""

    def end(run: Run) -> tuple[int, float]:
        # One run at a time is active, and writes its last event while it is: the log has the order of the beginnings.
        return stretches.get(run.run_id, (0, 0))[1], run.ended_at or 0.0

    claimed = sorted((run for run in copy.runs if run.started_at is not None), key=end)
    began = {run.run_id: place for place, run in enumerate(claimed, start=1)}
    rows: dict[str, RunRow] = {}
    for run in copy.runs:
        first_seq = stretches[run.run_id][0] if run.run_id in stretches else None
        rows[run.run_id] = RunRow(
            run=_final(run, owner, first_seq),
            fingerprint="",
            place=Place.END,
            began=began.get(run.run_id, 0),
            first_seq=first_seq,
        )
    return rows


def _final(run: Run, owner: str, first_seq: int | None) -> Run:
    return Run(
        run_id=run.run_id,
        thread_id=run.thread_id,
        owner=owner,
        status=run.status,
        input=copied(run.input),
        options=copied(run.options),
        created_at=run.created_at,
        first_seq=first_seq,
        started_at=run.started_at,
        ended_at=run.ended_at,
        cancel_requested_at=run.cancel_requested_at,
        cancel_reason=run.cancel_reason,
        error_code=run.error_code,
        error=run.error,
    )


def _ended_last(rows: Mapping[str, RunRow]) -> str | None:
    ended = [run_id for run_id, row in rows.items() if row.run.ended_at is not None]
    return max(ended, key=lambda run_id: rows[run_id].beginning, default=None)


def _checked(copy: ThreadCopy) -> dict[str, _Stretch]:
    """Where each run's events lie. Raises `InvalidRequest` `invalid_copy` for what is no log of final runs."""
    ids = {run.run_id for run in copy.runs}
    for run in copy.runs:
        if not run.status.final or run.thread_id != copy.thread_id:
            raise _invalid(copy, f"run {run.run_id!r} is {run.status.value} and of thread {run.thread_id!r}")
    stretches: dict[str, _Stretch] = {}
    for seq, event in enumerate(copy.events, start=1):
        if event.seq != seq or event.thread_id != copy.thread_id:
            raise _invalid(copy, f"event {seq} has the number {event.seq} and is of thread {event.thread_id!r}")
        if event.run_id is None:
            continue
        if event.run_id not in ids:
            raise _invalid(copy, f"event {seq} is of run {event.run_id!r}, which is not in the copy")
        stretches[event.run_id] = (stretches.get(event.run_id, (seq, seq))[0], seq)
    return stretches


def _checked_files(copy: ThreadCopy) -> dict[str, list[FileVersion]]:
    """The versions of each path, oldest first. Raises `InvalidRequest` `invalid_copy`."""
    run_ids: set[str | None] = {None, *(run.run_id for run in copy.runs)}
    files: dict[str, list[FileVersion]] = {}
    for file in sorted(copy.files, key=lambda file: file.version):
        versions = files.setdefault(file.path, [])
        what = f"version {file.version} of file {file.path!r}"
        if file.thread_id != copy.thread_id or file.run_id not in run_ids:
            raise _invalid(copy, f"{what} is of thread {file.thread_id!r} and run {file.run_id!r}")
        if not 1 <= file.seq <= len(copy.events):
            raise _invalid(copy, f"{what} names event {file.seq}, of {len(copy.events)}")
        if file.version < 1 or (versions and versions[-1].version == file.version):
            raise _invalid(copy, f"{what} is there twice, or counts from less than 1")
        versions.append(file)
    return files


def _invalid(copy: ThreadCopy, cause: str) -> InvalidRequest:
    return InvalidRequest(
        "invalid_copy",
        f"thread {copy.thread_id!r} cannot be stored as a copy: {cause}; it takes runs of its own that are final, "
        "events that count from 1, and versions of files that name one of each",
    )
