"""The third layer: a body's size is counted on the bytes that arrive, and its arrival has a deadline (spec/01 §2.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pizzabot_builtin_plugins.http_server.asgi import Receive, Send, header, send_error
from pizzabot_builtin_plugins.http_server.body_limits import BodyLimits, is_streamed
from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.http_routes import AsgiApp, AsgiMessage, Scope


class _TooLargeError(Exception):
    """More bytes than the limit have arrived."""


class _ClientGoneError(Exception):
    """The connection ended before the body did."""


class BodyLimit:
    """Reads every JSON body, and every body of a core route, before authentication and parsing, up to the limit.

    413 `request_too_large`, 408 `body_too_slow`. Other bodies of a mounted application, and files that are brought,
    pass as they come (uploads have limits of their own), with a deadline between two pieces.
    """

    def __init__(
        self, app: AsgiApp, *, limits: BodyLimits, seconds: float, is_mounted: Callable[[str], bool], logger: Logger
    ) -> None:
        self._app = app
        self._limits = limits
        self._seconds = seconds
        self._is_mounted = is_mounted
        self._logger = logger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        declared = header(scope, b"content-length")
        if (self._is_mounted(scope["path"]) or is_streamed(scope)) and not _is_json(scope):
            await self._app(scope, self._paced(receive), send)
            return
        limit = self._limits.of(scope)
        if declared is not None and int(declared) > limit:
            await self._refuse_size(send, limit)
            return
        if not declared and header(scope, b"transfer-encoding") is None:
            await self._app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._seconds):
                body = await self._read(receive, limit)
        except _TooLargeError:
            await self._refuse_size(send, limit)
        except TimeoutError:
            self._logger.warning("http.refused", code="body_too_slow", seconds=self._seconds)
            detail = f"the body did not arrive within {self._seconds:g} s (limit body_seconds)"
            await send_error(send, 408, "body_too_slow", detail, headers=[(b"connection", b"close")])
        except _ClientGoneError:
            return
        else:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, receive: Receive, limit: int) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _ClientGoneError
            piece = message.get("body", b"")
            size += len(piece)
            if size > limit:
                raise _TooLargeError
            pieces.append(piece)
            if not message.get("more_body", False):
                return b"".join(pieces)

    async def _refuse_size(self, send: Send, limit: int) -> None:
        self._logger.warning("http.refused", code="request_too_large", limit=limit)
        # The connection is not closed here: a client that is still writing would get a reset instead of this answer.
        # What it still sends is thrown away until the deadline for the next request's head (`server.py`).
        named = " (limit json_bytes)" if limit == self._limits.json_bytes else ""
        detail = f"the body is larger than {limit} bytes{named}; send less at once"
        await send_error(send, 413, "request_too_large", detail)

    def _paced(self, receive: Receive) -> Receive:
        complete = False

        async def receive_in_time() -> AsgiMessage:
            nonlocal complete
            if complete:
                return await receive()
            try:
                async with asyncio.timeout(self._seconds):
                    message = await receive()
            except TimeoutError:
                return {"type": "http.disconnect"}
            complete = not message.get("more_body", False)
            return message

        return receive_in_time


def _is_json(scope: Scope) -> bool:
    kind = (header(scope, b"content-type") or "").split(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _replay(body: bytes, receive: Receive) -> Receive:
    replayed = False

    async def receive_again() -> AsgiMessage:
        nonlocal replayed
        if replayed:
            return await receive()
        replayed = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
