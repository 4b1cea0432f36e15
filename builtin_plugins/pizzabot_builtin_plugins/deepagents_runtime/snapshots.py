# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""A checkpoint's state as clients see it: the answer of `GET /threads/:id/state` and the `checkpoints` frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from pizzabot_builtin_plugins.deepagents_runtime.interrupts import shown
from pizzabot_builtin_plugins.deepagents_runtime.plain import plain, public_values
from pizzabot_hookspecs.wire import CheckpointRef, Interrupt, TaskState, ThreadState


def snapshot_envelope(snapshot: StateSnapshot) -> dict[str, Any]:
    """The `checkpoints` frame of a snapshot."""
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    envelope = {
        "id": snapshot.config["configurable"]["checkpoint_id"],
        "step": metadata.get("step"),
        "source": metadata.get("source"),
    }
    parent = _reference(snapshot.parent_config)
    return {**envelope, "parent_id": parent["checkpoint_id"]} if parent else envelope


def thread_state(snapshot: StateSnapshot) -> ThreadState:
    """`GET /threads/:id/state` (wire.md §8.1), as the checkpoint has it: a failed turn leaves its `next`."""
    return {
        "values": public_values(snapshot.values),
        "next": list(snapshot.next),
        "tasks": [_task(task) for task in snapshot.tasks],
        "metadata": plain(snapshot.metadata or {}),
        "created_at": snapshot.created_at,
        "checkpoint": _reference(snapshot.config),
        "parent_checkpoint": _reference(snapshot.parent_config),
        "interrupts": [_interrupt(item) for item in snapshot.interrupts],
    }


def _task(task: Any) -> TaskState:
    nested = task.state["configurable"] if isinstance(task.state, Mapping) else None
    return {
        "id": task.id,
        "name": task.name,
        "path": plain(task.path),
        "error": None if task.error is None else str(task.error),
        "interrupts": [_interrupt(item) for item in task.interrupts],
        "checkpoint": plain(nested),
        "state": None,
        "result": plain(task.result),
    }


def _interrupt(item: Any) -> Interrupt:
    return {"id": item.id, "value": shown(plain(item.value))}


def _reference(config: RunnableConfig | None) -> CheckpointRef | None:
    configurable = (config or {}).get("configurable") or {}
    if not configurable.get("checkpoint_id"):
        return None
    return cast(
        "CheckpointRef",
        {
            "thread_id": configurable["thread_id"],
            "checkpoint_ns": configurable.get("checkpoint_ns", ""),
            "checkpoint_id": configurable["checkpoint_id"],
        },
    )
