# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Messages that a client writes into a thread's state, in any of LangChain's spellings, as LangChain's own.

{"type": "human", "content": "hi", "id": "u1"}              as states show them
{"role": "user", "content": "hi"}                           as OpenAI writes them
{"type": "human", "data": {"content": "hi"}}                `message_to_dict`
{"lc": 1, "type": "constructor", "id": [..., "HumanMessage"], "kwargs": {"content": "hi"}}
["human", "hi"]  and  "hi"
{"type": "remove", "id": "u1"}                              takes the message out
"""

from __future__ import annotations

import uuid
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, convert_to_messages
from pydantic import TypeAdapter, ValidationError

from pizzabot_builtin_plugins.deepagents_runtime.plain import plain

_DERIVED = ("usage_metadata", "invalid_tool_calls")
"""Fields of an answer that `convert_to_messages` takes for additional ones."""

FAULT_CHARACTERS = 200
"""Of what is wrong with a message: LangChain repeats the whole message in it."""

_WHOLE: TypeAdapter[AIMessage] = TypeAdapter(AIMessage)


def read_messages(value: Any, fields: dict[str, str]) -> list[BaseMessage]:
    """One message or a list of them, each with an id. What is wrong is added to `fields`, by `messages.<index>`."""
    written = value if isinstance(value, list) and not _is_pair(value) else [value]
    messages: list[BaseMessage] = []
    for index, item in enumerate(written):
        try:
            messages.append(_read(plain(item)))
        except Exception as error:  # noqa: BLE001 - LangChain raises whatever it stumbles over: ValueError, KeyError, …
            fields[f"messages.{index}"] = _fault(error)
    return messages


def _read(item: Any) -> BaseMessage:
    if not isinstance(item, str | list | dict):
        raise TypeError(f"a message is an object, a pair of role and text, or a text; this is {item!r}")
    shape = _flat(item) if isinstance(item, dict) else item
    more = {key: shape.pop(key) for key in _DERIVED if key in shape} if isinstance(shape, dict) else {}
    (message,) = convert_to_messages([shape])
    if isinstance(message, RemoveMessage):
        return message
    message = message.model_copy(update={"id": str(message.id or uuid.uuid4())})
    if isinstance(message, AIMessage) and (given := {key: value for key, value in more.items() if value}):
        message = _WHOLE.validate_python({**message.model_dump(), **given})
    return message


def _flat(item: dict[str, Any]) -> dict[str, Any]:
    """An object as one with `content` beside `type` or `role`."""
    if isinstance(item.get("data"), dict) and "content" not in item:
        item = {"type": item.get("type"), **item["data"]}
    elif isinstance(item.get("kwargs"), dict) and item.get("type") == "constructor":
        name = item["id"][-1] if isinstance(item.get("id"), list) and item["id"] else None
        kind = _KINDS.get(str(name).removesuffix("Chunk"))
        if kind is None:
            raise ValueError(f"there is no message {name!r}; there are {', '.join(_KINDS)}")
        item = {**item["kwargs"], "type": kind}
    if item.get("type") == "remove":
        return {"type": "remove", "id": item.get("id"), "content": ""}
    return {key: value for key, value in item.items() if value is not None or key == "content"}


_KINDS = {
    "HumanMessage": "human",
    "AIMessage": "ai",
    "SystemMessage": "system",
    "ToolMessage": "tool",
    "RemoveMessage": "remove",
}


def _is_pair(value: list[Any]) -> bool:
    """`["human", "hi"]` is one message: LangChain's pair of role and text."""
    return len(value) == 2 and all(isinstance(part, str) for part in value) and value[0] in _ROLES


_ROLES = frozenset({"human", "user", "ai", "assistant", "system", "developer"})


def _fault(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return (str(error).partition("\n")[0] or type(error).__name__)[:FAULT_CHARACTERS]
