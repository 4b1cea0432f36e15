"""`HttpTransport`: takes the address at once, loads the web framework behind it, serves until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from pizzabot_builtin_plugins.http_server.addresses import Doors, check_exposure
from pizzabot_builtin_plugins.http_server.event_streams import OpenStreams
from pizzabot_builtin_plugins.http_server.settings import HttpSettings
from pizzabot_builtin_plugins.http_server.sockets import addresses_of, listen
from pizzabot_builtin_plugins.http_server.websocket.open_sockets import OpenSockets
from pizzabot_hookspecs import Context, InvalidRequest, NotPermitted, Unavailable
from pizzabot_hookspecs.host import Host
from pizzabot_hookspecs.http_routes import HttpRoutes

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.http_server.server import HostedServer

MOUNT_SECONDS = 10.0
"""How long the host may take to say what plugins add; without an answer the core routes are served alone."""


class HttpTransport:
    """The offer `http`. Also an async context manager, so that a socket that was bound and never served is closed."""

    def __init__(self, context: Context, settings: HttpSettings) -> None:
        self._context = context
        self._settings = settings
        self._socket: socket.socket | None = None
        self._doors = Doors.of(settings, settings.port)
        self._streams = OpenStreams(settings.limits.event_streams)
        self._sockets = OpenSockets(settings.limits.sockets)

    @property
    def address(self) -> str:
        return self._doors.address

    async def bind(self) -> None:
        """Listen. Raises `NotPermitted` `token_required`, `token_too_short`, `origins_required`, `port_not_permitted`;
        `Conflict` `port_in_use`; `InvalidRequest` `unknown_host`, `address_not_available`.
        """
        try:
            check_exposure(self._settings)
        except NotPermitted as refused:
            raise await self._with_unknown_host(refused) from None
        self._socket = await listen(self._settings.host, self._settings.port)
        self._doors = Doors.of(self._settings, self._socket.getsockname()[1])

    async def _with_unknown_host(self, refused: NotPermitted) -> NotPermitted:
        """A name that is none at all is said first: what an exposure needs may not be what the person has to do."""
        try:
            await addresses_of(self._settings.host, self._settings.port)
        except InvalidRequest as unknown:
            return NotPermitted(refused.code, f"{unknown.detail}; besides, {refused.detail}")
        return refused

    async def serve(self) -> None:
        if self._socket is None:
            await self.bind()
        sock = self._socket
        assert sock is not None  # noqa: S101 - bind has set it or raised
        try:
            routes = await self._plugin_routes()
            server = await asyncio.to_thread(self._load, routes)
            await self._run(server, sock)
        finally:
            self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _load(self, routes: Sequence[HttpRoutes]) -> HostedServer:
        """Import Litestar and uvicorn and build the application: about half a second, in a worker thread."""
        from pizzabot_builtin_plugins.http_server.application import build
        from pizzabot_builtin_plugins.http_server.server import make_server
        from pizzabot_builtin_plugins.http_server.services import Services

        services = Services(
            host=self._host,
            settings=self._settings,
            logger=self._context.logger,
            clock=self._context.clock,
            redact=self._context.redact,
            streams=self._streams,
            sockets=self._sockets,
        )
        application, _, _ = build(services, self._doors, routes)
        return make_server(application, self._settings.limits)

    async def _run(self, server: HostedServer, sock: socket.socket) -> None:
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        try:
            await asyncio.shield(serving)
        finally:
            server.stop()
            self._streams.end_all()
            self._sockets.end_all()
            # uvicorn gives open requests stop_seconds and then cancels them; one second more for its own ticks.
            await asyncio.wait({serving}, timeout=self._settings.limits.stop_seconds + 1)
            serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await serving

    async def _plugin_routes(self) -> Sequence[HttpRoutes]:
        try:
            async with asyncio.timeout(MOUNT_SECONDS):
                return await self._host.http_routes()
        except Exception:  # a plugin's fault must not take the core routes with it (architecture §5.2)
            self._context.logger.exception("http.mounts_failed")
            return ()

    @property
    def _host(self) -> Host:
        if self._context.host is None:
            raise Unavailable("no_host", "the http transport was made without a host; only a host can serve")
        return self._context.host

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
