"""Every open socket of the server: at most so many, and all of them end when it stops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from pizzabot_builtin_plugins.http_server.websocket.endings import Ending


class Endable(Protocol):
    def end(self, ending: Ending, /) -> None: ...


class OpenSockets:
    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: set[Endable] = set()
        self._stopping = False

    def __len__(self) -> int:
        return len(self._open)

    def refusal(self) -> Ending | None:
        """Why no further socket is admitted now, None when one is."""
        if self._stopping:
            return Ending.STOPPING
        return Ending.TOO_MANY if len(self._open) >= self._limit else None

    @contextmanager
    def holding(self, socket: Endable) -> Iterator[None]:
        self._open.add(socket)
        try:
            yield
        finally:
            self._open.discard(socket)

    def end_all(self) -> None:
        """Each tells its subscriptions that the server stops; no new one is admitted."""
        self._stopping = True
        for socket in self._open:
            socket.end(Ending.STOPPING)
