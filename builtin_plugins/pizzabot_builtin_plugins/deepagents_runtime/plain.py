# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Live objects of LangGraph and LangChain as plain JSON: messages, commands, state, whatever a tool returned."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Command, Interrupt
from pydantic import BaseModel

from pizzabot_builtin_plugins.deepagents_runtime.open_messages import well_formed

DEPTH_LIMIT = 60
"""Nesting beyond it is written as text: a tool may return something that contains itself."""

INTEGER_LIMIT = 2**63
"""Integers from here on are written as text: JSON writers and JavaScript have no room for them."""

TOLD_RESULT = "pizzabot.tool_result"
"""Key of a `custom` event, within the process, with the result of a tool call that did not run."""

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


def public_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """A graph's state as clients see it: without private channels and `__interrupt__`, always with `messages`."""
    public = {
        key: plain(value)
        for key, value in values.items()
        if not key.startswith("_") and key not in PRIVATE_KEYS and value is not None
    }
    public.setdefault("messages", [])
    return public


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
