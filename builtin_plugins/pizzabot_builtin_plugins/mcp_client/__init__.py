"""Plugin `mcp_client`: talks to MCP servers over stdio, streamable HTTP and SSE, one session held open for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.mcp_client.settings import McpClientSettings
    from pizzabot_hookspecs.mcp_clients import McpClient


@hookimpl
def pizzabot_mcp_clients() -> list[Offer[McpClient]]:
    from pizzabot_builtin_plugins.mcp_client.settings import McpClientSettings

    return [
        Offer(
            name="mcp",
            summary="MCP servers over stdio, streamable HTTP and SSE",
            create=_create,
            settings=McpClientSettings,
        )
    ]


def _create(context: Context, settings: McpClientSettings) -> McpClient:
    from pizzabot_builtin_plugins.mcp_client.client import Client

    return Client(settings, context.logger)
