"""One client: its lines are read and answered, several at a time, until it goes or the server stops."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from pizzabot_hookspecs import Caller, InvalidRequest, Logger, NotPermitted, PizzabotError, TooLarge
from pizzabot_hookspecs.host import Host
from pizzabot_lines import requests
from pizzabot_lines.lines import line, refusal
from pizzabot_lines.operations import Operations
from pizzabot_lines.outbox import Outbox
from pizzabot_lines.requests import Request, RequestId
from pizzabot_lines.settings import Limits
from pizzabot_lines.subscriptions import Subscriptions

LEAVING_SECONDS = 1.0
"""For answers that are under way when a client has said its last line, and for lines that wait when we stop."""

PARSE_IN_THREAD_BYTES = 64 * 1024

_numbers = count(1)


@dataclass(frozen=True, kw_only=True)
class Services:
    """What connections share. `token` is None where the socket's permissions decide who may connect."""

    host: Host
    limits: Limits
    logger: Logger
    clock: Callable[[], float]
    redact: Callable[[str], str]
    token: str | None


class Connection:
    def __init__(self, services: Services, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._services = services
        self._limits = services.limits
        self._reader = reader
        self._writer = writer
        self._number = next(_numbers)
        self._outbox = Outbox(writer, limit=self._limits.waiting_bytes)
        self._operations = Operations(services.host)
        self._subscriptions = Subscriptions(
            services.host, self._outbox, self._limits, clock=services.clock, logger=services.logger
        )
        self._room = asyncio.Semaphore(self._limits.requests)
        self._answering: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Until the client has gone. Cancel it to end the connection; everything it holds is let go then, too."""
        try:
            await self._greet()
            await self._read_requests()
        except PizzabotError as error:
            await self._outbox.say(self._refusal(None, error))
        except (ConnectionError, TimeoutError):
            pass  # gone, or never said hello
        finally:
            await self._leave()

    async def _greet(self) -> None:
        """Over TCP the first line is `{"id": 1, "op": "hello", "token": "…"}`, and nothing is told before it came."""
        if self._services.token is None:
            return
        async with asyncio.timeout(self._limits.hello_seconds):
            first = await self._next_line()
        request = requests.parse(first or b"")
        given = request.params.get("token")
        expected = self._services.token.encode()
        if request.op != "hello" or not hmac.compare_digest(str(given).encode("utf-8", "replace"), expected):
            raise NotPermitted("unauthorized", 'the first line has to be {"id": 1, "op": "hello", "token": …}')
        await self._outbox.say(line(request.id, result=dict(self._services.host.identity())))

    async def _read_requests(self) -> None:
        while (text := await self._next_line()) is not None:
            await self._room.acquire()
            task = asyncio.create_task(self._answer(text), name="lines request")
            self._answering.add(task)
            task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._answering.discard(task)
        self._room.release()

    async def _next_line(self) -> bytes | None:
        """None when the client has said its last. Raises `TooLarge` `line_too_long`; nothing can be read after that."""
        try:
            return await self._reader.readuntil(b"\n")
        except asyncio.IncompleteReadError as rest:
            return rest.partial if rest.partial.strip() else None
        except asyncio.LimitOverrunError as error:
            limit = self._limits.line_bytes
            raise TooLarge("line_too_long", f"a line has more than {limit} bytes (limit line_bytes)") from error

    async def _answer(self, text: bytes) -> None:
        request_id: RequestId | None = None
        try:
            request = await _parsed(text)
            request_id = request.id
            answer = await self._perform(request)
        except PizzabotError as error:
            answer = self._refusal(request_id, error)
        except Exception:
            self._services.logger.exception("lines.request_failed", connection=self._number)
            answer = self._refusal(request_id, PizzabotError("internal_error", "it failed; the server's log says why"))
        if answer is not None and not await self._outbox.put(answer, seconds=self._limits.write_seconds):
            self._writer.transport.abort()  # a client that does not read its answers; a close would wait for it

    def _refusal(self, request_id: RequestId | None, error: PizzabotError) -> bytes:
        return refusal(request_id, error, self._services.redact)

    async def _perform(self, request: Request) -> bytes | None:
        """The line of the answer; None when it was said already."""
        caller = Caller(request_id=f"lines-{self._number}-{request.id}")
        if request.op in ("events", "activity"):
            await self._subscriptions.add(request, caller, line(request.id, result={"subscribed": True}))
            return None
        if request.op == "unsubscribe":
            await self._subscriptions.remove(_subscription(request))
            return line(request.id, result={})
        if request.op == "hello":
            return line(request.id, result=dict(self._services.host.identity()))
        result = await self._operations.perform(request, caller)
        # The state of a long conversation is large: it is written beside the event loop.
        return await asyncio.to_thread(line, request.id, result=result)

    async def _leave(self) -> None:
        """Let everything go. It may be cancelled half-way: the server stops while a client is leaving."""
        try:
            if self._answering:
                await asyncio.wait(self._answering, timeout=LEAVING_SECONDS)
            await self._subscriptions.close()
            await self._outbox.close(seconds=LEAVING_SECONDS)
            self._writer.close()
            async with asyncio.timeout(LEAVING_SECONDS):
                await self._writer.wait_closed()
        except (ConnectionError, TimeoutError):
            pass
        finally:
            for task in self._answering:
                task.cancel()
            self._subscriptions.cancel()
            self._outbox.cancel()
            self._writer.transport.abort()  # does nothing when it was closed in order


async def _parsed(text: bytes) -> Request:
    if len(text) < PARSE_IN_THREAD_BYTES:
        return requests.parse(text)
    return await asyncio.to_thread(requests.parse, text)


def _subscription(request: Request) -> RequestId:
    wanted = requests.id_of({"id": request.params.get("subscription")})
    if wanted is None:
        raise InvalidRequest("invalid_argument", "subscription must be the id of the request that made it")
    return wanted
