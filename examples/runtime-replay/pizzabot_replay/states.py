"""A conversation as clients see it: `values` and `checkpoints` frames, and the answer of `GET /threads/:id/state`.

A conversation is a list, so a checkpoint is a length: the checkpoint `4` is the first four messages.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pizzabot_hookspecs.wire import CheckpointRef, ThreadState
from pizzabot_replay.tables import Conversation


def checkpoint_length(checkpoint_id: str, conversation: Conversation) -> int | None:
    """How many messages the checkpoint holds; None where the conversation has no such checkpoint."""
    if not (checkpoint_id.isascii() and checkpoint_id.isdecimal() and len(checkpoint_id) <= 9):
        return None
    length = int(checkpoint_id)
    return length if 1 <= length <= len(conversation.messages) else None


def checkpoint_of(conversation: Conversation) -> dict[str, Any]:
    """The `checkpoints` frame that goes before the `values` of the same moment."""
    length = len(conversation.messages)
    envelope = {"id": str(length), "step": length, "source": "loop"}
    return {**envelope, "parent_id": str(length - 1)} if length > 1 else envelope


def values_of(conversation: Conversation) -> dict[str, Any]:
    return {"messages": list(conversation.messages)}


def state_of(thread_id: str, conversation: Conversation, *, length: int | None = None) -> ThreadState | None:
    """The state after the first `length` messages, by default all of them; None where there is nothing."""
    length = len(conversation.messages) if length is None else length
    if length == 0:
        return None
    shown = Conversation(messages=conversation.messages[:length], created_at=conversation.created_at[:length])
    return {
        "values": values_of(shown),
        "next": [] if shown.messages[-1]["type"] == "ai" else ["model"],
        "tasks": [],
        "metadata": {"step": length, "source": "loop"},
        "created_at": datetime.fromtimestamp(shown.created_at[-1], UTC).isoformat(),
        "checkpoint": _reference(thread_id, length),
        "parent_checkpoint": _reference(thread_id, length - 1) if length > 1 else None,
        "interrupts": [],
    }


def _reference(thread_id: str, length: int) -> CheckpointRef:
    return {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": str(length)}
