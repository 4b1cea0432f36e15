"""How values lie in a row: times as ISO-8601 UTC text, JSON as text, namespaces as JSON with a cache."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import orjson

from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.wire import Namespace

_NAMESPACES_CACHED = 1024


def to_text_time(seconds: float) -> str:
    """`2026-01-31T12:00:00.250000+00:00`: of one width, so that text order is time order."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


def from_text_time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def to_json(value: object) -> str:
    """Raises `InvalidRequest` `not_json` for what JSON cannot say (spec: the host cleans lone surrogates before)."""
    try:
        return orjson.dumps(dict(value) if isinstance(value, Mapping) else value).decode()
    except TypeError as error:
        raise InvalidRequest("not_json", f"a value that is to be stored is not JSON: {error}") from error


def from_json(text: str) -> Any:
    return orjson.loads(text)


@lru_cache(maxsize=_NAMESPACES_CACHED)
def to_text_namespace(namespace: Namespace) -> str | None:
    """JSON, or None for the root: most events are the root's."""
    return to_json(list(namespace)) if namespace else None


@lru_cache(maxsize=_NAMESPACES_CACHED)
def from_text_namespace(text: str | None) -> Namespace:
    return tuple(orjson.loads(text)) if text else ()
