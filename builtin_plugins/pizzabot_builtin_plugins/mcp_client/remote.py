# ruff: noqa: TID253 - imported when the first server is connected
"""Streamable HTTP and SSE: the MCP package's transports on an HTTP client that watches statuses and sizes.

The package notices a lost stream in the middle of a call only when something else is sent, and reads a body of any
size. The client here ends the session on a refusal, bounds what is read, and has a broken stream looked after.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
import orjson
from mcp.client import streamable_http
from mcp.client.sse import sse_client
from mcp.types import JSONRPCMessage

from pizzabot_builtin_plugins.mcp_client.link import Link
from pizzabot_builtin_plugins.mcp_client.stdio import Incoming, Outgoing
from pizzabot_hookspecs.mcp_clients import McpEndpoint

_CONNECT_SECONDS = 10.0
_OTHER_SECONDS = 30.0
_GOODBYE_SECONDS = 2.0
_NO_SESSION = 404
_UNAUTHORIZED = 401


class _QuickMessage(JSONRPCMessage):
    """The package's way through pydantic takes 60 ms for 5,000 tools, on the loop; this takes 5."""

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **_: Any) -> JSONRPCMessage:  # type: ignore[override]
        return JSONRPCMessage.model_validate(orjson.loads(json_data))


setattr(streamable_http, "JSONRPCMessage", _QuickMessage)  # noqa: B010 - a name that it does not offer to others


@asynccontextmanager
async def http_streams(
    endpoint: McpEndpoint, link: Link, *, read_seconds: float
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    async with (
        _client(endpoint, link, read_seconds) as client,
        streamable_http.streamable_http_client(endpoint.url, http_client=client, terminate_on_close=False) as (
            incoming,
            outgoing,
            of,
        ),
    ):
        try:
            yield incoming, outgoing
        finally:
            for stream in (incoming, outgoing):
                stream.close()
            if (session_id := of()) is not None and link.closing:
                with contextlib.suppress(httpx.HTTPError):
                    await client.delete(endpoint.url, headers={"mcp-session-id": session_id}, timeout=_GOODBYE_SECONDS)


@asynccontextmanager
async def sse_streams(endpoint: McpEndpoint, link: Link) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    def factory(**_: Any) -> httpx.AsyncClient:
        return _client(endpoint, link, None)

    async with sse_client(endpoint.url, httpx_client_factory=cast("Any", factory)) as streams:
        yield streams


def _client(endpoint: McpEndpoint, link: Link, read_seconds: float | None) -> httpx.AsyncClient:
    async def look(response: httpx.Response) -> None:
        _look_at(response, endpoint, link)

    return httpx.AsyncClient(
        headers={**endpoint.headers, "accept-encoding": "identity"},
        timeout=httpx.Timeout(_OTHER_SECONDS, connect=_CONNECT_SECONDS, read=read_seconds),
        event_hooks={"response": [look]},
    )


def _look_at(response: httpx.Response, endpoint: McpEndpoint, link: Link) -> None:
    posted = response.request.method == "POST"
    status = response.status_code
    if status == _UNAUTHORIZED and response.request.method != "DELETE":
        link.end(_wants_a_sign_in(endpoint), code="mcp_auth_needed")
    elif posted and status == _NO_SESSION and link.listed:
        link.end("no longer knows this session: it was restarted")
    elif status >= 400 and (posted or endpoint.transport == "sse"):
        link.end(f"answered HTTP {status} {response.reason_phrase}".rstrip())
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        link.end("sends compressed bodies, which were not asked for")
        raise httpx.DecodingError("a compressed body", request=response.request)
    events = response.headers.get("content-type", "").lower().startswith("text/event-stream")
    response.stream = _Watched(cast("httpx.AsyncByteStream", response.stream), link, events=events)


def _wants_a_sign_in(endpoint: McpEndpoint) -> str:
    if any(name.lower() == "authorization" for name in endpoint.headers):
        return "refuses what its `headers` give as Authorization (HTTP 401): check that token"
    return (
        "wants a sign-in (HTTP 401). Signing in with OAuth is not supported yet: give it a token in its `headers`,"
        ' "Authorization": "Bearer ${NAME}"'
    )


class _Watched(httpx.AsyncByteStream):
    """A body that is bounded: as a whole, or each event of a stream."""

    def __init__(self, inner: httpx.AsyncByteStream, link: Link, *, events: bool) -> None:
        self._inner = inner
        self._link = link
        self._events = events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for chunk in self._inner:
                size = len(chunk) - chunk.rfind(b"\n") - 1 if self._events and b"\n" in chunk else size + len(chunk)
                if size > self._link.most_bytes:
                    self._link.too_long()
                    raise httpx.ReadError("a message that is too long")
                yield chunk
        except httpx.TransportError:
            self._link.suspect()
            raise
        if self._events:  # whoever got its answer has closed the stream before its end
            self._link.suspect()

    async def aclose(self) -> None:
        await self._inner.aclose()
