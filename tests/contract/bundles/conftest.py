"""A whole host on a data root of the test, and waiting for what it does in the background."""

import asyncio

import pytest

from pizzabot.testing import host
from pizzabot_hookspecs import LOCAL


class Opened:
    """The use cases as a test asks for them."""

    def __init__(self, opened):
        self.host = opened
        self.bundles = opened.bundles

    async def row(self, name):
        rows = (await self.bundles.listing(caller=LOCAL))["bundles"]
        return next((row for row in rows if row["name"] == name), None)

    async def skills(self, *, plugin=None):
        listed = (await self.host.skills.listing(caller=LOCAL))["skills"]
        return {skill["id"]: skill for skill in listed if plugin is None or skill.get("pluginName") == plugin}

    async def servers(self):
        await self.host.mcp_board.ready()
        return {row["id"]: row for row in (await self.host.mcp_servers.listing(caller=LOCAL))["servers"]}

    async def install(self, archive):
        return await self.bundles.import_archive(archive, caller=LOCAL)

    async def until(self, condition):
        """Wait for `condition()`, an async function, looking whenever skills or bundles moved."""
        async with asyncio.timeout(20):
            while not (found := await condition()):  # noqa: ASYNC110 - what is waited for is on the disk
                await asyncio.sleep(0.02)
        return found


@pytest.fixture
def opened(tmp_path):
    """Runs a scenario on a host; the same data root each time."""

    def run(scenario, *, settings=None, plugins=(), environ=None):
        async def main():
            async with host(data_root=tmp_path, settings=settings, plugins=plugins, environ=environ) as running:
                return await scenario(Opened(running))

        return asyncio.run(main())

    return run
