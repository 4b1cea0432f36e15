"""The way to the client: one message after the other, in the order in which they were handed over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pizzabot_builtin_plugins.http_server.asgi import Send
from pizzabot_builtin_plugins.http_server.websocket.endings import Ending


class GoneError(Exception):
    """Nobody takes messages any more; whoever writes ends."""


class Outbox:
    """Nothing is queued here: `write` returns when the message was handed to the connection, which holds one at most
    beyond its buffer. So whoever has much to say waits, and what comes meanwhile is in the log.

    A message that is not taken within `seconds` ends the socket (`ended` is told `STALLED`), a connection that is gone
    too (`LEFT`). `asyncio.Lock` is fair: no subscription keeps another one waiting for more than one message.
    """

    def __init__(self, send: Send, seconds: float, ended: Callable[[Ending], None]) -> None:
        self._send = send
        self._seconds = seconds
        self._ended = ended
        self._turn = asyncio.Lock()
        self._shut = False
        self.spoke_at = asyncio.get_running_loop().time()

    async def write(self, message: bytes) -> None:
        """Raises `GoneError`."""
        async with self._turn:
            if self._shut:
                raise GoneError
            try:
                async with asyncio.timeout(self._seconds):
                    await self._send({"type": "websocket.send", "text": message.decode()})
            except TimeoutError:
                self._break(Ending.STALLED)
                raise GoneError from None
            except OSError:  # how ASGI says that the client is gone
                self._break(Ending.LEFT)
                raise GoneError from None
        self.spoke_at = asyncio.get_running_loop().time()

    def shut(self) -> None:
        """From now on every write raises."""
        self._shut = True

    def _break(self, ending: Ending) -> None:
        self._shut = True
        self._ended(ending)
