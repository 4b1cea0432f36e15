"""Kind `mcp_servers`: definitions of MCP servers. All act; the host connects, supervises and lists them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pizzabot_hookspecs.offers import Offer, hookspec
from pizzabot_hookspecs.skill_sources import Origin
from pizzabot_hookspecs.wire import JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class McpServerDefinition:
    """One entry as `.mcp.json` writes it; `${NAME}` references stay unexpanded here.

    `root` is the folder that a relative `command` and `cwd` belong to and that `cwd` may not leave; `plugin` names the
    plugin that brings it. `fault` says why the entry cannot be read: it is listed with it and never connected.
    """

    id: str
    entry: Mapping[str, JsonValue]
    origin: Origin = Origin.PLUGIN
    plugin: str | None = None
    root: Path | None = None
    fault: str | None = None


class McpServerSource(Protocol):
    """May also be a `WatchesMcpServers` and a `KeepsMcpServers`."""

    async def servers(self) -> Sequence[McpServerDefinition]: ...


@runtime_checkable
class WatchesMcpServers(Protocol):
    """A capability of an `McpServerSource`: tell when what `servers` returns may be another answer."""

    def changes(self) -> AsyncIterator[None]:
        """An item for each burst of changes, soon after it; goes on until it is closed."""
        ...


@runtime_checkable
class KeepsMcpServers(Protocol):
    """A capability of an `McpServerSource`: keep the person's own servers. The host has checked id and entry."""

    async def put(self, server_id: str, entry: Mapping[str, JsonValue], /) -> None:
        """The entry is this afterwards; others, the faulty ones too, stay as they are written."""
        ...

    async def remove(self, server_id: str, /) -> bool:
        """Whether there was one."""
        ...


@hookspec
def pizzabot_mcp_servers() -> list[Offer[McpServerSource]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the sources of definitions this plugin has."""
