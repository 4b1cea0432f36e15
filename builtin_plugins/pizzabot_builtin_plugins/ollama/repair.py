"""Repairs what small models get wrong in tool calls: arguments as text, and keys that are nearly right (spec/06 §6)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def parsed_arguments(part: Mapping[str, Any]) -> dict[str, Any]:
    """A piece of Ollama's answer in which a tool call's arguments are an object, never text or null.

    Text that is no JSON object becomes no arguments: the tool then says what it misses, and the model tries again.
    """
    message = part.get("message")
    calls = message.get("tool_calls") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(calls, list):
        return dict(part)
    repaired = [_with_object(call) for call in calls if isinstance(call, Mapping)]
    return {**part, "message": {**message, "tool_calls": repaired}}


def repaired_keys(name: str, args: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`args` with each unknown key renamed to the one schema key that it equals but for case and punctuation.

    A key that fits none or several, or whose place is taken, stays as it is.
    """
    known = _schema_keys(name, tools)
    taken = set(args) & known
    result: dict[str, Any] = {}
    for key, value in args.items():
        candidates = [] if key in known else [other for other in known if _plain(other) == _plain(key)]
        if len(candidates) == 1 and candidates[0] not in taken:
            taken.add(candidates[0])
            result[candidates[0]] = value
        else:
            result[key] = value
    return result


def _with_object(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    if not isinstance(function, Mapping):
        return dict(call)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            arguments = {}
    return {**call, "function": {**function, "arguments": arguments if isinstance(arguments, Mapping) else {}}}


def _schema_keys(name: str, tools: Sequence[Mapping[str, Any]]) -> set[str]:
    for tool in tools:
        function = tool.get("function")
        if isinstance(function, Mapping) and function.get("name") == name:
            properties = (function.get("parameters") or {}).get("properties")
            return set(properties) if isinstance(properties, Mapping) else set()
    return set()


def _plain(key: str) -> str:
    return "".join(character for character in key.casefold() if character.isalnum())
