"""`LinesTransport`: takes its address, serves connections until it is cancelled, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from pizzabot_hookspecs import Context, Unavailable
from pizzabot_hookspecs.support.paths import safe_segment
from pizzabot_lines.connection import Connection, Services
from pizzabot_lines.settings import LinesSettings
from pizzabot_lines.sockets import LOOPBACK, listen_on_port, listen_on_socket, same_user

STOP_SECONDS = 4.5
"""The host has 5 s of patience."""


class LinesTransport:
    """A `Transport`, and an async context manager, so that an address that was bound and never served is given back."""

    def __init__(self, context: Context, settings: LinesSettings) -> None:
        if context.host is None:
            raise Unavailable("no_host", "the lines transport was made without a host; only a host can serve")
        self._settings = settings
        self._path = context.data_root / safe_segment(settings.socket, what="socket")
        self._logger = context.logger
        token = settings.token.get_secret_value() if settings.token and settings.port is not None else None
        self._services = Services(
            host=context.host,
            limits=settings.limits,
            logger=context.logger,
            clock=context.clock,
            redact=context.redact,
            token=token,
        )
        self._listener: socket.socket | None = None
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """`unix:/…/lines.sock` or `tcp://127.0.0.1:PORT`."""
        if self._settings.port is None:
            return f"unix:{self._path}"
        port = self._listener.getsockname()[1] if self._listener is not None else self._settings.port
        return f"tcp://{LOOPBACK}:{port}"

    async def bind(self) -> None:
        if self._settings.port is None:
            self._listener = await asyncio.to_thread(listen_on_socket, self._path)
        else:
            self._listener = await asyncio.to_thread(listen_on_port, self._settings.port)

    async def serve(self) -> None:
        if self._listener is None:
            await self.bind()
        limit = self._settings.limits.line_bytes
        server = await asyncio.start_server(self._connected, sock=self._listener, limit=limit)
        try:
            # Not `serve_forever`: from Python 3.12 on its end waits until every client has gone by itself.
            await asyncio.get_running_loop().create_future()
        finally:
            server.close()
            await self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._admits(writer):
            writer.close()
            return
        task = asyncio.create_task(self._serve(reader, writer), name="lines connection")
        self._connections.add(task)
        task.add_done_callback(lambda task: self._ended(task, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Connection(self._services, reader, writer).serve()

    def _ended(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._connections.discard(task)
        writer.transport.abort()  # a task that was cancelled before its first step has closed nothing
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error("lines.connection_failed", cause=type(error).__name__, detail=str(error))

    def _admits(self, writer: asyncio.StreamWriter) -> bool:
        if not same_user(writer.get_extra_info("socket")):
            self._logger.warning("lines.other_user_refused")
            return False
        if len(self._connections) >= self._settings.limits.connections:
            self._logger.warning("lines.too_many_connections", limit=self._settings.limits.connections)
            return False
        return True

    async def _close(self) -> None:
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections, timeout=STOP_SECONDS)
        if self._listener is not None:
            self._listener.close()
            self._listener = None
            if self._settings.port is None:
                await asyncio.to_thread(_remove, self._path)


def create(context: Context, settings: LinesSettings) -> LinesTransport:
    return LinesTransport(context, settings)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
