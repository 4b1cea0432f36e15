"""The script keeps the contract of materializers and says what is wrong with a file; a host uses what it made."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pizzabot_openapi
import pytest

from pizzabot.host.app import PizzabotHost
from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import MaterializerContract, host
from pizzabot_builtin_plugins.subprocess_materializer.materializer import SubprocessMaterializer
from pizzabot_builtin_plugins.subprocess_materializer.settings import SubprocessSettings
from pizzabot_hookspecs import LOCAL

BUNDLE = Path(pizzabot_openapi.__file__).with_name("bundle")
API = {
    "openapi": "3.1.0",
    "info": {"title": "Pets: a store"},
    "paths": {"/pets": {"get": {"summary": "every pet"}, "post": {"operationId": "addPet"}, "summary": "none"}},
}


class Quiet:
    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_facts: None


class TestMakeSkills(MaterializerContract):
    bundle = "openapi"
    entrypoint = "make_skills.py"

    def materializer(self) -> SubprocessMaterializer:
        return SubprocessMaterializer(SubprocessSettings(), Quiet())

    def root(self, folder: Path) -> None:
        shutil.copytree(BUNDLE, folder, dirs_exist_ok=True)

    def sources(self, folder: Path) -> Sequence[Path]:
        (folder / "Pet Store.json").write_text(json.dumps(API))
        (folder / "prices.csv").write_text("pet,price\ncat,3\ndog,4\n")
        (folder / "notes.txt").write_text("not looked at")
        return [folder]


def test_the_plugin_is_loaded() -> None:
    plugins = Plugins().load()
    report = next(report for report in plugins.report() if report.name == "materializer-openapi")
    assert (report.state, report.reason) == (PluginState.LOADED, None)


async def at_rest(running: PizzabotHost) -> dict[str, Any]:
    """The bundle's row, once its materializer has run."""
    async with asyncio.timeout(30):
        while True:
            [row] = (await running.bundles.listing(caller=LOCAL))["bundles"]
            if row["materialization"]["state"] != "running":
                return dict(row)
            await asyncio.sleep(0.05)


def test_a_host_makes_skills_of_the_folder_and_follows_it_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apis = tmp_path / "pizzabot-apis"
    apis.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    (apis / "pets.json").write_text(json.dumps(API))

    async def scenario() -> None:
        data = tmp_path / "data"
        async with host(plugins=[("materializer-openapi", pizzabot_openapi)], data_root=data) as running:
            assert (await at_rest(running))["contributions"] == {"skills": 1, "mcpServers": 0}
            skill = await running.skills.get("api-pets", caller=LOCAL)
            assert skill["description"].startswith("Answers how to use the API Pets: a store")
            assert "- `GET /pets`: every pet\n- `POST /pets`: addPet" in skill["body"]

            (apis / "prices.csv").write_text("pet,price\ncat,3\n")
            (apis / "broken.json").write_text("{")
            failed = (await running.bundles.refresh("openapi", caller=LOCAL))["materialization"]
            assert failed["state"] == "stale"
            assert "broken.json is not JSON" in failed["detail"]
            (apis / "broken.json").unlink()
            done = (await running.bundles.refresh("openapi", caller=LOCAL))["materialization"]
            assert done["state"] == "synced"
            assert (
                "1 rows with the columns `pet`, `price`."
                in ((await running.skills.get("table-prices", caller=LOCAL))["body"])
            )

    asyncio.run(scenario())


def test_a_folder_that_is_not_there_is_said_and_nothing_else_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    async def scenario() -> None:
        data = tmp_path / "data"
        async with host(plugins=[("materializer-openapi", pizzabot_openapi)], data_root=data) as running:
            row = await at_rest(running)
            assert row["status"] == "failed"
            assert f"there is no folder {tmp_path}/pizzabot-apis: make it" in row["detail"]

    asyncio.run(scenario())
