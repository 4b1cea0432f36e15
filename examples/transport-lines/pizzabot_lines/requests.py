"""A line to a `Request`, and its parameters to values: whatever a client sends, it is checked here first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.host import EventFilter

MAX_ID_CHARACTERS = 64
MAX_CHANNELS = 64
MAX_NAMESPACES = 256
MAX_CURSOR = 2**53 - 1
MAX_DEPTH = 128
"""Lists and objects inside each other: deeper input would exhaust the stack of whoever walks it."""
CHANNELS = frozenset({"values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"})

RequestId: TypeAlias = int | str


@dataclass(frozen=True, kw_only=True)
class Request:
    """`id` is the client's: every answer and every frame carries it."""

    id: RequestId
    op: str
    params: Mapping[str, Any]

    def text(self, name: str) -> str:
        """A parameter that has to be there. Raises `InvalidRequest` `invalid_argument`, like all of these."""
        value = self.params.get(name)
        if not isinstance(value, str) or not value:
            raise wrong(name, "text")
        return value

    def optional_text(self, name: str) -> str | None:
        return None if self.params.get(name) is None else self.text(name)

    def flag(self, name: str) -> bool:
        value = self.params.get(name, False)
        if not isinstance(value, bool):
            raise wrong(name, "true or false")
        return value

    def count(self, name: str) -> int | None:
        value = self.params.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_CURSOR:
            raise wrong(name, f"a whole number from 0 to {MAX_CURSOR}")
        return value

    def seconds(self, name: str, *, default: float, most: float) -> float:
        value = self.params.get(name, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
            raise wrong(name, f"seconds from 0 to {most:g}")
        return float(value)

    def json_object(self, name: str) -> Mapping[str, Any] | None:
        value = self.params.get(name)
        if value is not None and not isinstance(value, dict):
            raise wrong(name, "an object")
        return value

    def namespace(self, name: str) -> tuple[str, ...]:
        """A subagent's place, a list of texts; empty where there is none."""
        value = self.params.get(name) or []
        if not _is_namespace(value):
            raise wrong(name, "a list of at most 32 texts")
        return tuple(value)


def wrong(name: str, expected: str) -> InvalidRequest:
    return InvalidRequest("invalid_argument", f"{name} must be {expected}", fields={name: f"must be {expected}"})


def parse(line: bytes) -> Request:
    """Raises `InvalidRequest` `invalid_json`, `invalid_argument`."""
    try:
        value = json.loads(line, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("invalid_json", f"the line is not JSON: {error}") from error
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _is_deeper_than(MAX_DEPTH, value):
        raise InvalidRequest("invalid_json", f"the line has more than {MAX_DEPTH} levels of lists and objects")
    if not isinstance(value, dict):
        raise InvalidRequest("invalid_argument", "a request is an object with `id` and `op`")
    request_id = id_of(value)
    if request_id is None:
        raise wrong("id", f"a whole number, or text of 1 to {MAX_ID_CHARACTERS} characters")
    op = value.get("op")
    if not isinstance(op, str):
        raise wrong("op", "text")
    return Request(id=request_id, op=op, params=value)


def id_of(value: object) -> RequestId | None:
    """The id of a request; None where it has none that can be sent back."""
    given = value.get("id") if isinstance(value, dict) else None
    if isinstance(given, str):
        return given if 1 <= len(given) <= MAX_ID_CHARACTERS else None
    return given if isinstance(given, int) and not isinstance(given, bool) and abs(given) <= MAX_CURSOR else None


def event_filter(request: Request) -> EventFilter:
    """`channels` (all by default), `namespaces` and `depth`."""
    channels = request.params.get("channels", sorted(CHANNELS))
    if not isinstance(channels, list) or not 1 <= len(channels) <= MAX_CHANNELS or not all(map(_is_channel, channels)):
        known = ", ".join(sorted(CHANNELS))
        raise wrong("channels", f"a list of 1 to {MAX_CHANNELS} of {known} and custom:<name>")
    namespaces = request.params.get("namespaces") or []
    if not isinstance(namespaces, list) or len(namespaces) > MAX_NAMESPACES or not all(map(_is_namespace, namespaces)):
        raise wrong("namespaces", f"a list of at most {MAX_NAMESPACES} lists of texts")
    return EventFilter(
        channels=frozenset(channels),
        namespaces=tuple(tuple(namespace) for namespace in namespaces),
        depth=request.count("depth"),
    )


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _is_deeper_than(depth: int, value: object) -> bool:
    level = [value]
    for _ in range(depth):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _is_channel(value: object) -> bool:
    return isinstance(value, str) and (value in CHANNELS or (value.startswith("custom:") and len(value) <= 256))


def _is_namespace(value: object) -> bool:
    return isinstance(value, list) and len(value) <= 32 and all(isinstance(segment, str) for segment in value)
