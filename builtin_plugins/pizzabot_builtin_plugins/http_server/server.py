"""uvicorn as the host wants it: no signal handlers, no access log, no trust in proxies, deadlines on request heads.

Imported by `serve` in a worker thread, after the address was taken.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

import uvicorn  # noqa: TID253 - see above
from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: TID253

from pizzabot_builtin_plugins.http_server.asgi import ABORT, SOCKET_PATH
from pizzabot_builtin_plugins.http_server.settings import HttpLimits
from pizzabot_builtin_plugins.http_server.websocket.protocol import SocketProtocol
from pizzabot_hookspecs.http_routes import AsgiApp

HEAD_BYTES = 32 * 1024
"""Request line and headers together; more is a 400."""


class HostedServer(uvicorn.Server):
    """Signals belong to the host, which cancels `serve`. It wakes once a second, for Date headers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """Close the listener, let open requests end within `stop_seconds`, and let `serve` return."""
        self.should_exit = True
        self._stop.set()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await self._stop.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def make_server(app: AsgiApp, limits: HttpLimits) -> HostedServer:
    class Protocol(PatientProtocol):
        head_seconds = limits.head_seconds

    config = uvicorn.Config(
        app,
        http=Protocol,
        ws=SocketProtocol,
        ws_max_size=limits.json_bytes,
        # Both sides send messages of their own, and a page cannot send or see a ping of the protocol.
        ws_ping_interval=None,
        # A token is some 300 bytes: compressing costs more than sending, and a context for every socket.
        ws_per_message_deflate=False,
        loop="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=limits.stop_seconds,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )
    config.load()
    return HostedServer(config)


class PatientProtocol(H11Protocol):
    """uvicorn waits for ever for the end of a request's headers; this waits `head_seconds` (slow loris)."""

    head_seconds = 10.0
    _head_deadline: asyncio.TimerHandle | None = None
    _is_socket = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, ABORT: transport.abort}
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._is_socket:
            self._await_head()

    def handle_websocket_upgrade(self, event: Any) -> None:
        self._is_socket = True
        self._forget_deadline()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _should_upgrade(self) -> bool:
        """On one path only, and not beyond the limit of connections, which uvicorn does not look at here."""
        if self.scope["path"] != SOCKET_PATH or self.scope["method"] != "GET":
            return False
        limit = self.limit_concurrency
        full = limit is not None and max(len(self.connections), len(self.tasks)) >= limit
        return not full and self._get_upgrade() == b"websocket"

    def _await_head(self) -> None:
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._forget_deadline()
        elif self._head_deadline is None:
            self._head_deadline = self.loop.call_later(self.head_seconds, self._give_up)

    def _give_up(self) -> None:
        self._head_deadline = None
        cycle: Any = self.cycle
        if (cycle is None or cycle.response_complete) and not self.transport.is_closing():
            self.transport.abort()

    def _forget_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None
