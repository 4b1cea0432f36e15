"""What a client sends over the socket, checked: one JSON object in a text frame each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pizzabot_builtin_plugins.http_server.json_bodies import decode
from pizzabot_builtin_plugins.http_server.subscriptions import MAX_SEQ
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.http_routes import AsgiMessage

TYPES = ("hello", "subscribe", "unsubscribe", "command", "ping", "pong")
_COMMAND_KEYS = ("id", "method", "params")


@dataclass(frozen=True, kw_only=True, slots=True)
class Hello:
    token: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Subscribe:
    """`wanted` is the message as it came: what is wrong with it ends this subscription alone."""

    sub: int
    wanted: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unsubscribe:
    sub: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SentCommand:
    """`body` is what the host's command takes, `key` the idempotency key, unchecked."""

    thread: str
    body: dict[str, Any]
    key: object


@dataclass(frozen=True, slots=True)
class Ping:
    pass


@dataclass(frozen=True, slots=True)
class Pong:
    pass


ClientMessage: TypeAlias = Hello | Subscribe | Unsubscribe | SentCommand | Ping | Pong


async def read_message(frame: AsgiMessage) -> ClientMessage:
    """Raises `InvalidRequest` `invalid_json`, `invalid_argument` or `unknown_type`."""
    text = frame.get("text")
    if text is None:
        raise InvalidRequest("invalid_argument", "a message is one JSON object in a text frame, not a binary one")
    value = await decode(text.encode())
    if not isinstance(value, dict):
        raise InvalidRequest("invalid_argument", 'a message is one JSON object with a "type"')
    return _typed(value)


def _typed(value: dict[str, Any]) -> ClientMessage:
    kind = value.get("type")
    if kind == "hello":
        return Hello(token=_text(value, "token", optional=True))
    if kind == "subscribe":
        return Subscribe(sub=_number(value), wanted=value)
    if kind == "unsubscribe":
        return Unsubscribe(sub=_number(value))
    if kind == "command":
        body = {key: value[key] for key in _COMMAND_KEYS if key in value}
        return SentCommand(thread=_text(value, "thread") or "", body=body, key=value.get("idempotencyKey"))
    if kind == "ping":
        return Ping()
    if kind == "pong":
        return Pong()
    raise InvalidRequest("unknown_type", f"there is no type {str(kind)[:40]!r}; known are {', '.join(TYPES)}")


def _text(value: Mapping[str, Any], key: str, *, optional: bool = False) -> str | None:
    found = value.get(key)
    if isinstance(found, str) or (optional and found is None):
        return found
    raise _refused(key, "must be a string")


def _number(value: Mapping[str, Any]) -> int:
    sub = value.get("sub")
    if isinstance(sub, bool) or not isinstance(sub, int) or not 0 <= sub <= MAX_SEQ:
        raise _refused("sub", f"must be an integer from 0 to {MAX_SEQ}")
    return sub


def _refused(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_argument", f"`{field}` {problem}", fields={field: problem})
