"""The fifth layer: the bearer token, on every path but a short list (spec/01 §2.6, spec/09 promises 2 and 3)."""

from __future__ import annotations

import hmac

from pizzabot_builtin_plugins.http_server.asgi import Receive, Send, header, send_error
from pizzabot_hookspecs.http_routes import AsgiApp, Scope

OPEN_PATHS = frozenset({"/ping"})
"""Answered without the token. A test enumerates every other route and asserts that it is guarded."""


class BearerGate:
    """401 `unauthorized` unless `Authorization` is `Bearer <token>`. No token is read from the query string."""

    def __init__(self, app: AsgiApp, token: str | None) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._expected is None or scope["method"] == "OPTIONS" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        given = (header(scope, b"authorization") or "").encode("latin-1")
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        detail = "the request needs the header `Authorization: Bearer <token>` with the server's token"
        await send_error(send, 401, "unauthorized", detail, headers=[(b"www-authenticate", b"Bearer")])
