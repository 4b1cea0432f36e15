"""The first two layers: Host header and Origin, before anything else happens; then CORS (spec/01 §2, spec/09 §2.4)."""

from __future__ import annotations

from pizzabot_builtin_plugins.http_server.addresses import Doors
from pizzabot_builtin_plugins.http_server.asgi import Receive, Send, header, send_error
from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.http_routes import AsgiApp, AsgiMessage, Scope

METHODS = "GET, POST, PUT, PATCH, DELETE, OPTIONS"
REQUEST_HEADERS = (
    "Authorization, Content-Type, Idempotency-Key, If-None-Match, If-Range, Last-Event-ID, Range, X-Api-Key, "
    "X-Request-Id, X-Trigger-Secret"
)
ANSWER_HEADERS = "Content-Disposition, Content-Range, ETag, Pizzabot-As-Of-Seq, Pizzabot-Turns, X-Request-Id"
"""What a page of another origin may read, beside what every browser lets it."""
_SHOWN = 200
"""Characters of a refused header that the log keeps."""


class RefusableSocket:
    """Lets the gates refuse a WebSocket before it is accepted as they refuse a request: with a status and JSON."""

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return

        async def send_to_socket(message: AsgiMessage) -> None:
            is_answer = message["type"].startswith("http.response.")
            await send({**message, "type": f"websocket.{message['type']}"} if is_answer else message)

        await self._app(scope, receive, send_to_socket)


class HostGate:
    """Refuses a Host header that is not ours: a page that rebinds its own DNS name to 127.0.0.1 gets nothing."""

    def __init__(self, app: AsgiApp, doors: Doors, logger: Logger) -> None:
        self._app = app
        self._doors = doors
        self._logger = logger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = header(scope, b"host") or ""
        if self._doors.admits_host(host):
            await self._app(scope, receive, send)
            return
        self._logger.warning("http.refused", code="host_not_allowed", host=host[:_SHOWN])
        way_out = f"use {self._doors.address}, or list the name in allowed_hosts"
        await send_error(send, 403, "host_not_allowed", f"this server does not answer to that Host header; {way_out}")


class OriginGate:
    """Refuses an Origin that is not listed, without CORS headers; answers preflights; adds CORS headers to the rest."""

    def __init__(self, app: AsgiApp, doors: Doors, logger: Logger) -> None:
        self._app = app
        self._doors = doors
        self._logger = logger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        origin = header(scope, b"origin")
        if origin is None:
            await self._app(scope, receive, send)
            return
        if not self._doors.admits_origin(origin, header(scope, b"host") or ""):
            self._logger.warning("http.refused", code="origin_not_allowed", origin=origin[:_SHOWN])
            detail = "this Origin may not call the server; list it in allowed_origins (PIZZABOT_ALLOWED_ORIGINS)"
            await send_error(send, 403, "origin_not_allowed", detail)
            return
        cors = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"Origin")]
        if scope.get("method") == "OPTIONS" and header(scope, b"access-control-request-method"):
            await self._answer_preflight(send, cors)
            return

        async def send_with_cors(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                exposed = (b"access-control-expose-headers", ANSWER_HEADERS.encode())
                message["headers"] = [*message.get("headers", ()), *cors, exposed]
            await send(message)

        await self._app(scope, receive, send_with_cors)

    async def _answer_preflight(self, send: Send, cors: list[tuple[bytes, bytes]]) -> None:
        allowed = [
            (b"access-control-allow-methods", METHODS.encode()),
            (b"access-control-allow-headers", REQUEST_HEADERS.encode()),
            (b"access-control-max-age", b"600"),
        ]
        await send({"type": "http.response.start", "status": 204, "headers": [*cors, *allowed]})
        await send({"type": "http.response.body", "body": b""})
