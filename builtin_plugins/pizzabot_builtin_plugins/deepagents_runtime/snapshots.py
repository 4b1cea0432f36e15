# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""A checkpoint's state as clients see it: the answer of `GET /threads/:id/state` and the `checkpoints` frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from pizzabot_builtin_plugins.deepagents_runtime.interrupts import shown
from pizzabot_builtin_plugins.deepagents_runtime.plain import (
    AGENT_NAME,
    ORCHESTRATOR,
    FlatMessages,
    is_public,
    plain,
    public_values,
)
from pizzabot_hookspecs.wire import CheckpointRef, Interrupt, JsonValue, TaskState, ThreadState

METADATA = {"step": "step", "source": "source", "pizzabot_run_id": "run_id"}
"""What clients get of a checkpoint's metadata, and by which name. The SDKs read `step`; the rest is LangGraph's own
bookkeeping and may be anything that a caller's configuration held."""


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


def thread_state(snapshot: StateSnapshot, messages: FlatMessages | None = None) -> ThreadState:
    """`GET /threads/:id/state` (wire.md §8.1), as the checkpoint has it: a failed turn leaves its `next`."""
    metadata: Mapping[str, Any] = snapshot.metadata or {}
    agent = metadata.get(AGENT_NAME) or ORCHESTRATOR
    made = messages or FlatMessages()
    return {
        "values": public_values(snapshot.values, agent=agent, messages=made),
        "next": list(snapshot.next),
        "tasks": [_task(task, agent, made) for task in snapshot.tasks],
        "metadata": {shown: plain(metadata[key]) for key, shown in METADATA.items() if key in metadata},
        "created_at": snapshot.created_at,
        "checkpoint": _reference(snapshot.config),
        "parent_checkpoint": _reference(snapshot.parent_config),
        "interrupts": [_interrupt(item) for item in snapshot.interrupts],
    }


def _task(task: Any, agent: str, messages: FlatMessages) -> TaskState:
    nested = task.state["configurable"] if isinstance(task.state, Mapping) else None
    return {
        "id": task.id,
        "name": task.name,
        "path": plain(task.path),
        "error": None if task.error is None else str(task.error),
        "interrupts": [_interrupt(item) for item in task.interrupts],
        "checkpoint": plain(nested),
        "state": None,
        "result": _result(task.result, agent, messages),
    }


def _result(result: Any, agent: str, messages: FlatMessages) -> JsonValue:
    """What a step's task wrote: public channels only, as in the values."""
    if not isinstance(result, Mapping):
        return plain(result)  # type: ignore[no-any-return]
    public = {key: plain(value) for key, value in result.items() if key != "messages" and is_public(key)}
    if "messages" in result:
        written = result["messages"] if isinstance(result["messages"], list | tuple) else [result["messages"]]
        public["messages"] = [messages.flat(message, agent) for message in written]
    return public


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
