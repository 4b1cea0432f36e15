"""The fourth layer: a request id, one log line per request, the last answer to unforeseen errors (spec/01 §2.4)."""

from __future__ import annotations

import re
import time
import uuid

from pizzabot_builtin_plugins.http_server.asgi import REQUEST_ID, Receive, Send, header, send_error, state
from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.http_routes import AsgiApp, AsgiMessage, Scope

MAX_REQUEST_ID = 128
CLIENT_GONE = 499
"""Logged as the status when the client left before an answer began."""
_MAX_PATH = 512
_UNSAFE = re.compile(r"[^A-Za-z0-9._:@+=/-]")


def request_id_of(scope: Scope) -> str:
    """The client's `X-Request-Id`, cut to 128 characters, if all of them are harmless; else a new one."""
    given = (header(scope, b"x-request-id") or "")[:MAX_REQUEST_ID]
    return given if given and not _UNSAFE.search(given) else str(uuid.uuid4())


def unforeseen(request_id: str) -> str:
    """What a client is told of an error that nobody foresaw: nothing but where to look."""
    return f"something failed inside the server; the log has the cause under request id {request_id}"


class RequestLog:
    """Logs method, path without its query, status and milliseconds as `http.request`; never a body or a header."""

    def __init__(self, app: AsgiApp, logger: Logger) -> None:
        self._app = app
        self._logger = logger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = request_id_of(scope)
        state(scope)[REQUEST_ID] = request_id
        begun = time.perf_counter()
        status = CLIENT_GONE

        async def send_with_id(message: AsgiMessage) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode("latin-1"))]
            await send(message)

        facts = {"request_id": request_id, "method": scope["method"], "path": scope["path"][:_MAX_PATH]}
        try:
            await self._app(scope, receive, send_with_id)
        except Exception:  # the last layer: an unforeseen error becomes a log line and a 500
            self._logger.exception("http.request.failed", **facts)
            if status == CLIENT_GONE:
                await send_error(send_with_id, 500, "internal_error", unforeseen(request_id))
        finally:
            self._log(facts, status, milliseconds=round((time.perf_counter() - begun) * 1000, 1))

    def _log(self, facts: dict[str, str], status: int, *, milliseconds: float) -> None:
        if _is_quiet(facts["method"], facts["path"]):
            write = self._logger.debug
        elif status >= 500:
            write = self._logger.error
        elif status >= 400:
            write = self._logger.warning
        else:
            write = self._logger.info
        write("http.request", **facts, status=status, ms=milliseconds)


def _is_quiet(method: str, path: str) -> bool:
    return path.startswith("/logs") or (method == "GET" and path in ("/ping", "/status"))
