"""What every layer shares: ASGI types, header access, and answers that need no framework."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from pizzabot_builtin_plugins.http_server.json_bodies import encode
from pizzabot_hookspecs.http_routes import AsgiMessage, Scope

Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

REQUEST_ID = "pizzabot.request_id"
"""Key in `scope["state"]`: the id that the log and the answer's `X-Request-Id` carry."""
SOCKET_PATH = "/ws"
"""Where a request may become a WebSocket; on every other path `Upgrade` is ignored."""
ABORT = "pizzabot.abort"
"""Key in `scope["state"]`: drops the connection at once, whatever is still in its write buffer."""


def header(scope: Scope, name: bytes) -> str | None:
    """The first header of that (lower-case) name, None when it is absent."""
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return None


def state(scope: Scope) -> dict[str, Any]:
    found: dict[str, Any] = scope.setdefault("state", {})
    return found


async def send_json(send: Send, status: int, payload: object, headers: Headers = ()) -> None:
    """A whole JSON answer."""
    body = encode(payload)
    lines = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": lines})
    await send({"type": "http.response.body", "body": body})


async def send_error(
    send: Send, status: int, code: str, detail: str, headers: Headers = (), fields: Mapping[str, str] | None = None
) -> None:
    """`{error, detail, fields?}`, the form of every refused route (architecture §7)."""
    await send_json(send, status, error_body(code, detail, fields), headers)


def error_body(code: str, detail: str, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {"error": code, "detail": detail}
    if fields:
        body["fields"] = dict(fields)
    return body
