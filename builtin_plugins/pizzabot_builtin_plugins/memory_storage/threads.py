"""Threads and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from pizzabot_builtin_plugins.memory_storage.attachments import AttachmentTables
from pizzabot_builtin_plugins.memory_storage.rows import (
    ThreadRow,
    check_limit,
    check_offset,
    copied,
    may_touch,
    thread_copy,
)
from pizzabot_builtin_plugins.memory_storage.state import request_keys
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.interrupts import InterruptState
from pizzabot_hookspecs.storage_backends import Thread, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue

DEFAULT_TITLE = "New conversation"
DEFAULT_SOURCE = "user"


class ThreadTables(AttachmentTables):
    def create_thread(
        self,
        thread_id: str,
        *,
        caller: Caller,
        now: float,
        title: str = DEFAULT_TITLE,
        source: str = DEFAULT_SOURCE,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Thread:
        if thread_id in self._threads:
            raise Conflict("thread_exists", f"thread {thread_id!r} exists already: use it, or choose another id")
        thread = Thread(
            thread_id=thread_id,
            owner=caller.owner,
            title=title,
            source=source,
            created_at=now,
            last_activity_at=now,
            next_seq=1,
            metadata=copied(metadata or {}),
        )
        self._threads[thread_id] = ThreadRow(thread=thread)
        return thread_copy(thread, thread.status)

    def thread(self, thread_id: str, *, caller: Caller) -> Thread | None:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return None
        return thread_copy(row.thread, self._status(row, asked=bool(self._open_of_thread(thread_id))))

    def threads(self, *, caller: Caller, limit: int, offset: int, status: ThreadStatus | None) -> Sequence[Thread]:
        check_limit(limit)
        check_offset(offset)
        rows = [row for row in self._threads.values() if may_touch(row.thread.owner, caller)]
        newest_first = sorted(rows, key=lambda row: row.thread.last_activity_at)[::-1]
        asked = self._asked_threads()
        told = ((row.thread, self._status(row, asked=row.thread.thread_id in asked)) for row in newest_first)
        wanted = (pair for pair in told if status in (None, pair[1]))
        return [thread_copy(*pair) for pair in islice(wanted, offset, offset + limit)]

    def _asked_threads(self) -> frozenset[str]:
        opened = (asked for asked in self._interrupts.values() if asked.state is InterruptState.OPEN)
        return frozenset(asked.thread_id for asked in opened)

    def pin_model(self, thread_id: str, model_id: str | None, *, caller: Caller) -> None:
        row = self._thread_row(thread_id, caller)
        if row is not None:
            row.thread = replace(row.thread, model_id=model_id)

    def delete_thread(self, thread_id: str, *, caller: Caller) -> bool:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return False
        for run_id in row.runs:
            for key in request_keys(self._runs.pop(run_id).run):
                del self._keys[key]
        for place in [place for place in self._interrupts if place[0] == thread_id]:
            del self._interrupts[place]
        self.leave_attachments(thread_id)
        self._messages.pop(thread_id, None)
        del self._threads[thread_id]
        return True

    def setting(self, key: str, *, caller: Caller) -> JsonValue:
        value: JsonValue = copied(self._settings.get((caller.owner, key)))
        return value

    def put_setting(self, key: str, value: JsonValue, *, caller: Caller) -> None:
        if value is None:
            self._settings.pop((caller.owner, key), None)
        else:
            self._settings[caller.owner, key] = copied(value)
