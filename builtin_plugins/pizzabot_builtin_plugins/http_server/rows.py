"""Rows as clients read them: threads (two forms), interrupts, activity. Routes and the socket share them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pizzabot_hookspecs.host import Activity
from pizzabot_hookspecs.interrupts import Interrupt
from pizzabot_hookspecs.storage_backends import Thread, ThreadStatus

THREAD_FIELDS = ("thread_id", "created_at", "updated_at", "metadata", "status", "values", "interrupts")
"""Of LangGraph's thread, as `langgraph_thread` gives it."""


def thread_row(thread: Thread) -> dict[str, Any]:
    """`GET /threads/list` and activity: `{threadId, title, source, status, awaitingAction, createdAt, lastActivityAt,
    modelId?}` (spec/01 §5).
    """
    row: dict[str, Any] = {
        "threadId": thread.thread_id,
        "title": thread.title,
        "source": thread.source,
        "status": thread.status.value,
        "awaitingAction": thread.status is ThreadStatus.INTERRUPTED,
        "createdAt": iso(thread.created_at),
        "lastActivityAt": iso(thread.last_activity_at),
    }
    if thread.model_id is not None:
        row["modelId"] = thread.model_id
    return row


def langgraph_thread(
    thread: Thread, *, values: Mapping[str, Any] | None = None, interrupts: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """LangGraph's thread (wire.md §8.4)."""
    return {
        "thread_id": thread.thread_id,
        "created_at": iso(thread.created_at),
        "updated_at": iso(thread.last_activity_at),
        "metadata": dict(thread.metadata),
        "status": thread.status.value,
        "values": dict(values or {}),
        "interrupts": dict(interrupts or {}),
    }


def interrupt_row(found: Interrupt) -> dict[str, Any]:
    """`GET /inbox`, `GET /threads/:id/interrupts` and activity."""
    return {
        "interruptId": found.interrupt_id,
        "threadId": found.thread_id,
        "runId": found.run_id,
        "kind": found.kind.value,
        "namespace": list(found.namespace),
        "payload": dict(found.payload),
        "createdAt": iso(found.created_at),
    }


def activity_message(told: Activity) -> dict[str, Any]:
    """`{type: activity, complete, threads, deleted, inbox?}`; the socket adds `sub`. No `inbox`: it did not change."""
    message: dict[str, Any] = {
        "type": "activity",
        "complete": told.complete,
        "threads": [thread_row(thread) for thread in told.threads],
        "deleted": list(told.deleted),
    }
    if told.inbox is not None:
        message["inbox"] = [interrupt_row(found) for found in told.inbox]
    return message


def is_silence(told: Activity) -> bool:
    """Whether it says only that nothing happened for a while: time for a heartbeat."""
    return not (told.complete or told.threads or told.deleted or told.inbox is not None)


def iso(seconds: float) -> str:
    """ISO-8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()
