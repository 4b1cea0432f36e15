"""Fields of a request, each checked: what is wrong is `InvalidRequest` `invalid_request` with the field's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from pizzabot_builtin_plugins.http_server.json_bodies import decode
from pizzabot_hookspecs import InvalidRequest


def refused(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_request", f"`{field}` {problem}", fields={field: problem})


async def optional_object(body: bytes) -> Mapping[str, Any]:
    """The body as an object. No body counts as `{}`; a broken one is told, for it may have asked for something else."""
    if not body.strip():
        return {}
    value = await decode(body)
    if not isinstance(value, dict):
        raise refused("body", "must be a JSON object, or empty")
    return value


def text(body: Mapping[str, Any], field: str, *, of: str = "") -> str | None:
    """`of`: the name of the object that the field is in, where that is not the body itself."""
    value = body.get(field)
    if value is not None and not isinstance(value, str):
        raise refused(f"{of}.{field}" if of else field, "must be a string")
    return value


def mapping(body: Mapping[str, Any], field: str) -> dict[str, Any] | None:
    value = body.get(field)
    if value is not None and not isinstance(value, dict):
        raise refused(field, "must be an object")
    return value


def texts(body: Mapping[str, Any], field: str, *, most: int) -> list[str] | None:
    value = body.get(field)
    if value is None:
        return None
    if not isinstance(value, list) or len(value) > most or not all(isinstance(item, str) for item in value):
        raise refused(field, f"must be a list of at most {most} strings")
    return value


def integer(body: Mapping[str, Any], field: str, *, default: int, least: int, most: int) -> int:
    """Text that is a number counts too where `body` is a query."""
    value = body.get(field)
    if value is None:
        return default
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise refused(field, f"must be an integer from {least} to {most}")
    return value


def one_of(body: Mapping[str, Any], field: str, allowed: Sequence[str]) -> str | None:
    value = body.get(field)
    if value is not None and value not in allowed:
        raise refused(field, f"must be one of {', '.join(allowed)}")
    found: str | None = value
    return found


def selection(wanted: Sequence[str] | None, known: Callable[[str], bool], *, valid: str) -> tuple[str, ...] | None:
    """`select`: the fields that the answer is to have; None and nothing mean all."""
    unknown = next((field for field in wanted or () if not known(field)), None)
    if unknown is not None:
        raise refused("select", f"has no field {unknown[:80]!r}; valid are {valid}")
    return tuple(wanted) if wanted else None


def not_there(body: Mapping[str, Any], *fields: str) -> None:
    """Refuses what LangGraph's clients may ask for and this server does not do, where leaving it out would mislead."""
    for field in fields:
        if body.get(field):
            raise refused(field, "is not supported here; leave it out")


def same_json(found: object, wanted: object) -> bool:
    """Equal as JSON: `true` is not 1, as it is in Python."""
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS) == orjson.dumps(wanted, option=orjson.OPT_SORT_KEYS)
