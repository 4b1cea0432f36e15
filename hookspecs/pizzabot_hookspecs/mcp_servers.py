"""Kind `mcp_servers`: definitions of MCP servers. All act; the host connects, supervises and lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pizzabot_hookspecs.offers import Offer, hookspec
from pizzabot_hookspecs.wire import JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class McpServerDefinition:
    """One entry as `.mcp.json` writes it; `${NAME}` references stay unexpanded here."""

    id: str
    entry: Mapping[str, JsonValue]


class McpServerSource(Protocol):
    async def servers(self) -> Sequence[McpServerDefinition]: ...


@hookspec
def pizzabot_mcp_servers() -> list[Offer[McpServerSource]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the sources of definitions this plugin has."""
