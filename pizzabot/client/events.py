"""What a person sees of a run, as typed events, and the reader that makes them of protocol frames (wire.md §4, §5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

MAX_OPEN_BLOCKS = 4096
"""Content blocks of one run that are remembered at once; the oldest are forgotten first."""


class RunOutcome(StrEnum):
    """How a run ended that did not fail."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, kw_only=True, slots=True)
class TextDelta:
    """A piece of the answer. `message_id` is that of its message: a new one begins a new paragraph."""

    text: str
    message_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasoningDelta:
    text: str
    message_id: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolStarted:
    call_id: str
    name: str
    input: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFinished:
    call_id: str
    output: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolFailed:
    call_id: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """The run waits for a person. `kind` is approval, input or recovery; `payload` is what is asked."""

    interrupt_id: str
    kind: str
    payload: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageCut:
    """A message of the assistant broke off. Where another one follows in the same run, that one stands in for it."""

    message_id: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """Events that were asked for are no longer kept: from `requested` to before `earliest`."""

    requested: int
    earliest: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnded:
    """The last event of a run that did not fail."""

    run_id: str
    outcome: RunOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class RunFailed:
    """The last event of a run that did; `code` is one of the server's taxonomy, which is open."""

    run_id: str
    code: str
    detail: str


Event: TypeAlias = (
    TextDelta
    | ReasoningDelta
    | MessageCut
    | ToolStarted
    | ToolFinished
    | ToolFailed
    | Question
    | Gap
    | RunEnded
    | RunFailed
)


def run_of(frame: Mapping[str, Any]) -> str | None:
    """The run that a frame belongs to, by its `event_id` `synth:<run_id>:<seq>`; None for the thread's own facts."""
    parts = str(frame.get("event_id", "")).split(":")
    return parts[1] if len(parts) == 3 and parts[0] == "synth" and parts[1] not in ("thread", "gap") else None


def is_last(frame: Mapping[str, Any]) -> bool:
    """Whether the frame is the root's terminal one: nothing of its run follows."""
    params = _mapping(frame.get("params"))
    event = _mapping(params.get("data")).get("event")
    at_root = not params.get("namespace")
    return frame.get("method") == "lifecycle" and at_root and event in ("completed", "failed", "interrupted")


class EventReader:
    """Makes events of the frames of one run, in order. Subagents' own words and tools are left out."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._messages: dict[str, tuple[str, str]] = {}
        self._said: dict[tuple[str, object], str] = {}

    def read(self, frame: Mapping[str, Any]) -> Iterator[Event]:
        params = _mapping(frame.get("params"))
        data = _mapping(params.get("data"))
        namespace = [str(segment) for segment in params.get("namespace") or ()]
        method = frame.get("method")
        if method == "lifecycle":
            if is_last(frame):
                yield self._ending(data)
        elif method == "input.requested":
            yield question_of(data)
        elif method == "custom" and data.get("name") == "pizzabot.gap":
            yield _gap(data)
        elif method == "messages" and not _inside_a_tool(namespace):
            yield from self._message(data, "/".join(namespace))
        elif method == "tools" and len(namespace) <= 1:
            yield from _tool(data)

    def _ending(self, data: Mapping[str, Any]) -> Event:
        event, code = str(data.get("event")), data.get("code")
        if event == "failed":
            return RunFailed(
                run_id=self._run_id, code=str(code or "GENERAL"), detail=str(data.get("error") or "no reason")
            )
        outcome = {"CANCELLED": RunOutcome.CANCELLED, "SUPERSEDED": RunOutcome.SUPERSEDED}.get(str(code))
        return RunEnded(run_id=self._run_id, outcome=outcome or RunOutcome(event))

    def _message(self, data: Mapping[str, Any], place: str) -> Iterator[Event]:
        key = f"{place}#{data.get('run_id', '')}"
        event = data.get("event")
        if event == "message-start":
            self._messages[key] = (str(data.get("id", "")), str(data.get("role", "ai")))
            _forget_oldest(self._messages)
            return
        message_id, role = self._messages.get(key, ("", "ai"))
        if role not in ("ai", "assistant"):
            return
        if event == "error":
            yield MessageCut(message_id=message_id, reason=str(data.get("message") or "no reason"))
        if event == "content-block-delta":
            yield from self._piece(_mapping(data.get("delta")), message_id, data.get("index"))
        elif event in ("content-block-start", "content-block-finish"):
            yield from self._block(_mapping(data.get("content")), message_id, data.get("index"))

    def _piece(self, delta: Mapping[str, Any], message_id: str, index: object) -> Iterator[Event]:
        kind = str(delta.get("type", "")).removesuffix("-delta")
        if kind in ("text", "reasoning"):
            yield from self._say(kind, str(delta.get(kind) or ""), message_id, index)

    def _block(self, content: Mapping[str, Any], message_id: str, index: object) -> Iterator[Event]:
        """A block's start or finish: what it holds beyond the pieces (a model that does not stream has no pieces)."""
        kind = content.get("type")
        if kind not in ("text", "reasoning"):
            return
        whole = str(content.get(kind) or "")
        said = self._said.get((message_id, index), "")
        if whole.startswith(said):
            yield from self._say(kind, whole[len(said) :], message_id, index)

    def _say(self, kind: str, text: str, message_id: str, index: object) -> Iterator[Event]:
        if not text:
            return
        self._said[message_id, index] = self._said.get((message_id, index), "") + text
        _forget_oldest(self._said)
        yield (TextDelta if kind == "text" else ReasoningDelta)(text=text, message_id=message_id)


def question_of(data: Mapping[str, Any]) -> Question:
    """Of an `input.requested` frame, or of an entry of `GET /threads/:id/interrupts`."""
    interrupt_id = data.get("interrupt_id", data.get("interruptId", ""))
    payload = data.get("payload", data.get("value"))
    return Question(interrupt_id=str(interrupt_id), kind=str(data.get("kind") or "approval"), payload=payload)


def _tool(data: Mapping[str, Any]) -> Iterator[Event]:
    event, call_id = data.get("event"), str(data.get("tool_call_id", ""))
    if event == "tool-started":
        yield ToolStarted(call_id=call_id, name=str(data.get("tool_name", "")), input=data.get("input"))
    elif event == "tool-finished":
        yield ToolFinished(call_id=call_id, output=data.get("output"))
    elif event == "tool-error":
        yield ToolFailed(call_id=call_id, message=str(data.get("message", "")))


def _gap(data: Mapping[str, Any]) -> Gap:
    payload = _mapping(data.get("payload"))
    return Gap(requested=_number(payload.get("requested")), earliest=_number(payload.get("earliest")))


def _inside_a_tool(namespace: list[str]) -> bool:
    return any(segment.startswith(("tools:", "task:")) for segment in namespace)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _forget_oldest(kept: dict[Any, Any]) -> None:
    while len(kept) > MAX_OPEN_BLOCKS:
        del kept[next(iter(kept))]
