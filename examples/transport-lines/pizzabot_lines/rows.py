"""Rows as clients read them: threads, what waits for a person, and what has changed."""

from __future__ import annotations

from typing import Any

from pizzabot_hookspecs.host import Activity
from pizzabot_hookspecs.interrupts import Interrupt
from pizzabot_hookspecs.storage_backends import Thread


def thread_row(thread: Thread) -> dict[str, Any]:
    return {
        "thread_id": thread.thread_id,
        "title": thread.title,
        "status": thread.status.value,
        "created_at": thread.created_at,
        "last_activity_at": thread.last_activity_at,
        "metadata": dict(thread.metadata),
    }


def interrupt_row(interrupt: Interrupt) -> dict[str, Any]:
    return {
        "interrupt_id": interrupt.interrupt_id,
        "thread_id": interrupt.thread_id,
        "run_id": interrupt.run_id,
        "kind": interrupt.kind.value,
        "namespace": list(interrupt.namespace),
        "payload": dict(interrupt.payload),
        "created_at": interrupt.created_at,
    }


def activity_row(told: Activity) -> dict[str, Any] | None:
    """None when it says only that nothing has happened for a while."""
    row: dict[str, Any] = {
        "complete": told.complete,
        "threads": [thread_row(thread) for thread in told.threads],
        "deleted": list(told.deleted),
    }
    if told.inbox is not None:
        row["inbox"] = [interrupt_row(interrupt) for interrupt in told.inbox]
    return row if told.complete or told.threads or told.deleted or told.inbox is not None else None
