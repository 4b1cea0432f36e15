# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Whole numbers beyond 64 bits as their digits: a checkpoint cannot hold them, and the turn would fail on them.

JSON allows any number; a model's arguments and a server's structured result may have one. A tool whose argument has to
be a number then gets a text, and tells the model what it takes.
"""

from __future__ import annotations

from typing import Any, TypeVar

import orjson
from langchain_core.messages import AIMessage, ToolMessage

SMALLEST, LARGEST = -(2**63), 2**64 - 1
MOST_BITS = 10_000
"""Of a number that is written in decimal digits: Python writes at most 4,300. A longer one is hexadecimal."""

T = TypeVar("T")


def with_storable_calls(message: AIMessage) -> AIMessage:
    """`message`, or a copy whose calls can be stored."""
    if not any(has_big(call["args"]) for call in message.tool_calls):
        return message
    content = message.content if isinstance(message.content, str) else written_out(message.content)
    calls = [{**call, "args": written_out(call["args"])} for call in message.tool_calls]
    return message.model_copy(update={"content": content, "tool_calls": calls})


def with_storable_artifact(result: T) -> T:
    """A tool's result, or a copy of it whose artifact can be stored."""
    if isinstance(result, ToolMessage) and has_big(result.artifact):
        return result.model_copy(update={"artifact": written_out(result.artifact)})
    return result


def has_big(value: object) -> bool:
    """Whether a checkpoint cannot hold a number of it. Most values are cleared by orjson, which has the same bounds."""
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError:
        return _has_big(value)
    return False


def _has_big(value: object) -> bool:
    if isinstance(value, int):
        return not SMALLEST <= value <= LARGEST
    if isinstance(value, dict):
        return any(map(_has_big, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_big, value))


def written_out(value: Any) -> Any:
    """A copy of JSON-like data with its big numbers as digits."""
    if isinstance(value, dict):
        return {key: written_out(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [written_out(item) for item in value]
    if not _has_big(value):
        return value
    return str(value) if value.bit_length() <= MOST_BITS else hex(value)
