# ruff: noqa: TID253 - imported when the first server is connected
"""`Session`: the MCP package's, with results as they came, calls that tell the server of their cancel, and `_meta`.

The package checks results by types that know five kinds of content, lists all tools again at the first call, and
raises for what its version does not know. Here that is read by `content.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

import anyio
from mcp import ClientSession, McpError, types
from pydantic import BaseModel, ConfigDict, Field

from pizzabot_builtin_plugins.mcp_client.link import Link
from pizzabot_builtin_plugins.mcp_client.stdio import Incoming, Outgoing

_CANCEL_SECONDS = 1.0
"""How long telling a server of a cancel may take; one that does not read is not waited for."""


class RawTools(BaseModel):
    """An answer to `tools/list`; each tool is read by itself, so that a bad one hides no other."""

    model_config = ConfigDict(extra="ignore")

    tools: list[Any] = Field(default_factory=list)
    nextCursor: str | None = None  # noqa: N815 - the protocol's


class RawResult(BaseModel):
    """An answer to `tools/call`."""

    model_config = ConfigDict(extra="ignore")

    content: list[Any] = Field(default_factory=list)
    structuredContent: Any = None  # noqa: N815 - the protocol's
    isError: bool = False  # noqa: N815


class Session(ClientSession):
    def __init__(self, incoming: Incoming, outgoing: Outgoing, link: Link) -> None:
        super().__init__(
            incoming,
            outgoing,
            client_info=types.Implementation(name="pizzabot", version="1"),
            message_handler=self._heard,
        )
        self._link = link
        self._tellings: set[asyncio.Task[None]] = set()

    async def _receive_loop(self) -> None:
        await super()._receive_loop()
        self._link.end("closed the connection")  # a loop that is cancelled was ended by something that knows why

    async def _heard(self, message: object) -> None:
        """What no request waits for: a notification, a request of the server's, something that cannot be read."""
        if isinstance(message, types.ServerNotification) and isinstance(
            message.root, types.ToolListChangedNotification
        ):
            self._link.tools_changed.set()
        await anyio.lowlevel.checkpoint()

    async def tools_page(self, cursor: str | None) -> RawTools:
        params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
        request = types.ClientRequest(types.ListToolsRequest(params=params))
        return await self.send_request(request, RawTools)

    async def call(self, name: str, arguments: Mapping[str, Any], meta: Mapping[str, Any] | None) -> RawResult:
        """A call; its cancel is told to the server. Raises `McpError` where the server refuses it."""
        told = types.RequestParams.Meta(**meta) if meta else None
        params = types.CallToolRequestParams(name=name, arguments=dict(arguments), _meta=told)
        number = self._request_id
        try:
            return await self.send_request(types.ClientRequest(types.CallToolRequest(params=params)), RawResult)
        except asyncio.CancelledError:
            self._tell_cancel(number)
            raise

    async def ping(self) -> None:
        """Any answer will do: some servers do not know the request."""
        with contextlib.suppress(McpError):
            await self.send_ping()

    def _tell_cancel(self, number: int) -> None:
        task = asyncio.create_task(self._cancelled(number))
        self._tellings.add(task)
        task.add_done_callback(self._tellings.discard)

    async def _cancelled(self, number: int) -> None:
        params = types.CancelledNotificationParams(requestId=number, reason="stopped")
        with contextlib.suppress(TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with asyncio.timeout(_CANCEL_SECONDS):
                await self.send_notification(types.ClientNotification(types.CancelledNotification(params=params)))
