"""Kind `mcp_clients`: how MCP servers are talked to. One acts, chosen by `[mcp] use`; the built-in is `mcp`.

The host decides when a server is connected, watched, tried again and given up; a client connects one server at a time
and holds that session open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pizzabot_hookspecs.offers import Offer, hookspec
from pizzabot_hookspecs.wire import JsonValue

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


CALL_META: ContextVar[Mapping[str, JsonValue] | None] = ContextVar("pizzabot_mcp_call_meta", default=None)
"""What goes with the calls of MCP tools that are made in this context, as the protocol's `_meta`: a middleware sets it
around a tool call."""


class McpTransport(StrEnum):
    STDIO = "stdio"
    HTTP = "http"
    SSE = "sse"


@dataclass(frozen=True, kw_only=True)
class McpEndpoint:
    """A server to connect, checked, with its references resolved: do not log it.

    `command`, `args`, `env` (beside the few variables that every program gets) and `cwd` of stdio; `url` and `headers`
    of the others.
    """

    id: str
    transport: McpTransport
    command: str = ""
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class McpTool:
    """`name` is the server's own; `tool` is what an agent calls, under the same name, with the server's schema.

    `reads_only` and `idempotent` are the server's hints: they count where the person trusts the server.
    """

    name: str
    description: str
    tool: BaseTool
    reads_only: bool = False
    idempotent: bool = False


class McpConnection(Protocol):
    """A session that is open. Calls through its tools share it; a cancelled call disturbs no other.

    May also be a `TellsToolChanges`.
    """

    @property
    def tools(self) -> Sequence[McpTool]: ...

    def stderr(self) -> Sequence[str]:
        """The last lines that a stdio server wrote to its stderr, at most 50; not redacted."""
        ...

    async def closed(self) -> str:
        """Waits until the session is over without `close`; why, as far as anybody knows."""
        ...

    async def ping(self) -> None:
        """Raises `Unavailable` `mcp_failed` where the server does not answer; the caller has a deadline."""
        ...

    async def close(self) -> None:
        """End the session and, for stdio, the server's whole process group. Safe to call twice, and in any task."""
        ...


@runtime_checkable
class TellsToolChanges(Protocol):
    """A capability of an `McpConnection`: follow a server that says its tools are others now."""

    async def tools_changed(self) -> None:
        """Waits until `tools` are others. A tool that is the same as before is the same object."""
        ...


class McpClient(Protocol):
    async def connect(self, endpoint: McpEndpoint, /, *, max_tools: int) -> McpConnection:
        """Handshake and list the tools; nothing is left behind when it raises or is cancelled.

        Raises `Unavailable` `mcp_failed` with the cause, `mcp_auth_needed` for a server that wants OAuth,
        `mcp_too_many_tools`. `fields["stderr"]` has what a stdio server said last, not redacted.
        """
        ...


@hookspec
def pizzabot_mcp_clients() -> list[Offer[McpClient]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the clients this plugin has; `[mcp] use` picks one by name."""
