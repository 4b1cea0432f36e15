"""A TCP proxy on loopback: an address that stays while servers come and go, and connections that break when told to.

with Proxy(server.http) as proxy:
    ...                      # clients talk to proxy.http
    proxy.cut()              # every open connection is reset; the next ones go through
    proxy.hold()             # new connections are accepted and stand still, as at a server that starts
    proxy.lead_to(server.http)
    with proxy.news_kept():  # the Python SDK's watcher hears of questions and failures later than its projections
        proxy.let_through()
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Self
from urllib.parse import urlsplit

PIECE = 64 * 1024
WAIT_SECONDS = 30.0
_RESET = struct.pack("ii", 1, 0)
_WATCHES = b'"channels":["lifecycle","input"]'
"""In the request of the Python SDK's watcher, the one stream that asks for just these."""
_NEWS = (b"input.requested", b'"failed"')
"""In frames with which the watcher ends what the projections show."""

Pair = tuple[socket.socket, socket.socket]


class Proxy:
    def __init__(self, target: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._change = threading.Condition()
        self._port: int | None = urlsplit(target).port
        self._pairs: set[Pair] = set()
        self._watchers: set[Pair] = set()
        self._news_kept = False
        self._threads: list[threading.Thread] = []
        self._closed = False

    @property
    def http(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with self._change:
            self._closed = True
            self._change.notify_all()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(WAIT_SECONDS)

    def cut(self) -> int:
        """Reset every open connection, on both sides; how many there were."""
        with self._change:
            pairs, self._pairs = self._pairs, set()
            self._change.notify_all()
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    end.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def hold(self) -> None:
        with self._change:
            self._port = None

    def lead_to(self, target: str) -> None:
        with self._change:
            self._port = urlsplit(target).port
            self._change.notify_all()

    @contextlib.contextmanager
    def news_kept(self) -> Iterator[None]:
        """Frames that tell a watcher of a question or a failure wait here, at the latest until the end of the block.

        The SDK ends its projections at once when its watcher, a connection of its own, hears of them; what the other
        connection has not brought by then is lost to them, or shown as failed. Which one is first is anybody's guess.
        """
        with self._change:
            self._news_kept = True
        try:
            yield
        finally:
            self.let_through()

    def let_through(self) -> None:
        """What waits, and whatever comes later."""
        with self._change:
            self._news_kept = False
            self._change.notify_all()

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="proxy", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._connect, client)

    def _connect(self, client: socket.socket) -> None:
        with self._change:
            self._change.wait_for(lambda: self._closed or self._port is not None, WAIT_SECONDS)
            if self._closed or self._port is None:
                client.close()
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                client.close()
                return
            pair = client, server
            self._pairs.add(pair)
        self._start(self._carry, server, client, pair)
        self._carry(client, server, pair)

    def _carry(self, source: socket.socket, target: socket.socket, pair: Pair) -> None:
        try:
            while piece := source.recv(PIECE):
                self._look_at(piece, pair)
                target.sendall(piece)
        except OSError:
            pass  # cut, or one side is gone
        for end in pair:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._change:
            self._pairs.discard(pair)
            self._watchers.discard(pair)
            self._change.notify_all()
        source.close()

    def _look_at(self, piece: bytes, pair: Pair) -> None:
        """Remember a watcher; keep its news, and with it all that follows, while it is to be kept."""
        with self._change:
            if _WATCHES in piece:
                self._watchers.add(pair)
            elif pair in self._watchers and any(news in piece for news in _NEWS):
                self._change.wait_for(lambda: not self._news_kept or pair not in self._pairs, WAIT_SECONDS)
