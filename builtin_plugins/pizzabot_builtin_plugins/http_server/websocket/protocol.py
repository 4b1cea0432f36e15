"""uvicorn's WebSocket connection as the host wants it: bounded in what a client can make it hold, ended by the host.

Imported by `serve` in a worker thread, after the address was taken.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol  # noqa: TID253 - see above
from websockets.frames import CloseCode, Frame

PIECE_BYTES = 16 * 1024
"""How much is parsed at once: what is behind a message waits until that one was taken."""
MAX_FRAGMENTS = 4096
"""Of one message. uvicorn keeps a list of them; empty ones count nothing towards the largest size."""
CLOSE_SECONDS = 5.0
"""For a client to answer a close and to take what was written before it; then the connection is cut."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """One message at a time is parsed ahead of the application, and nothing while the client does not read."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.close_timeout = CLOSE_SECONDS
        self._unparsed = bytearray()
        self._cut: asyncio.TimerHandle | None = None

    def data_received(self, data: bytes) -> None:
        self._unparsed += data
        self._parse()
        if not self.handshake_initiated and not self.transport.is_closing():
            # The whole head came at once, from `handle_websocket_upgrade`: it is one that websockets refuses.
            self.transport.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.transport.pause_reading()  # a client that sends pings and reads no pong

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()
            self._parse()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unparsed.clear()
        if self._cut is not None:
            self._cut.cancel()

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) < MAX_FRAGMENTS:
            super().handle_cont(event)
        elif not self.close_sent:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, f"more than {MAX_FRAGMENTS} fragments")
            self.handle_parser_exception()

    def shutdown(self) -> None:
        """The application says its farewell by itself; uvicorn's would cut subscriptions off without a word."""
        if self.close_sent:
            super().shutdown()
        self.close_timeout = min(self.close_timeout, 1.0)

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        if not self.disconnected:
            self._cut = self.loop.call_later(self.close_timeout, self.transport.abort)

    async def receive(self) -> Any:
        message = await super().receive()
        if not self.writable.is_set():
            self.transport.pause_reading()
        self._parse()
        return message

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # refused; uvicorn would log that the application forgot to answer
        elif message["type"] == "websocket.close":
            self._parse()  # the client's own close may be among what was not looked at yet

    def _parse(self) -> None:
        while self._unparsed and not self.read_paused and self.writable.is_set() and not self.disconnected:
            piece = bytes(self._unparsed[:PIECE_BYTES])
            del self._unparsed[:PIECE_BYTES]
            super().data_received(piece)
