"""Plugin `bundles`: skills and MCP servers out of folders in the Claude Code plugin format, which need no Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.mcp_servers import McpServerSource
    from pizzabot_hookspecs.skill_sources import SkillSource


@hookimpl
def pizzabot_skill_sources() -> list[Offer[SkillSource]]:
    return [Offer(name="bundles", summary="skills of plugin bundles", create=_create_skills)]


@hookimpl
def pizzabot_mcp_servers() -> list[Offer[McpServerSource]]:
    return [Offer(name="bundles", summary="MCP servers of plugin bundles", create=_create_servers)]


def _create_skills(context: Context, _settings: Any) -> SkillSource:
    from pizzabot_builtin_plugins.bundles.source import create_skills

    return create_skills(context)


def _create_servers(context: Context, _settings: Any) -> McpServerSource:
    from pizzabot_builtin_plugins.bundles.source import create_servers

    return create_servers(context)
