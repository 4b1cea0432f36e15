"""The ASGI application behind `GET /ws`, and every socket of the server."""

from __future__ import annotations

import asyncio

from pizzabot_builtin_plugins.http_server.access_log import request_id_of
from pizzabot_builtin_plugins.http_server.asgi import ABORT, REQUEST_ID, Receive, Send, header, state
from pizzabot_builtin_plugins.http_server.bearer import BearerToken
from pizzabot_builtin_plugins.http_server.services import Services
from pizzabot_builtin_plugins.http_server.websocket.connection import FAREWELL_SECONDS, Connection, Visitor
from pizzabot_builtin_plugins.http_server.websocket.endings import REASONS, Ending
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.http_routes import Scope


class SocketApplication:
    """Behind the gates for Host and Origin. It accepts, and what is wrong is said by a close code: no browser shows a
    page the status with which a socket was refused.
    """

    def __init__(self, services: Services, token: BearerToken) -> None:
        self._services = services
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = request_id_of(scope)
        state(scope)[REQUEST_ID] = request_id
        await receive()  # websocket.connect
        headers = [(b"x-request-id", request_id.encode("latin-1"))]
        sockets = self._services.sockets
        try:
            await send({"type": "websocket.accept", "headers": headers})
            refused = sockets.refusal()
            if refused is not None:
                await _close(send, refused)
                self._log(refused, request_id, 0.0)
                return
        except OSError:
            return
        visitor = Visitor(
            caller=Caller(request_id=request_id),
            user_agent=header(scope, b"user-agent"),
            is_known=self._token.admits(scope),
        )

        async def close(ending: Ending) -> None:
            if ending is Ending.STALLED or not await _close(send, ending):
                state(scope).get(ABORT, lambda: None)()

        connection = Connection(self._services, self._token, visitor, receive, send)
        begun = asyncio.get_running_loop().time()
        with sockets.holding(connection):
            ending = await connection.run(close)
        self._log(ending, request_id, asyncio.get_running_loop().time() - begun)

    def _log(self, ending: Ending, request_id: str, seconds: float) -> None:
        said = self._services.logger.info if ending in (Ending.LEFT, Ending.STOPPING) else self._services.logger.warning
        said("http.socket.ended", request_id=request_id, ending=ending.name.lower(), seconds=round(seconds, 3))


async def _close(send: Send, ending: Ending) -> bool:
    """Whether the client can have taken it, or has gone by itself."""
    if ending is Ending.LEFT:
        return True
    try:
        async with asyncio.timeout(FAREWELL_SECONDS):
            await send({"type": "websocket.close", "code": ending.value, "reason": REASONS[ending]})
    except TimeoutError:
        return False
    except OSError:  # the client was faster
        return True
    return True
