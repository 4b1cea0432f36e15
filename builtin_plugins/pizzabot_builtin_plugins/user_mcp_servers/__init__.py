"""Plugin `user_mcp_servers`: the person's own MCP servers, in `.mcp.json` of the data root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.user_mcp_servers.source import UserServerSettings
    from pizzabot_hookspecs.mcp_servers import McpServerSource


@hookimpl
def pizzabot_mcp_servers() -> list[Offer[McpServerSource]]:
    from pizzabot_builtin_plugins.user_mcp_servers.source import UserServerSettings

    return [
        Offer(
            name="user",
            summary="the person's own MCP servers, in .mcp.json",
            create=_create,
            settings=UserServerSettings,
        )
    ]


def _create(context: Context, settings: UserServerSettings) -> McpServerSource:
    from pizzabot_builtin_plugins.user_mcp_servers.source import UserServers

    return UserServers(settings.path or context.data_root / ".mcp.json")
