# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Live objects of LangGraph and LangChain as plain JSON: messages, commands, state, whatever a tool returned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Command, Interrupt
from pydantic import BaseModel

from pizzabot_builtin_plugins.deepagents_runtime.open_messages import well_formed

DEPTH_LIMIT = 60
"""Nesting beyond it is written as text: a tool may return something that contains itself."""

INTEGER_LIMIT = 2**63
"""Integers from here on are written as text: JSON writers and JavaScript have no room for them."""

TOLD_RESULT = "pizzabot.tool_result"
"""Key of a `custom` event, within the process, with the result of a tool call that did not run."""

SHORTENED = "pizzabot.shortened"
"""Key of a `custom` event, within the process, with a `Shortened`."""

DISPATCHED = "pizzabot.dispatched"
"""Key of a `custom` event, within the process, with a `Dispatched`."""

PRODUCT_PREFIX = "pizzabot."
"""Names of `custom` frames that only the product may write."""

PRIVATE_KEYS = frozenset(
    {
        "jump_to",
        "hitl_edited_tool_calls",
        "remaining_steps",
        "run_model_call_count",
        "run_tool_call_count",
        "thread_model_call_count",
        "thread_tool_call_count",
    }
)
"""State that belongs to middleware, besides everything that begins with an underscore (stack.md §2)."""


@dataclass(frozen=True, kw_only=True)
class Shortened:
    """What the model is sent was shortened: tokens before and after."""

    tokens_before: int
    tokens_after: int


@dataclass(frozen=True, kw_only=True)
class Dispatched:
    """What happens to a subagent that code of an `eval` called: `event` is one of a lifecycle.

    `index` is its place among those of this eval, from 0: LangGraph tells their namespaces apart by it, and tells the
    lifecycle of the first alone.
    """

    eval_call_id: str
    call_id: str
    index: int
    name: str
    event: str


ORCHESTRATOR = "pizza-bot"
"""The name of the agent that a person talks to, on the wire only: checkpoints do not hold it, models do not see it."""

AGENT_NAME = "lc_agent_name"
"""Key of LangChain's metadata of a subagent's messages and checkpoints: its name. The orchestrator has none."""


def public_values(
    values: Mapping[str, Any], *, agent: str | None = None, messages: FlatMessages | None = None
) -> dict[str, Any]:
    """A graph's state as clients see it: without private channels and `__interrupt__`, always with `messages`.

    `agent` is whose graph it is: the name of its answers that have none.
    """
    made = messages or FlatMessages()
    public = {
        key: plain(value) for key, value in values.items() if key != "messages" and is_public(key) and value is not None
    }
    public["messages"] = [made.flat(message, agent) for message in values.get("messages") or ()]
    return public


def is_public(channel: str) -> bool:
    """Whether clients see a channel of a graph's state."""
    return not channel.startswith("_") and channel not in PRIVATE_KEYS


class FlatMessages:
    """Messages as flat dicts, each made once, for states that hold the same ones. Nobody may change a dict."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[object, Any]] = {}

    def flat(self, message: object, agent: str | None) -> Any:
        """`agent` said it, if it is an answer without a name."""
        known = self._made.get(id(message))
        if known is None:
            shape = plain(message)
            if agent is not None and isinstance(message, AIMessage) and not message.name:
                shape["name"] = agent
            known = self._made[id(message)] = (message, shape)  # with the message, so that its id stays its own
        return known[1]


def flat(message: BaseMessage) -> dict[str, Any]:
    """A message as a flat dict, as its `model_dump` has it, twenty times as fast and with nothing but JSON inside."""
    kind = message.type
    shape = {
        "type": "ai" if kind == "AIMessageChunk" else kind,
        "id": message.id,
        "name": message.name,
        "content": plain(message.content),
        "additional_kwargs": plain(message.additional_kwargs),
        "response_metadata": plain(message.response_metadata),
    }
    for key in _MORE.get(kind, ()):
        shape[key] = plain(getattr(message, key, None))
    return shape


_AI = ("tool_calls", "invalid_tool_calls", "usage_metadata")
_MORE = {"ai": _AI, "AIMessageChunk": _AI, "tool": ("tool_call_id", "status")}
# A tool's `artifact` stays inside: it is for code, may be of any size, and no client reads it.


def plain(value: Any, depth: int = 0) -> Any:
    """`value` as JSON. What has no JSON form becomes its text; bytes become their length."""
    scalar = _SCALARS.get(type(value))
    if scalar is not None:
        return scalar(value)
    if depth >= DEPTH_LIMIT:
        return f"<{type(value).__name__}, nested too deeply>"
    if isinstance(value, Mapping):
        return {well_formed(str(key)): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, BaseMessage):
        return flat(value)
    return plain(_opened(value), depth + 1)


def _opened(value: Any) -> Any:
    """An object as something that `plain` can go into."""
    if isinstance(value, Command):
        # The SDK recognises a command by `lg_name` and unwraps the tool messages of its update (wire.md §5).
        return {"lg_name": "Command", "update": value.update, "resume": value.resume, "goto": value.goto}
    if isinstance(value, Interrupt):
        return {"id": value.id, "value": value.value}
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, bytes | bytearray | memoryview):
        return {"bytes": len(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    return value.value if isinstance(value, Enum) else str(value)


def _integer(value: int) -> int | str:
    return value if -INTEGER_LIMIT <= value < INTEGER_LIMIT else str(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _same(value: object) -> object:
    return value


_SCALARS: dict[type, Callable[[Any], Any]] = {
    str: well_formed,
    bool: _same,
    type(None): _same,
    int: _integer,
    float: _finite,
}
