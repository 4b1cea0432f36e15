"""What the transcript's routes are asked for: a query or a body, of which nothing is guessed and nothing passed over.

A parameter that is unknown, given twice or wrong is `InvalidRequest` `invalid_argument` with its name in `fields`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeVar

from pizzabot_builtin_plugins.http_server.body_fields import optional_object
from pizzabot_builtin_plugins.http_server.checkpoint_names import NAMESPACE_RULE, split_namespace
from pizzabot_builtin_plugins.http_server.services import AnyRequest
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.wire import Namespace

MAX_TURN_ID = 259
"""Characters: a message's id has 255, and a turn that nobody's message began is `run:<run id>`."""

_TURN_ID = re.compile(rf"[A-Za-z0-9._~:@-]{{1,{MAX_TURN_ID}}}")
_SHOWN = 80
_Choice = TypeVar("_Choice", bound=StrEnum)


class Arguments:
    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given

    @classmethod
    def of_query(cls, request: AnyRequest, *known: str) -> Arguments:
        given: dict[str, Any] = {}
        for name, value in request.query_params.multi_items():
            if name in given:
                raise wrong(name, "must be given once")
            given[name] = value
        return cls(_only(given, known))

    @classmethod
    async def of_body(cls, request: AnyRequest, *known: str) -> Arguments:
        """No body is the same as `{}`."""
        return cls(_only(await optional_object(await request.body()), known))

    def text(self, name: str) -> str | None:
        value = self._given.get(name)
        if value is not None and not isinstance(value, str):
            raise wrong(name, "must be a string")
        return value

    def integer(self, name: str, *, least: int, most: int) -> int | None:
        """Of a query: decimal digits."""
        value = self.text(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= 16 and least <= int(value) <= most):
            raise wrong(name, f"must be an integer from {least} to {most}")
        return int(value)

    def one_of(self, name: str, default: _Choice) -> _Choice:
        value, choices = self.text(name), type(default)
        if value is None:
            return default
        if value not in list(choices):
            raise wrong(name, f"must be one of {', '.join(choices)}")
        return choices(value)

    def turn(self, name: str) -> str | None:
        value = self.text(name)
        return None if value is None else checked_turn(value, name)

    def namespace(self, name: str) -> Namespace:
        found = split_namespace(self.text(name) or "")
        if found is None:
            raise wrong(name, NAMESPACE_RULE)
        return found


def checked_turn(value: str, name: str) -> str:
    """Raises `InvalidRequest` `invalid_id`."""
    if _TURN_ID.fullmatch(value):
        return value
    problem = f"must be 1 to {MAX_TURN_ID} of the characters A-Z a-z 0-9 . _ ~ : @ -"
    raise InvalidRequest("invalid_id", f"`{name}` {problem}", fields={name: problem})


def wrong(name: str, problem: str) -> InvalidRequest:
    shown = name[:_SHOWN]
    return InvalidRequest("invalid_argument", f"`{shown}` {problem}", fields={shown: problem})


def _only(given: Mapping[str, Any], known: tuple[str, ...]) -> Mapping[str, Any]:
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise wrong(unknown, f"is not known here; known are {', '.join(known)}" if known else "is not known here")
    return given
