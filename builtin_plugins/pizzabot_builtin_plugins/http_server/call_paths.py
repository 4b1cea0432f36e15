"""Ids of tool calls in a path: a model makes them, and they may hold anything, a slash too."""

from __future__ import annotations

import re
from urllib.parse import unquote

from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.http_routes import Scope

_TOOL_CALL = re.compile(rb"(/threads/[^/]+/tool-calls/)([^/]+)(/(?:input|output))")


def with_call_encoded(scope: Scope) -> Scope:
    """The scope, where it is a tool call's with the id in `path` as it was sent, and out of `raw_path`.

    Every other path has no encoded slash. This one keeps the id in one piece until `decoded_call` reads it.
    """
    found = _TOOL_CALL.fullmatch(bytes(scope.get("raw_path") or b""))
    if found is None:
        return scope
    before, call, after = found.groups()
    path = unquote(before.decode("latin-1")) + call.decode("latin-1") + after.decode("latin-1")
    return {**scope, "raw_path": before + b"-" + after, "path": path}


def decoded_call(segment: str) -> str:
    """Raises `InvalidRequest` `invalid_id` for what is not UTF-8."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        problem = "must be UTF-8, each byte that is not a letter, a digit or one of . _ ~ - percent-encoded"
        raise InvalidRequest("invalid_id", f"`call_id` {problem}", fields={"call_id": problem}) from None
