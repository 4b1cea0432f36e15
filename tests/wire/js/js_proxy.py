"""A proxy between a client and the server: it cuts connections, follows a server that starts again, flips one switch.

with Proxy(lambda: server.http) as proxy:
    ...                      # a client on proxy.url
    proxy.cut()              # every connection that is open now is reset, in the middle of whatever it carries
    proxy.switch = CHECKPOINTS_AFTER

A switch turns right frames into wrong ones (wire.md §12): whole frames go out in the order in which they came in.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

WAIT_SECONDS = 30.0
_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding", "accept-encoding"}

Frame = dict[str, Any]


class Switch:
    """What a server that does it right sends, unchanged. Made anew for each connection, so that it may remember."""

    def body(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The request as the server gets it."""
        return body

    def frames(self, frame: Frame) -> list[Frame]:
        """What is sent in place of one event."""
        return [frame]

    def answer(self, path: str, answer: Any) -> Any:
        """What is sent in place of one JSON answer."""
        return answer


class Proxy:
    def __init__(self, upstream: Callable[[], str]) -> None:
        self.upstream = upstream
        self.switch: type[Switch] = Switch
        self.requests: list[tuple[str, str, Any]] = []
        """Method, path and body of everything that came, in order."""
        self._open: set[socket.socket] = set()
        self._change = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="proxy")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self.cut()
        self._server.server_close()
        self._thread.join(WAIT_SECONDS)

    def cut(self) -> int:
        """Reset every connection with a request on it, as a network that goes away does; how many there were.

        One without is left alone: a client does not send a POST again that went into a connection just reset.
        """
        with self._change:
            there, self._open = self._open, set()
        for connection in there:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                os.close(connection.detach())  # close() would wait for the files that the handler made of it
        return len(there)

    def opened(self, connection: socket.socket) -> None:
        with self._change:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._change:
            self._open.discard(connection)


def _handler(proxy: Proxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def finish(self) -> None:
            proxy.closed(self.request)
            with suppress(OSError, ValueError):
                super().finish()

        def handle(self) -> None:
            with suppress(OSError, ValueError, http.client.HTTPException):
                super().handle()

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._forward()

        def do_POST(self) -> None:
            self._forward()

        def _forward(self) -> None:
            switch = proxy.switch()
            proxy.opened(self.request)
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            body = json.loads(raw) if raw else None
            proxy.requests.append((self.command, self.path, body))
            if body is not None:
                raw = json.dumps(switch.body(self.path, body)).encode()
            target = urlsplit(proxy.upstream())
            there = http.client.HTTPConnection(target.hostname or "", target.port or 80, timeout=WAIT_SECONDS)
            try:
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
                there.request(self.command, self.path, raw or None, headers)
                self._pass_on(there.getresponse(), switch)
            finally:
                self.close_connection = True
                there.close()

        def _pass_on(self, response: http.client.HTTPResponse, switch: Switch) -> None:
            kind = response.headers.get("content-type") or ""
            self.send_response(response.status)
            self.send_header("content-type", kind)
            self.send_header("connection", "close")
            if kind.startswith("text/event-stream"):
                self.end_headers()
                self.wfile.flush()
                for piece in _events(response, switch):
                    self.wfile.write(piece)
                    self.wfile.flush()
                return
            answer = response.read()
            if kind.startswith("application/json") and answer:
                answer = json.dumps(switch.answer(self.path, json.loads(answer))).encode()
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    return Handler


def _events(response: http.client.HTTPResponse, switch: Switch) -> Iterator[bytes]:
    lines: list[bytes] = []
    for line in response:
        lines.append(line)
        if line.strip():
            continue
        data = [line[5:] for line in lines if line.startswith(b"data:")]
        if not data:
            yield b"".join(lines)
        for frame in switch.frames(json.loads(b"".join(data))) if data else ():
            yield b"data: " + json.dumps(frame).encode() + b"\n\n"
        lines = []
