"""`make_mcp`: board and use cases of a host, out of its ground, its plugins and its storage."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence

from pizzabot.host.ground import Ground
from pizzabot.host.mcp.board import BoardSettings, McpBoard
from pizzabot.host.mcp.enablement import ServerEnablement
from pizzabot.host.mcp.retiring import Retiring
from pizzabot.host.mcp.slots import Slots
from pizzabot.host.mcp.supervisor import Services
from pizzabot.host.plugins.making import PluginMaker
from pizzabot_hookspecs.mcp_clients import McpClient
from pizzabot_hookspecs.mcp_servers import McpServerSource
from pizzabot_hookspecs.storage_backends import SettingStorage
from pizzabot_hookspecs.support.redaction import Redactor


def make_board(
    ground: Ground, maker: PluginMaker, storage: SettingStorage, *, runs_ended: Callable[[], Awaitable[None]]
) -> McpBoard:
    """Nothing is made or asked before `start`: not even a client, where no server is defined."""
    section, logger = ground.settings.mcp, ground.logger("mcp")
    written_out = Redactor()
    making = asyncio.Lock()
    made: list[McpClient] = []

    async def client() -> McpClient:
        async with making:
            if not made:
                made.append(await maker.chosen("mcp_clients", section.use, section_name="mcp"))
        return made[0]

    def redact(text: str) -> str:
        return written_out.text(ground.redact(text))

    def conceal(text: str) -> str:
        return written_out.values(ground.conceal(text))

    async def sources() -> Sequence[tuple[str, McpServerSource]]:
        return await maker.acting("mcp_servers", section_name="mcp_servers")

    services = Services(
        client=client,
        slots=Slots(section.connect_at_once),
        retiring=Retiring(runs_ended, logger),
        connect_seconds=section.connect_seconds,
        call_seconds=section.call_seconds,
        ping_seconds=section.ping_seconds,
        max_tools=section.max_tools,
        redact=redact,
        conceal=conceal,
        logger=logger,
        clock=ground.clock,
    )
    return McpBoard(
        services=services,
        sources=sources,
        secrets=ground.secrets,
        enablement=ServerEnablement(storage),
        settings=BoardSettings(trusted=section.trusted, path=section.path, environ=os.environ, hide=written_out.add),
        logger=logger,
    )
