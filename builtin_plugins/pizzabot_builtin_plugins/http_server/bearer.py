"""The fifth layer: the bearer token, on every path but a short list (spec/01 §2.6, spec/09 promises 2 and 3)."""

from __future__ import annotations

import hmac

from pizzabot_builtin_plugins.http_server.asgi import Receive, Send, header, send_error
from pizzabot_hookspecs.http_routes import AsgiApp, Scope

OPEN_PATHS = frozenset({"/ping"})
"""Answered without the token. A test enumerates every other route and asserts that it is guarded."""


class BearerToken:
    """The server's token, or none. Comparing takes the same time wherever the first wrong character is."""

    def __init__(self, token: str | None) -> None:
        self._expected = f"Bearer {token}".encode() if token else None

    def admits(self, scope: Scope) -> bool:
        """Whether `Authorization` is `Bearer <token>`, or no token is needed. The query string is never looked at."""
        return self._is((header(scope, b"authorization") or "").encode("latin-1"))

    def is_right(self, token: str | None) -> bool:
        """Whether this is the token alone, as a socket's `hello` has it, or none is needed."""
        return self._is(f"Bearer {token or ''}".encode(errors="surrogatepass"))

    def _is(self, given: bytes) -> bool:
        return self._expected is None or hmac.compare_digest(given, self._expected)


class BearerGate:
    """401 `unauthorized` for what the token does not admit."""

    def __init__(self, app: AsgiApp, token: str | None) -> None:
        self._app = app
        self._token = BearerToken(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "OPTIONS" or scope["path"] in OPEN_PATHS or self._token.admits(scope):
            await self._app(scope, receive, send)
            return
        detail = "the request needs the header `Authorization: Bearer <token>` with the server's token"
        await send_error(send, 401, "unauthorized", detail, headers=[(b"www-authenticate", b"Bearer")])
