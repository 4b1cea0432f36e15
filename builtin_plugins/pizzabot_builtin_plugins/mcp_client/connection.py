# ruff: noqa: TID253 - imported when the first server is connected
"""`Connection`: one session, held open by a task of its own from the handshake to its end.

The package's transports are scopes that have to be left by the task that entered them, so nobody else may.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlsplit

import httpx
from mcp import McpError

from pizzabot_builtin_plugins.mcp_client.content import Answer, read_result
from pizzabot_builtin_plugins.mcp_client.link import Link
from pizzabot_builtin_plugins.mcp_client.remote import http_streams, sse_streams
from pizzabot_builtin_plugins.mcp_client.session import RawResult, Session
from pizzabot_builtin_plugins.mcp_client.settings import MAX_PAGES, McpClientSettings
from pizzabot_builtin_plugins.mcp_client.stdio import Incoming, Outgoing, stdio_streams
from pizzabot_builtin_plugins.mcp_client.tools import make_tool
from pizzabot_hookspecs import Logger, PizzabotError, Unavailable
from pizzabot_hookspecs.mcp_clients import CALL_META, McpEndpoint, McpTool, McpTransport

CLOSE_SECONDS = 8.0
"""How long an owner may take to end: TERM, patience and KILL of a child are within it. Then it is cancelled."""
PROBE_SECONDS = 5.0
RELIST_SECONDS = 20.0
"""For listing the tools again; without an answer the old ones stay."""
RELIST_PAUSE_SECONDS = 1.0
"""Between two times: a server may say it all the time."""


class Connection:
    """Implements `McpConnection`. Made open by `opened`."""

    def __init__(self, endpoint: McpEndpoint, settings: McpClientSettings, logger: Logger) -> None:
        self._endpoint = endpoint
        self._settings = settings
        self._logger = logger
        self._link = Link(endpoint.id)
        self._link.suspect = self._probe
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ready.add_done_callback(lambda ready: ready.exception())  # nobody may be waiting any more
        self._session: Session | None = None
        self._tools: tuple[McpTool, ...] = ()
        self._made: dict[str, tuple[object, McpTool]] = {}
        self._others = asyncio.Event()
        self._probing: asyncio.Task[None] | None = None
        self._owner: asyncio.Task[None] | None = None

    @classmethod
    async def opened(
        cls, endpoint: McpEndpoint, settings: McpClientSettings, logger: Logger, *, max_tools: int
    ) -> Connection:
        made = cls(endpoint, settings, logger)
        made._owner = asyncio.create_task(made._own(max_tools), name=f"mcp {endpoint.id}")
        try:
            await asyncio.shield(made._ready)
        except BaseException:
            await made.close()
            raise
        return made

    @property
    def tools(self) -> Sequence[McpTool]:
        return self._tools

    def stderr(self) -> Sequence[str]:
        return self._link.stderr()

    async def closed(self) -> str:
        return (await asyncio.shield(self._link.ended)).detail

    async def tools_changed(self) -> None:
        await self._others.wait()
        self._others.clear()

    async def ping(self) -> None:
        await self._link.unless_ended(self._opened_session().ping())

    async def close(self) -> None:
        self._link.closing = self._link.closing or not self._link.ended.done()
        self._link.end("was closed")
        if self._probing is not None:
            self._probing.cancel()
        if self._owner is not None and not self._owner.done():
            _, slow = await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)
            for task in slow:
                task.cancel()
                await asyncio.wait({task}, timeout=CLOSE_SECONDS)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> tuple[Answer, bool]:
        """Raises `Unavailable` `mcp_failed` where the session is over or the server refuses the call."""
        session = self._opened_session()
        try:
            result: RawResult = await self._link.unless_ended(session.call(name, arguments, CALL_META.get()))
        except McpError as error:
            if self._link.ended.done():
                raise self._link.over() from error
            raise self._link.failure(f"refused the call of {name}: {error.error.message}") from error
        except PizzabotError:
            raise
        except Exception as error:
            if self._link.ended.done():
                raise self._link.over() from error
            raise self._link.failure(f"answered the call of {name} with {_told(error)}") from error
        return read_result(result, limit=self._settings.output_characters), result.isError

    def _opened_session(self) -> Session:
        if self._link.ended.done():
            raise self._link.over()
        if self._session is None:
            raise self._link.failure("is not connected")
        return self._session

    def _probe(self) -> None:
        """A stream broke: ask whether anybody is there, so that whoever waits for an answer is told."""
        if self._session is not None and (self._probing is None or self._probing.done()):
            self._probing = asyncio.create_task(self._look(), name=f"mcp {self._endpoint.id} probe")

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                await self.ping()
        except TimeoutError:
            self._link.end("does not answer any more")
        except PizzabotError:
            return
        except Exception as error:  # noqa: BLE001 - whatever a transport raises, the server is gone
            self._link.end(f"broke the connection: {_told(error)}")

    async def _own(self, max_tools: int) -> None:
        """All of a connection's life. Its failure goes to whoever opens it, later to whoever waits in `closed`."""
        try:
            async with self._transport() as (incoming, outgoing), Session(incoming, outgoing, self._link) as session:
                await self._live(session, max_tools)
        except asyncio.CancelledError:
            self._failed(self._link.failure("was cancelled"))
        except BaseException as error:  # noqa: BLE001 - groups of anyio's hold what went wrong
            self._failed(self._cause(error))
        finally:
            self._link.end("ended")
            if not self._ready.done():
                self._ready.set_exception(self._link.over())

    async def _live(self, session: Session, max_tools: int) -> None:
        try:
            await self._shake_hands(session)
            listed = await self._link.unless_ended(self._list(session, max_tools))
            self._tools = await asyncio.to_thread(self._make_tools, listed)
        except Exception as error:
            self._failed(self._cause(error))  # before leaving the session ends it
            raise
        self._session, self._link.listed = session, True
        self._ready.set_result(None)
        await self._follow(session, max_tools)

    async def _follow(self, session: Session, max_tools: int) -> None:
        """To the end: list the tools again when the server says so, now and then at most."""
        while not self._link.ended.done():
            told = asyncio.ensure_future(self._link.tools_changed.wait())
            both: set[asyncio.Future[Any]] = {told, self._link.ended}
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            told.cancel()
            if not self._link.ended.done():
                self._link.tools_changed.clear()
                await self._list_again(session, max_tools)
                await asyncio.wait({self._link.ended}, timeout=RELIST_PAUSE_SECONDS)

    async def _list_again(self, session: Session, max_tools: int) -> None:
        try:
            async with asyncio.timeout(RELIST_SECONDS):
                listed = await self._link.unless_ended(self._list(session, max_tools))
        except (TimeoutError, McpError, ValueError) as error:
            self._logger.warning("mcp.tools_not_listed", server=self._endpoint.id, cause=type(error).__name__)
            return
        before = self._tools
        self._tools = await asyncio.to_thread(self._make_tools, listed)
        if self._tools != before:
            self._others.set()

    async def _shake_hands(self, session: Session) -> None:
        try:
            await self._link.unless_ended(session.initialize())
        except McpError as error:
            if self._link.ended.done():
                raise self._link.over() from error
            raise self._link.failure(f"refused the handshake: {error.error.message}") from error

    async def _list(self, session: Session, max_tools: int) -> list[Any]:
        tools: list[Any] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await session.tools_page(cursor)
            tools += page.tools
            if len(tools) > max_tools:
                raise self._link.failure(
                    f"has more than {max_tools:,} tools ([mcp] max_tools): no model can choose among them",
                    code="mcp_too_many_tools",
                )
            if not page.nextCursor or page.nextCursor == cursor:
                return tools
            cursor = page.nextCursor
        raise self._link.failure(f"lists its tools on more than {MAX_PAGES} pages")

    def _make_tools(self, listed: list[Any]) -> tuple[McpTool, ...]:
        made: dict[str, tuple[object, McpTool]] = {}
        left_out = 0
        for raw in listed:
            tool = self._kept(raw) or make_tool(raw, self.call)
            if tool is None or tool.name in made:
                left_out += 1
            else:
                made[tool.name] = (raw, tool)
        self._made = made
        if left_out:
            self._logger.warning("mcp.tools_left_out", server=self._endpoint.id, count=left_out)
        return tuple(tool for _, tool in made.values())

    def _kept(self, raw: object) -> McpTool | None:
        """The tool that was made of the same entry before."""
        name = raw.get("name") if isinstance(raw, dict) else None
        known = self._made.get(name) if isinstance(name, str) else None
        return known[1] if known is not None and known[0] == raw else None

    def _transport(self) -> AbstractAsyncContextManager[tuple[Incoming, Outgoing]]:
        if self._endpoint.transport is McpTransport.STDIO:
            return stdio_streams(self._endpoint, self._link, inherit=self._settings.inherit)
        if self._endpoint.transport is McpTransport.SSE:
            return sse_streams(self._endpoint, self._link)
        return http_streams(self._endpoint, self._link, read_seconds=self._settings.read_seconds)

    def _failed(self, cause: Unavailable) -> None:
        if not self._link.ended.done():
            self._link.ended.set_result(cause)

    def _cause(self, error: BaseException) -> Unavailable:
        found = _innermost(error)
        if isinstance(found, Unavailable):
            return found
        if isinstance(found, httpx.ConnectError | httpx.ConnectTimeout):
            return self._link.failure(f"cannot be reached at {_address(self._endpoint.url)}: {_told(found)}")
        return self._link.failure(f"failed: {_told(found)}")


def _innermost(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = next((inner for inner in error.exceptions if isinstance(inner, PizzabotError)), error.exceptions[0])
    return error


def _told(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        if text := " ".join(str(error).split()):
            return f"{type(error).__name__}: {text[:300]}"
    return type(error).__name__


def _address(url: str) -> str:
    """Without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
