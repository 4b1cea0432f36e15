"""`Client`: the offer `mcp`. The packages that talk to servers are loaded, in a thread, with the first one."""

from __future__ import annotations

import asyncio
import logging

from pizzabot_builtin_plugins.mcp_client.settings import McpClientSettings
from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.mcp_clients import McpConnection, McpEndpoint


class Client:
    """Implements `McpClient`."""

    def __init__(self, settings: McpClientSettings, logger: Logger) -> None:
        self._settings = settings
        self._logger = logger

    async def connect(self, endpoint: McpEndpoint, /, *, max_tools: int) -> McpConnection:
        await asyncio.to_thread(_load)
        from pizzabot_builtin_plugins.mcp_client.connection import Connection

        return await Connection.opened(endpoint, self._settings, self._logger, max_tools=max_tools)


def _load() -> None:
    """Import what takes 0.3 s off the loop; the import lock makes it once."""
    # `mcp` begins `uvicorn` at its far end (`uvicorn.main`): while the listener's thread is loading it, one would fail.
    import uvicorn  # noqa: F401

    import pizzabot_builtin_plugins.mcp_client.connection  # noqa: F401

    _hush()


def _hush() -> None:
    """The package logs messages that it cannot read, results among them (spec/09 §2.8); what matters we are told."""
    for name in ("mcp", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_the_package)  # once: the same function is not added again


def _is_not_of_the_package(record: logging.LogRecord) -> bool:
    """Its sessions write to the root logger itself."""
    return record.module != "session" or "mcp" not in record.pathname.replace("\\", "/").split("/")
