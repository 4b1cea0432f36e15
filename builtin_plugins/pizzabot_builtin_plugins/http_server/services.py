"""What the core routes work with, and what they share: answers, ids, parameters.

Imported by `serve` in a worker thread, after the address was taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from litestar import Request, Response  # noqa: TID253 - see above

from pizzabot_builtin_plugins.http_server.asgi import REQUEST_ID, state
from pizzabot_builtin_plugins.http_server.event_streams import OpenStreams
from pizzabot_builtin_plugins.http_server.json_bodies import encode
from pizzabot_builtin_plugins.http_server.settings import HttpSettings
from pizzabot_builtin_plugins.http_server.websocket.open_sockets import OpenSockets
from pizzabot_hookspecs import Caller, InvalidRequest, Logger
from pizzabot_hookspecs.host import Host

AnyRequest: TypeAlias = Request[Any, Any, Any]

_ID = re.compile(r"[A-Za-z0-9._~:@-]{1,255}")
_FLAGS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True, kw_only=True)
class Services:
    host: Host
    settings: HttpSettings
    logger: Logger
    clock: Callable[[], float]
    redact: Callable[[str], str]
    streams: OpenStreams
    sockets: OpenSockets


def json_answer(payload: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response[bytes]:
    return Response(encode(payload), status_code=status, media_type="application/json", headers=headers)


def caller_of(request: AnyRequest) -> Caller:
    """The one owner of a local installation, with the request's id for the log."""
    return Caller(request_id=state(request.scope).get(REQUEST_ID))  # type: ignore[arg-type]  # the same dict, typed narrower


def checked_id(value: str, name: str) -> str:
    """Raises `InvalidRequest` `invalid_id` (architecture §7)."""
    if _ID.fullmatch(value):
        return value
    problem = "must be 1 to 255 of the characters A-Z a-z 0-9 . _ ~ : @ -"
    raise InvalidRequest("invalid_id", f"`{name}` {problem}", fields={name: problem})


def flag(request: AnyRequest, name: str) -> bool:
    """A query parameter that is `1`, `true`, `0`, `false` or absent; raises `InvalidRequest` `invalid_parameter`."""
    value = request.query_params.get(name, "0")
    if value not in _FLAGS:
        problem = "must be 0 or 1"
        raise InvalidRequest("invalid_parameter", f"`{name}` {problem}, not {value[:40]!r}", fields={name: problem})
    return _FLAGS[value]
