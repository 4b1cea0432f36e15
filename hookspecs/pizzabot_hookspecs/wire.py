"""The pure types on the wire: messages and their parts, frames, a thread's state (spec/05 §10, design/wire.md).

Everything here is JSON: dicts that TypedDict describes, or frozen dataclasses of plain values. Nothing is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

PROTOCOL_VERSION = 1
"""Clients check it first, at `GET /`. It changes when a frame or an answer changes its meaning."""

ASSISTANT_ID = "pizza-bot"
"""The one top-level agent. Every `assistant_id` in a request is accepted; this is the one that answers."""

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

Role: TypeAlias = Literal["user", "assistant", "system", "tool"]
Namespace: TypeAlias = tuple[str, ...]


class TextPart(TypedDict):
    type: Literal["text"]
    text: str


class ReasoningPart(TypedDict):
    type: Literal["reasoning"]
    text: str


class ToolCallPart(TypedDict):
    type: Literal["tool-call"]
    toolCallId: str
    name: str
    args: dict[str, JsonValue]


class ToolResultPart(TypedDict):
    type: Literal["tool-result"]
    toolCallId: str
    name: str
    result: JsonValue
    isError: NotRequired[bool]


class FilePart(TypedDict):
    type: Literal["file"]
    mediaType: str
    url: str
    name: NotRequired[str]
    attachmentId: NotRequired[str]
    sizeBytes: NotRequired[int]


class SourcePart(TypedDict):
    type: Literal["source"]
    url: str
    title: NotRequired[str]


class DataPart(TypedDict):
    """What a plugin shows. `kind` is `<plugin>.<name>`; a client that does not know it shows `text`."""

    type: Literal["data"]
    kind: str
    data: JsonValue
    text: NotRequired[str]


Part: TypeAlias = TextPart | ReasoningPart | ToolCallPart | ToolResultPart | FilePart | SourcePart | DataPart


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """A normalised message. `id` is the client's, else a uuid7 minted at admission; it is never positional."""

    id: str
    role: Role
    parts: tuple[Part, ...]
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text parts, joined without a separator."""
        return "".join(part["text"] for part in self.parts if part["type"] == "text")

    def to_json(self) -> dict[str, Any]:
        return {"id": self.id, "role": self.role, "parts": list(self.parts), "metadata": dict(self.metadata)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Message:
        """Read back what `to_json` wrote; it does not validate a client's input (the host's admission does)."""
        return cls(
            id=value["id"],
            role=value["role"],
            parts=tuple(value["parts"]),
            metadata=value.get("metadata") or {},
        )


FrameMethod: TypeAlias = Literal[
    "values",
    "updates",
    "messages",
    "tools",
    "lifecycle",
    "checkpoints",
    "tasks",
    "custom",
    "input.requested",
    "input.answered",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """What an agent runtime yields: one protocol event without its place in the log.

    `data` is plain JSON. `namespace` is in the JS form (a segment per node, wire.md §0). `timestamp` is milliseconds
    since the epoch, when the frame was produced. The root `lifecycle` frames, `seq` and `event_id` are the host's.
    """

    method: FrameMethod
    data: Mapping[str, Any]
    timestamp: int
    namespace: Namespace = ()
    node: str | None = None


class Interrupt(TypedDict):
    id: str
    value: JsonValue


class CheckpointRef(TypedDict):
    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str | None


class TaskState(TypedDict):
    id: str
    name: str
    path: list[JsonValue]
    error: str | None
    interrupts: list[Interrupt]
    checkpoint: dict[str, JsonValue] | None
    state: None
    result: JsonValue


class ThreadState(TypedDict):
    """`GET /threads/:id/state` (wire.md §8.1). `created_at` is ISO-8601 with offset, None before the first turn."""

    values: dict[str, JsonValue]
    next: list[str]
    tasks: list[TaskState]
    metadata: dict[str, JsonValue]
    created_at: str | None
    checkpoint: CheckpointRef | None
    parent_checkpoint: CheckpointRef | None
    interrupts: list[Interrupt]
