"""The dictionaries themselves, and looking into them with a caller's eyes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pizzabot_builtin_plugins.memory_storage.rows import RunRow, ThreadRow, copied, may_touch
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.file_storage import Attachment, FolderGrant
from pizzabot_hookspecs.interrupts import Interrupt, InterruptState
from pizzabot_hookspecs.storage_backends import CancelReason, Run, RunStatus, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue


class State:
    """Base of the parts of `Tables`. Dictionaries keep the order of insertion: oldest first."""

    def __init__(self) -> None:
        self._threads: dict[str, ThreadRow] = {}
        self._runs: dict[str, RunRow] = {}
        self._keys: dict[tuple[str, str, str], str] = {}
        self._messages: dict[str, dict[str, JsonValue]] = {}
        self._interrupts: dict[tuple[str, str], Interrupt] = {}
        self._attachments: dict[str, Attachment] = {}
        self._attached_to: dict[str, list[str]] = {}
        self._grants: dict[tuple[str, str], FolderGrant] = {}
        self._settings: dict[tuple[str, str], JsonValue] = {}

    def _thread_row(self, thread_id: str, caller: Caller) -> ThreadRow | None:
        row = self._threads.get(thread_id)
        return row if row is not None and may_touch(row.thread.owner, caller) else None

    def _run_row(self, run_id: str, caller: Caller) -> RunRow | None:
        row = self._runs.get(run_id)
        return row if row is not None and may_touch(row.run.owner, caller) else None

    def _held(self, run_id: str, epoch: int, caller: Caller) -> RunRow:
        """The fence that every write of a run passes. Raises `Conflict` `lease_lost`."""
        row = self._run_row(run_id, caller)
        if row is None or row.run.epoch != epoch or row.run.status.final:
            raise Conflict("lease_lost", f"run {run_id!r} is not held with epoch {epoch}: stop and write nothing more")
        return row

    def _open_of_thread(self, thread_id: str) -> list[Interrupt]:
        return [
            interrupt
            for (of_thread, _), interrupt in self._interrupts.items()
            if of_thread == thread_id and interrupt.state is InterruptState.OPEN
        ]

    def _may_begin(self, row: ThreadRow, *, asked: bool) -> list[str]:
        """The queue, front first. While a person is asked, a message waits; what they decided or stopped does not."""
        return [run_id for run_id in row.queue if not asked or self._runs[run_id].passes_questions]

    def _status(self, row: ThreadRow, *, asked: bool) -> ThreadStatus:
        if row.active or self._may_begin(row, asked=asked):
            return ThreadStatus.BUSY
        if asked:
            return ThreadStatus.INTERRUPTED
        failed = row.ended is not None and self._runs[row.ended].run.status in (RunStatus.ERROR, RunStatus.TIMEOUT)
        return ThreadStatus.ERROR if failed else ThreadStatus.IDLE

    @staticmethod
    def _mark_cancelled(row: RunRow, reason: CancelReason, now: float) -> Run:
        run = row.run
        row.run = replace(
            run,
            status=RunStatus.CANCELLING if run.status.active else run.status,
            cancel_reason=run.cancel_reason or reason,
            cancel_requested_at=now if run.cancel_requested_at is None else run.cancel_requested_at,
        )
        return row.run

    def _remember(self, thread_id: str, run_input: Mapping[str, Any]) -> None:
        known = self._messages.setdefault(thread_id, {})
        known.update((name, parts) for name, parts in said(run_input).items() if name not in known)

    @staticmethod
    def _touch(row: ThreadRow, now: float) -> None:
        row.thread = replace(row.thread, last_activity_at=max(row.thread.last_activity_at, now))


def said(run_input: Mapping[str, Any]) -> dict[str, JsonValue]:
    """What a run was begun with: the parts of each message, by its id."""
    return {
        message["id"]: copied(message.get("parts"))
        for message in run_input.get("messages") or ()
        if isinstance(message, Mapping) and isinstance(message.get("id"), str)
    }


def request_keys(run: Run) -> list[tuple[str, str, str]]:
    """What else than its id a resent request is recognised by."""
    keys = [("key", run.owner, run.idempotency_key), ("message", run.thread_id, run.message_id)]
    return [(kind, scope, value) for kind, scope, value in keys if value is not None]
