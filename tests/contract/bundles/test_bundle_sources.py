"""The built-in sources keep their contracts; folders that come later are watched; a reader that hangs holds up none."""

import asyncio
import json
from contextlib import aclosing

import pytest

from pizzabot.host.bundles import live as live_module
from pizzabot.testing import McpServersContract, SkillSourceContract, imported_by
from pizzabot.testing.bundle_files import write_bundle
from pizzabot_builtin_plugins.bundles import source as source_module
from pizzabot_builtin_plugins.bundles import watching
from pizzabot_builtin_plugins.bundles.source import BundleServers, BundleSkills, Loaded
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.bundles import BundlePlace, LoadRequest

SKILL = "---\ndescription: d\n---\nb\n"
FILES = {"skills/a/SKILL.md": SKILL, "skills/a/b.png": b"\x89PNG", ".mcp.json": json.dumps({"db": {"command": "x"}})}


class SilentLog:
    def __init__(self):
        self.warned = []

    def warning(self, event, **facts):
        self.warned.append(event)

    def __getattr__(self, _name):
        return lambda *_args, **_facts: None


def loaded(tmp_path):
    write_bundle(tmp_path / "plugins" / "one", {"name": "one"}, FILES)
    return Loaded(LoadRequest(places=[BundlePlace(path=tmp_path / "plugins")], host_version="1.0.0"))


class TestBundleSkills(SkillSourceContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.path = tmp_path

    def source(self):
        return BundleSkills(loaded(self.path), SilentLog())


class TestBundleServers(McpServersContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path):
        self.path = tmp_path

    def source(self):
        return BundleServers(loaded(self.path))


def test_listing_the_plugins_imports_nothing_heavy():
    for module in ("bundles", "subprocess_materializer"):
        brought = imported_by(f"pizzabot_builtin_plugins.{module}")
        assert not {"semantic_version", "watchfiles", "asyncio"} & set(brought)


@pytest.mark.parametrize("polls", [False, True])
def test_a_folder_that_comes_later_is_watched_too(tmp_path, monkeypatch, polls):
    log = SilentLog()
    monkeypatch.setattr(watching, "WAKE_MS", 100)
    monkeypatch.setattr(watching, "POLL_MS", 50)
    if polls:
        real = watching._follow

        def follow(*args, poll):
            if not poll:
                raise OSError("no watches are left")
            real(*args, poll=poll)

        monkeypatch.setattr(watching, "_follow", follow)

    async def main():
        async with asyncio.timeout(20), aclosing(watching.bursts([tmp_path / "later"], log)) as bursts:
            await anext(bursts)
            (tmp_path / "later").mkdir()
            await anext(bursts)
            write_bundle(tmp_path / "later" / "one", {"name": "one"})
            await anext(bursts)

    asyncio.run(main())
    assert bool(log.warned) is polls


def test_what_is_noise_is_not_told(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "WAKE_MS", 100)
    (tmp_path / "one" / "node_modules").mkdir(parents=True)

    async def main():
        async with aclosing(watching.bursts([tmp_path], SilentLog())) as bursts:
            await anext(bursts)
            (tmp_path / "one" / "node_modules" / "x").write_text("")
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(bursts), 0.5)

    asyncio.run(main())


def test_a_reader_that_hangs_holds_up_neither_the_start_nor_other_skills(tmp_path, opened, monkeypatch):
    write_bundle(tmp_path / "plugins" / "one", {"name": "one"}, FILES)
    (tmp_path / "skills" / "mine").mkdir(parents=True)
    (tmp_path / "skills" / "mine" / "SKILL.md").write_text(SKILL)
    monkeypatch.setattr(source_module, "FIRST_SECONDS", 0.05)
    monkeypatch.setattr(live_module, "LOAD_SECONDS", 0.2)
    real, hanging = Loaded.load, True

    async def load(self, request):
        if hanging:
            await asyncio.Event().wait()
        return await real(self, request)

    monkeypatch.setattr(Loaded, "load", load)

    async def scenario(host):
        nonlocal hanging
        assert "mine" in await host.skills()
        assert (await host.bundles.listing(caller=LOCAL))["bundles"] == []
        hanging = False
        await host.bundles.reload(caller=LOCAL)
        assert set(await host.skills(plugin="one")) == {"a"}
        assert "db" in await host.servers()

    opened(scenario)
