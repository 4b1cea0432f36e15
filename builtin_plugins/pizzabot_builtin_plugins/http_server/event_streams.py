"""One open event stream: an ASGI application that writes what the host's observer yields until someone goes away."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from pizzabot_builtin_plugins.http_server import frames
from pizzabot_builtin_plugins.http_server.access_log import unforeseen
from pizzabot_builtin_plugins.http_server.asgi import ABORT, REQUEST_ID, Receive, Send, send_error, state
from pizzabot_builtin_plugins.http_server.errors import status_of
from pizzabot_hookspecs import Logger, PizzabotError, Unavailable
from pizzabot_hookspecs.http_routes import Scope

Batch = TypeVar("Batch")

HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


class OpenStreams:
    """Every open stream of the server: at most `limit` of them, and all of them end when the server stops."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pumps: set[asyncio.Task[None]] = set()
        self._stopping = False

    def __len__(self) -> int:
        return len(self._pumps)

    def admit(self) -> None:
        """Raises `Unavailable` `too_many_event_streams` or `stopping`."""
        if self._stopping:
            raise _stopping()
        if len(self._pumps) >= self._limit:
            detail = f"{self._limit} event streams are open (limit event_streams); close one first"
            raise Unavailable("too_many_event_streams", detail)

    def add(self, pump: asyncio.Task[None]) -> None:
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)

    def end_all(self) -> None:
        """Let every client see a clean end of its stream; no new one is admitted."""
        self._stopping = True
        for pump in self._pumps:
            pump.cancel()


@dataclass(frozen=True, kw_only=True)
class EventStream(Generic[Batch]):
    """`observe` subscribes, `chunks` writes one of its batches as server-sent events.

    Headers go out when the observer is attached, then `: open`, then what `chunks` makes of each batch.

    It ends when the client goes, when the observer ends (the thread was deleted), when the server stops, or when the
    client does not take what is written within `write_seconds`. In every case the observer is closed.
    """

    observe: Callable[[], Awaitable[AsyncGenerator[Batch, None]]]
    chunks: Callable[[Batch], Iterator[bytes]]
    streams: OpenStreams
    logger: Logger
    redact: Callable[[str], str]
    write_seconds: float

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send, self.write_seconds)
        request_id = str(state(scope).get(REQUEST_ID, ""))
        try:
            self.streams.admit()
        except Unavailable as error:
            await answer.refuse(error, error.detail)
            return
        pump = asyncio.create_task(self._pump(answer, request_id))
        gone = asyncio.create_task(until_disconnected(receive))
        self.streams.add(pump)
        try:
            await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
            client_left = gone.done()
        finally:
            pump.cancel()
            gone.cancel()
            await asyncio.gather(pump, gone, return_exceptions=True)
        if not answer.stalled and not client_left:
            with contextlib.suppress(_StalledError):
                await answer.end()
        if answer.stalled:
            self.logger.warning("http.stream.stalled", request_id=request_id, seconds=self.write_seconds)
            state(scope).get(ABORT, lambda: None)()

    async def _pump(self, answer: _Answer, request_id: str) -> None:
        """Everything between the request and the end. What goes wrong is a status before the headers, a frame after."""
        try:
            batches = await self.observe()
            try:
                await answer.begin()
                async for batch in batches:
                    for chunk in self.chunks(batch):
                        await answer.write(chunk)
            finally:
                await batches.aclose()
        except PizzabotError as error:
            await answer.refuse(error, self.redact(error.detail))
        except _StalledError:
            return
        except Exception:
            self.logger.exception("http.stream.failed", request_id=request_id)
            await answer.refuse(PizzabotError("internal_error", ""), unforeseen(request_id))


class _StalledError(Exception):
    """The client does not read."""


class _Answer:
    """The response of one stream. A write that is not taken in time marks it as stalled."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self._begun = False
        self._complete = False
        self.stalled = False

    async def begin(self) -> None:
        self._begun = True
        await self._send({"type": "http.response.start", "status": 200, "headers": list(HEADERS)})
        await self.write(frames.OPENING)

    async def write(self, chunk: bytes, *, last: bool = False) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                await self._send({"type": "http.response.body", "body": chunk, "more_body": not last})
        except TimeoutError:
            self.stalled = True
            raise _StalledError from None

    async def refuse(self, error: PizzabotError, detail: str) -> None:
        if self._begun:
            await self.write(frames.error_frame(error.code, detail))
            return
        self._begun = self._complete = True
        await send_error(self._send, status_of(error), error.code, detail, fields=error.fields)

    async def end(self) -> None:
        if not self._begun:
            error = _stopping()
            await self.refuse(error, error.detail)
        elif not self._complete:
            self._complete = True
            await self.write(b"", last=True)


def _stopping() -> Unavailable:
    return Unavailable("stopping", "the server is stopping; connect again in a moment")


async def until_disconnected(receive: Receive) -> None:
    """Ends when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
