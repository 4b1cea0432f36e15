"""`mcp_kit` beside the tests, and a client."""

import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # `mcp_kit`

from mcp_kit import Log

from pizzabot_builtin_plugins.mcp_client.client import Client
from pizzabot_builtin_plugins.mcp_client.settings import McpClientSettings


@pytest.fixture
def connected():
    """`async with connected(endpoint) as connection`, closed afterwards."""

    @asynccontextmanager
    async def connect(endpoint, *, max_tools=500, log=None, **settings):
        client = Client(McpClientSettings(**settings), log or Log())
        connection = await client.connect(endpoint, max_tools=max_tools)
        try:
            yield connection
        finally:
            await connection.close()

    return connect
