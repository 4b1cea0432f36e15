"""The tools that plugins bring: collected from every source, one of a name, a broken source reported and left out."""

from __future__ import annotations

import asyncio

from pizzabot.host.plugins.making import PluginMaker
from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.agent_tools import AgentTool

MAX_TOOLS = 512
"""Of all sources together: more would not fit into a model's prompt."""
SOURCE_SECONDS = 30.0


async def collect_tools(maker: PluginMaker, logger: Logger) -> tuple[AgentTool, ...]:
    """In the order of the sources' names. What a source says is checked again by the runtime (fail closed)."""
    tools: dict[str, AgentTool] = {}
    for name, source in await maker.acting("agent_tools", section_name="agent_tools"):
        try:
            async with asyncio.timeout(SOURCE_SECONDS):
                offered = await source.tools()
        except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and the rest goes on
            logger.error("tools.source_failed", source=name, cause=type(error).__name__, detail=str(error))
            continue
        for tool in offered:
            if tool.tool.name in tools or len(tools) >= MAX_TOOLS:
                reason = "its name is taken" if tool.tool.name in tools else f"there are {MAX_TOOLS} already"
                logger.error("tools.left_out", source=name, tool=tool.tool.name, reason=reason)
            else:
                tools[tool.tool.name] = tool
    return tuple(tools.values())
