# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Whole numbers beyond 64 bits as their digits: a checkpoint cannot hold them, and the turn would fail on them.

JSON allows any number; a model's arguments and a server's structured result may have one. A tool whose argument has to
be a number then gets a text, and tells the model what it takes.
"""

from __future__ import annotations

from typing import Any, TypeVar

from langchain_core.messages import AIMessage, ToolMessage

SMALLEST, LARGEST = -(2**63), 2**64 - 1

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
    if isinstance(value, int):
        return not SMALLEST <= value <= LARGEST
    if isinstance(value, dict):
        return any(map(has_big, value.values()))
    return isinstance(value, list | tuple) and any(map(has_big, value))


def written_out(value: Any) -> Any:
    """A copy of JSON-like data with its big numbers as digits."""
    if isinstance(value, dict):
        return {key: written_out(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [written_out(item) for item in value]
    return hex(value) if _has_too_many_digits(value) else str(value) if has_big(value) else value


def _has_too_many_digits(value: object) -> bool:
    """Python writes out no more than 4,300 decimal digits."""
    return isinstance(value, int) and value.bit_length() > 10_000
