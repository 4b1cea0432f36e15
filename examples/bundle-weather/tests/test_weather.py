"""The bundle is loaded, its server runs, its skill is ready, and the tool that writes is the one that asks."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pizzabot_weather

from pizzabot.host.app import PizzabotHost
from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import host, imported_by
from pizzabot_hookspecs import LOCAL

BUNDLE = Path(pizzabot_weather.__file__).with_name("bundle")
SETTINGS = {"mcp": {"path": [str(Path(sys.executable).parent)]}}
"""`python` is the one that runs these tests: it has `mcp`."""


def test_the_plugin_is_loaded() -> None:
    plugins = Plugins().load()
    report = next(report for report in plugins.report() if report.name == "bundle-weather")
    assert (report.state, report.reason) == (PluginState.LOADED, None)


def test_listing_the_plugin_imports_no_mcp() -> None:
    assert "mcp" not in imported_by("pizzabot_weather")


async def ready(running: PizzabotHost) -> Mapping[str, Any]:
    """The skill, once its server is connected."""
    async with asyncio.timeout(30):
        while True:
            listed = (await running.skills.listing(caller=LOCAL))["skills"]
            found = [skill for skill in listed if skill["id"] == "weather"]
            if found and found[0]["status"] == "ready":
                return dict(found[0])
            await asyncio.sleep(0.05)


def test_the_skill_is_ready_when_its_server_is_and_asks_before_it_writes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with host(
            plugins=[("bundle-weather", pizzabot_weather)], settings=SETTINGS, data_root=tmp_path
        ) as running:
            skill = await ready(running)
            assert (skill["source"], skill["pluginName"]) == ("plugin", "weather")
            assert skill["interruptOn"] == {
                "mcp:weather:add_reading": {"allowedDecisions": ["approve", "edit", "reject"]}
            }
            [row] = (await running.bundles.listing(caller=LOCAL))["bundles"]
            assert (row["status"], row["contributions"]) == ("loaded", {"skills": 1, "mcpServers": 1})
            told = await running.mcp_servers.tools("weather", caller=LOCAL)
            assert {tool["name"] for tool in told["tools"]} == {"readings", "add_reading"}

    asyncio.run(scenario())


def test_the_folder_alone_is_a_bundle_that_can_be_installed(tmp_path: Path) -> None:
    shutil.copytree(BUNDLE, tmp_path / "plugins" / "weather", ignore=shutil.ignore_patterns("__pycache__"))

    async def scenario() -> None:
        async with host(settings=SETTINGS, data_root=tmp_path) as running:
            assert (await ready(running))["pluginName"] == "weather"
            [row] = (await running.bundles.listing(caller=LOCAL))["bundles"]
            assert row["removable"] is True

    asyncio.run(scenario())


def test_the_manifest_is_json_and_names_no_secret() -> None:
    manifest = json.loads((BUNDLE / ".claude-plugin" / "plugin.json").read_text("utf-8"))
    assert manifest["name"] == "weather"
