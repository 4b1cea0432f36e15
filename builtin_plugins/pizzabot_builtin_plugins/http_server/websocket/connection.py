"""One socket from its first message to its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pizzabot_builtin_plugins.http_server.access_log import unforeseen
from pizzabot_builtin_plugins.http_server.asgi import Receive, Send
from pizzabot_builtin_plugins.http_server.bearer import BearerToken
from pizzabot_builtin_plugins.http_server.commands import idempotency_key, refusal
from pizzabot_builtin_plugins.http_server.services import Services, checked_id
from pizzabot_builtin_plugins.http_server.websocket import frames
from pizzabot_builtin_plugins.http_server.websocket.commands import Commands
from pizzabot_builtin_plugins.http_server.websocket.endings import Ending
from pizzabot_builtin_plugins.http_server.websocket.messages import (
    ClientMessage,
    Hello,
    Ping,
    SentCommand,
    Subscribe,
    Unsubscribe,
    read_message,
)
from pizzabot_builtin_plugins.http_server.websocket.outbox import GoneError, Outbox
from pizzabot_builtin_plugins.http_server.websocket.table import MAX_SUBSCRIPTIONS, MAX_THREADS, Subscriptions
from pizzabot_hookspecs import Caller, InvalidRequest, PizzabotError
from pizzabot_hookspecs.http_routes import AsgiMessage

FAREWELL_SECONDS = 1.0
"""When the server stops: for telling each subscription, then for the commands that were read, then for the close."""
LAST_COMMANDS_SECONDS = 15.0
"""For commands that were read before their client went: they are carried out, as over HTTP. A stop takes 10."""


@dataclass(frozen=True, kw_only=True)
class Visitor:
    """Who opened the socket: what its request said."""

    caller: Caller
    user_agent: str | None
    is_known: bool
    """Whether the request had the server's token, or none is needed."""


class Connection:
    """Reads the client's messages one by one; what takes longer are tasks, and none of them outlives `run`."""

    def __init__(self, services: Services, token: BearerToken, visitor: Visitor, receive: Receive, send: Send) -> None:
        self._services = services
        self._token = token
        self._visitor = visitor
        self._receive = receive
        self._ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._outbox = Outbox(send, services.settings.limits.write_seconds, self.end)
        self._subscriptions = Subscriptions(services, self._outbox, visitor.caller, visitor.user_agent)
        self._commands = Commands(self._carry_out)

    def end(self, ending: Ending) -> None:
        """The first one counts."""
        if not self._ended.done():
            self._ended.set_result(ending)

    async def run(self, close: Callable[[Ending], Any]) -> Ending:
        """Until someone ends it. `close` is awaited when nothing more will be written."""
        served = asyncio.create_task(self._serve())
        served.add_done_callback(self._served)
        try:
            ending = await self._ended
            await _cancelled(served)
            if ending is Ending.STOPPING:
                ending = await self._say_farewell()
            self._outbox.shut()
            await self._subscriptions.cancel_all()
            await close(ending)
            await self._commands.finish(LAST_COMMANDS_SECONDS)
        finally:
            self._outbox.shut()
            await _cancelled(served)
            await self._subscriptions.cancel_all()
            await self._commands.finish(0)
        return ending

    def _served(self, task: asyncio.Task[Ending]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if error is None:
            self.end(task.result())
        elif isinstance(error, GoneError):
            self.end(Ending.LEFT)
        else:
            self._services.logger.error("http.socket.failed", exc_info=error, request_id=self._request_id)
            self.end(Ending.FAILED)

    async def _serve(self) -> Ending:
        refused = await self._greet()
        if refused is not None:
            return refused
        beats = asyncio.create_task(self._keep_alive())
        try:
            return await self._converse()
        finally:
            await _cancelled(beats)

    async def _greet(self) -> Ending | None:
        """The first message. Nothing is answered that comes instead of a hello."""
        limits = self._services.settings.limits
        frame = await self._next(limits.hello_seconds)
        if not isinstance(frame, Mapping):
            return frame
        try:
            hello = await read_message(frame)
        except InvalidRequest:
            return Ending.NO_HELLO
        if not isinstance(hello, Hello):
            return Ending.NO_HELLO
        if not (self._visitor.is_known or self._token.is_right(hello.token)):
            return Ending.UNAUTHORIZED
        facts = {
            "heartbeatSeconds": self._services.settings.heartbeat_seconds,
            "idleSeconds": limits.socket_idle_seconds,
            "maxThreads": MAX_THREADS,
            "maxSubscriptions": MAX_SUBSCRIPTIONS,
        }
        await self._outbox.write(frames.ready(self._services.host.identity(), **facts))
        return None

    async def _converse(self) -> Ending:
        seconds = self._services.settings.limits.socket_idle_seconds
        while True:
            frame = await self._next(seconds)
            if not isinstance(frame, Mapping):
                return frame
            try:
                await self._take(await read_message(frame))
            except InvalidRequest as error:
                await self._outbox.write(frames.error(error.code, error.detail))

    async def _next(self, seconds: float) -> AsgiMessage | Ending:
        try:
            async with asyncio.timeout(seconds):
                frame = await self._receive()
        except TimeoutError:
            return Ending.SILENT
        return frame if frame["type"] == "websocket.receive" else Ending.LEFT

    async def _take(self, message: ClientMessage) -> None:
        if isinstance(message, SentCommand):
            await self._commands.take(message)
        elif isinstance(message, Subscribe):
            await self._subscriptions.begin(message)
        elif isinstance(message, Unsubscribe):
            await self._subscriptions.end(message.sub)
        elif isinstance(message, Ping):
            await self._outbox.write(frames.PONG)
        elif isinstance(message, Hello):
            raise InvalidRequest("invalid_argument", "`hello` is only the first message")

    async def _carry_out(self, command: SentCommand) -> None:
        envelope = await self._envelope(command)
        try:
            await self._outbox.write(frames.reply(command.thread, envelope))
        except GoneError:
            return

    async def _envelope(self, command: SentCommand) -> Mapping[str, Any]:
        """The answer that the command has over HTTP."""
        try:
            checked_id(command.thread, "thread")
            key = idempotency_key(command.key)
            reply = await self._services.host.runs.command(
                command.thread, command.body, caller=self._visitor.caller, idempotency_key=key
            )
        except PizzabotError as error:
            return refusal(command.body, error.code, self._services.redact(error.detail))
        except Exception:
            facts = {"request_id": self._request_id, "thread": command.thread}
            self._services.logger.exception("http.socket.command_failed", **facts)
            return refusal(command.body, "internal_error", unforeseen(self._request_id))
        return reply.envelope

    async def _keep_alive(self) -> None:
        silence = self._services.settings.heartbeat_seconds
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._outbox.spoke_at + silence - loop.time())
            if loop.time() - self._outbox.spoke_at >= silence:
                try:
                    await self._outbox.write(frames.PING)
                except GoneError:
                    return

    async def _say_farewell(self) -> Ending:
        try:
            async with asyncio.timeout(FAREWELL_SECONDS):
                await self._subscriptions.end_all("stopping", "the server is stopping; connect again in a moment")
        except TimeoutError:
            return Ending.STALLED
        except GoneError:
            return Ending.LEFT
        await self._commands.finish(FAREWELL_SECONDS)
        return Ending.STOPPING

    @property
    def _request_id(self) -> str:
        return self._visitor.caller.request_id or ""


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
