# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""The tool calls of a thread that a crash or a stop left open: which have their result, and results for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig

from pizzabot_builtin_plugins.deepagents_runtime.intents import results_in
from pizzabot_builtin_plugins.deepagents_runtime.tool_calls import CANCELLED_RESULT

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.types import StateSnapshot


STEPS_LIMIT = 1_000
"""Checkpoints of one subagent that are looked through, newest first."""


def messages_of(snapshot: StateSnapshot | None) -> list[BaseMessage]:
    return [] if snapshot is None else list(snapshot.values.get("messages") or ())


def answers_for_open_calls(
    messages: Sequence[BaseMessage], results: Mapping[str, ToolMessage], *, told: Mapping[str, str]
) -> list[ToolMessage]:
    """Results for every call of the last answer when one of them has none; those that finished are said again.

    `told` has the texts of those that have no result and are not simply cancelled.

    A finished sibling shows in the state only as a pending write, which the next message would discard (probe 02c), and
    for an instant after it has finished not even as that.
    """
    answer = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    if answer is None:
        return []
    stored = _results(messages)
    if all(call["id"] in stored for call in answer.tool_calls):
        return []
    finished = {**results, **stored}
    return [
        finished.get(call["id"] or "")
        or ToolMessage(
            told.get(call["id"] or "", CANCELLED_RESULT),
            tool_call_id=call["id"] or "",
            name=call["name"],
            status="error",
        )
        for call in answer.tool_calls
    ]


async def unfinished_results(checkpointer: BaseCheckpointSaver[Any], snapshot: StateSnapshot) -> set[str]:
    """The calls with a stored result in the step that `snapshot` is in the middle of, in the subagents at work too."""
    known = set(_results(_since_the_last_answer(messages_of(snapshot))))
    thread_id = snapshot.config["configurable"]["thread_id"]
    for task in snapshot.tasks:
        if task.result is None:
            # A subagent's checkpoints are under its task's name; each holds what was written while it was the newest.
            below: RunnableConfig = {
                "configurable": {"thread_id": thread_id, "checkpoint_ns": f"{task.name}:{task.id}"}
            }
            async for checkpoint in checkpointer.alist(below, limit=STEPS_LIMIT):
                writes = [(channel, value) for _, channel, value in checkpoint.pending_writes or ()]
                known |= {result.tool_call_id for result in results_in(writes)}
    return known


def stored_results(snapshot: StateSnapshot | None) -> set[str]:
    """Every call of the thread's own messages that has a result."""
    return set(_results(messages_of(snapshot)))


def _results(messages: Sequence[BaseMessage]) -> dict[str, ToolMessage]:
    return {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}


def _since_the_last_answer(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    last = max(
        (index for index, message in enumerate(messages) if isinstance(message, AIMessage)), default=len(messages)
    )
    return messages[last:]
