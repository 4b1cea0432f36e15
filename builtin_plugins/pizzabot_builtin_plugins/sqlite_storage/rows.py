"""Rows to the dataclasses of the contract, and whose rows a caller may touch."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pizzabot_builtin_plugins.sqlite_storage.values import from_json, from_text_namespace, from_text_time
from pizzabot_hookspecs import Caller, InvalidRequest
from pizzabot_hookspecs.file_storage import Attachment, FileVersion, FolderGrant
from pizzabot_hookspecs.interrupts import Intent, Interrupt, InterruptKind, InterruptState
from pizzabot_hookspecs.storage_backends import CancelReason, Run, RunStatus, StoredEvent, Thread, ThreadStatus

T = TypeVar("T")

Row = tuple[Any, ...]
Connection = sqlite3.Connection

THREAD_COLUMNS = "thread_id, owner, title, source, created_at, last_activity_at, next_seq, model_id, metadata"
RUN_COLUMNS = (
    "run_id, thread_id, owner, status, input, options, created_at, epoch, attempt, server_id, started_at, ended_at, "
    "cancel_requested_at, cancel_reason, idempotency_key, message_id, error_code, error, lease_until, first_seq, "
    "released"
)
EVENT_COLUMNS = "seq, run_id, method, payload, at, namespace, node, name"
INTERRUPT_COLUMNS = (
    "interrupt_id, run_id, thread_id, owner, kind, payload, namespace, state, created_at, "
    "answer, decided_by, decided_at"
)
INTENT_COLUMNS = "run_id, call_id, tool, namespace, opened_at"
FILE_COLUMNS = "path, version, sha256, size, media_type, author, turn_id, run_id, seq, created_at"

MINE = "(? OR owner = ?)"
"""The filter of every query on rows that belong to someone; its two parameters are `mine(caller)`."""


def mine(caller: Caller) -> tuple[bool, str]:
    return caller.system, caller.owner


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """For a reader whose statements have to see the same moment."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def check_limit(limit: int) -> None:
    if limit < 0:
        raise InvalidRequest("invalid_limit", f"limit is {limit}: it must be 0 or more")


def check_offset(offset: int) -> None:
    if offset < 0:
        raise InvalidRequest("invalid_offset", f"offset is {offset}: it must be 0 or more")


def thread_from(row: Row) -> Thread:
    return Thread(
        thread_id=row[0],
        owner=row[1],
        title=row[2],
        source=row[3],
        created_at=from_text_time(row[4]),
        last_activity_at=from_text_time(row[5]),
        next_seq=row[6],
        model_id=row[7],
        metadata=from_json(row[8]),
        status=ThreadStatus(row[9]),
    )


def run_from(row: Row) -> Run:
    return Run(
        run_id=row[0],
        thread_id=row[1],
        owner=row[2],
        status=RunStatus(row[3]),
        input=from_json(row[4]),
        options=from_json(row[5]),
        created_at=from_text_time(row[6]),
        epoch=row[7],
        attempt=row[8],
        server_id=row[9],
        started_at=_optional(from_text_time, row[10]),
        ended_at=_optional(from_text_time, row[11]),
        cancel_requested_at=_optional(from_text_time, row[12]),
        cancel_reason=_optional(CancelReason, row[13]),
        idempotency_key=row[14],
        message_id=row[15],
        error_code=row[16],
        error=row[17],
        lease_until=_optional(from_text_time, row[18]),
        first_seq=row[19],
        released=row[20],
    )


def event_from(row: Row, thread_id: str) -> StoredEvent:
    return StoredEvent(
        seq=row[0],
        thread_id=thread_id,
        run_id=row[1],
        method=row[2],
        data=row[3],
        timestamp=row[4],
        namespace=from_text_namespace(row[5]),
        node=row[6],
        name=row[7],
    )


def interrupt_from(row: Row) -> Interrupt:
    return Interrupt(
        interrupt_id=row[0],
        run_id=row[1],
        thread_id=row[2],
        owner=row[3],
        kind=InterruptKind(row[4]),
        payload=from_json(row[5]),
        namespace=from_text_namespace(row[6]),
        state=InterruptState(row[7]),
        created_at=from_text_time(row[8]),
        answer=_optional(from_json, row[9]),
        decided_by=row[10],
        decided_at=_optional(from_text_time, row[11]),
    )


def intent_from(row: Row) -> Intent:
    return Intent(
        run_id=row[0],
        call_id=row[1],
        tool=row[2],
        namespace=from_text_namespace(row[3]),
        opened_at=from_text_time(row[4]),
    )


def file_from(row: Row, thread_id: str) -> FileVersion:
    return FileVersion(
        thread_id=thread_id,
        path=row[0],
        version=row[1],
        sha256=row[2],
        size=row[3],
        media_type=row[4],
        author=row[5],
        turn_id=row[6],
        run_id=row[7],
        seq=row[8],
        created_at=from_text_time(row[9]),
    )


def attachment_from(row: Row) -> Attachment:
    return Attachment(
        id=row[0],
        owner=row[1],
        thread_id=row[2],
        filename=row[3],
        media_type=row[4],
        size=row[5],
        created_at=from_text_time(row[6]),
    )


def grant_from(row: Row) -> FolderGrant:
    return FolderGrant(
        id=row[0],
        owner=row[1],
        label=row[2],
        path=row[3],
        read_only=row[4] == 1,
        created_at=from_text_time(row[5]),
    )


def _optional(convert: Callable[[str], T], text: str | None) -> T | None:
    return None if text is None else convert(text)
