"""Bundles in a whole host: from a folder, a ZIP and a Python plugin to skills and servers, and away again."""

import asyncio
import json
import re
import sys
from types import ModuleType

import pytest

from pizzabot.host.bundles import installing
from pizzabot.host.bundles.installing import InstallFolder
from pizzabot.testing.bundle_files import bundle_files, write_bundle, zip_of
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest, NotFound, PizzabotError, TooLarge, hookimpl
from pizzabot_hookspecs.support.packaged_bundles import bundle_offer

SKILL = "---\ndescription: reviews code\n---\nLook at the diff.\n"
FILES = {"skills/review/SKILL.md": SKILL, ".mcp.json": json.dumps({"db": {"command": "x", "enabled": False}})}


def zipped(name="tools", files=None, **manifest):
    return zip_of(bundle_files({"name": name, **manifest}, FILES if files is None else files))


def test_a_bundle_in_the_folder_is_there_at_start_with_skills_servers_and_a_row(tmp_path, opened):
    write_bundle(tmp_path / "plugins" / "tools", {"name": "tools", "version": "1", "author": {"name": "A"}}, FILES)

    async def scenario(host):
        row = await host.row("tools")
        assert re.fullmatch(r"plugin_[A-Za-z0-9_-]{16}", row.pop("id"))
        assert row == {
            "name": "tools", "apiVersion": "pizza-bot/v1", "status": "loaded", "version": "1", "author": "A",
            "removable": True, "contributions": {"skills": 1, "mcpServers": 1},
        }  # fmt: skip
        skill = (await host.skills())["review"]
        assert (skill["source"], skill["pluginName"], skill["status"]) == ("plugin", "tools", "ready")
        server = (await host.servers())["db"]
        assert (server["source"], server["pluginName"]) == ("plugin", "tools")
        assert [told["name"] for told in host.host.plugins(caller=LOCAL)["bundles"]] == ["tools"]

    opened(scenario)


def test_a_folder_that_is_dropped_in_changed_and_removed_is_followed_live(tmp_path, opened):
    async def scenario(host):
        assert await host.row("tools") is None
        folder = write_bundle(tmp_path / "plugins" / "tools", {"name": "tools"}, FILES)
        await host.until(lambda: host.skills(plugin="tools"))
        write_bundle(folder, {"name": "tools"}, {"skills/plan/SKILL.md": SKILL})
        await host.until(lambda: _has(host, {"review", "plan"}))
        (folder / ".claude-plugin" / "plugin.json").write_text("{")
        await host.until(lambda: _has(host, set()))
        assert (await host.row("tools"))["status"] == "failed"
        assert (await host.row("tools"))["contributions"] == {"skills": 0, "mcpServers": 0}

    opened(scenario)


async def _has(host, ids):
    return set(await host.skills(plugin="tools")) == ids


def test_installed_listed_switched_and_deleted_leaves_nothing(tmp_path, opened):
    async def scenario(host):
        assert await host.install(zipped()) == {"name": "tools"}
        assert (await host.row("tools"))["removable"] is True
        assert set(await host.skills(plugin="tools")) == {"review"}
        await host.host.skills.enable("review", False, caller=LOCAL)
        await host.host.mcp_servers.enable("db", True, caller=LOCAL)
        with pytest.raises(Conflict) as raised:
            await host.install(zipped())
        assert raised.value.code == "already_exists"
        assert await host.bundles.delete("tools", caller=LOCAL) == {"deleted": True}
        assert (await host.row("tools"), await host.skills(plugin="tools")) == (None, {})
        assert "db" not in await host.servers()
        assert list((tmp_path / "plugins").iterdir()) == []
        for setting in ("skills.disabled", "mcp.enabled"):
            assert await host.host.storage.setting(setting, caller=LOCAL) is None
        await host.install(zipped())
        assert (await host.skills(plugin="tools"))["review"]["enabled"] is True
        assert (await host.servers())["db"]["enabled"] is False

    opened(scenario)


def test_an_archive_may_have_one_folder_around_the_bundle_and_programs_stay_programs(tmp_path, opened):
    files = bundle_files({"name": "tools"}, {"bin/run": "#!/bin/sh\n", "data.txt": "x"})

    async def scenario(host):
        await host.install(zip_of({f"tools-main/{path}": content for path, content in files.items()}))
        assert (tmp_path / "plugins" / "tools" / "bin" / "run").stat().st_mode & 0o777 == 0o700
        assert (tmp_path / "plugins" / "tools" / "data.txt").stat().st_mode & 0o777 == 0o600

    opened(scenario)


MANIFEST = ".claude-plugin/plugin.json"


@pytest.mark.parametrize(
    ("archive", "error", "code"),
    [
        (b"", InvalidRequest, "empty_archive"),
        (b"PK no", InvalidRequest, "invalid_archive"),
        (zip_of({"README.md": b""}), InvalidRequest, "invalid_bundle"),
        (zip_of({f"a/{MANIFEST}": b"{}", f"b/{MANIFEST}": b"{}"}), InvalidRequest, "invalid_bundle"),
        (zip_of({f"a/{MANIFEST}": b"{}", "b": b""}), InvalidRequest, "invalid_bundle"),
        (zip_of({MANIFEST: b"{"}), InvalidRequest, "invalid_manifest"),
        (zip_of({MANIFEST: b'{"name": "../up"}'}), InvalidRequest, "invalid_manifest"),
        (zip_of({MANIFEST: b'{"name": "a", "skills": "../x"}'}), InvalidRequest, "invalid_manifest"),
        (zip_of({MANIFEST: b'{"name": "a"}', ".mcp.json": b"["}), InvalidRequest, "invalid_bundle"),
        (zip_of({MANIFEST: b'{"name": "a"}', "../x": b""}), InvalidRequest, "unsafe_path"),
        (zip_of({MANIFEST: b'{"name": "a"}', "B": b"", "b": b""}), InvalidRequest, "duplicate_entry"),
        (zip_of({MANIFEST: b"", **{str(n): b"" for n in range(2048)}}), InvalidRequest, "too_many_files"),
        (bytes(50 * 1024 * 1024 + 1), TooLarge, "archive_too_large"),
        (zip_of({MANIFEST: b'{"name": "a", "engines": {"pizzaBot": ">99"}}'}), Conflict, "activation_failed"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_archive_that_is_no_bundle_is_refused_and_leaves_nothing(tmp_path, opened, archive, error, code):
    async def scenario(host):
        with pytest.raises(error) as raised:
            await host.install(archive)
        assert raised.value.code == code
        assert list((tmp_path / "plugins").iterdir()) == []
        assert (await host.bundles.listing(caller=LOCAL))["bundles"] == []

    opened(scenario)


@pytest.mark.parametrize("name", ["others", "zebra"])
def test_a_bundle_that_collides_is_not_installed_and_the_other_one_stays(tmp_path, opened, name):
    async def scenario(host):
        await host.install(zipped())
        with pytest.raises(Conflict) as raised:
            await host.install(zipped(name))
        assert raised.value.code == "activation_failed"
        assert "skill 'review'" in raised.value.detail
        assert [path.name for path in (tmp_path / "plugins").iterdir()] == ["tools"]
        assert set(await host.skills(plugin="tools")) == {"review"}

    opened(scenario)


def test_only_installed_bundles_are_deleted_and_only_by_their_name(tmp_path, opened):
    shipped, external = tmp_path / "shipped", tmp_path / "external"
    write_bundle(shipped / "ship", {"name": "ship"})
    write_bundle(external / "ext", {"name": "ext"})
    (tmp_path / "plugins" / "plain").mkdir(parents=True)

    async def scenario(host):
        for name in ("ship", "ext", "plain", "gone"):
            with pytest.raises(NotFound) as raised:
                await host.bundles.delete(name, caller=LOCAL)
            assert raised.value.code == "no_such_plugin"
        for name in ("../ship", "", ".", "A", "a/b"):
            with pytest.raises(InvalidRequest) as refused:
                await host.bundles.delete(name, caller=LOCAL)
            assert refused.value.code == "invalid_name"
        rows = (await host.bundles.listing(caller=LOCAL))["bundles"]
        assert [(row["name"], row["removable"]) for row in rows] == [("ext", False), ("ship", False)]

    opened(scenario, settings={"bundles": {"shipped": [str(shipped)], "external": [str(external)]}})


def test_a_bundle_that_is_linked_into_the_folder_is_unlinked_and_stays_where_it_is(tmp_path, opened):
    real = write_bundle(tmp_path / "work" / "tools", {"name": "tools"}, FILES)
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "tools").symlink_to(real)

    async def scenario(host):
        assert (await host.row("tools"))["status"] == "loaded"
        await host.bundles.delete("tools", caller=LOCAL)
        assert await host.row("tools") is None

    opened(scenario)
    assert (real / MANIFEST).is_file()
    assert list((tmp_path / "plugins").iterdir()) == []


def test_a_skill_of_a_bundle_with_a_forbidden_key_is_refused_and_the_others_stay(tmp_path, opened):
    files = {
        f"skills/{key.lower()}/SKILL.md": f"---\ndescription: d\n{key}: x\n---\nb\n"
        for key in ("hooks", "mcpServers", "permissionMode")
    }
    write_bundle(tmp_path / "plugins" / "tools", {"name": "tools"}, {**files, **FILES})

    async def scenario(host):
        listed = await host.host.skills.listing(caller=LOCAL)
        assert set(await host.skills(plugin="tools")) == {"review"}
        reasons = {problem["id"]: problem["reason"] for problem in listed["problems"]}
        for key in ("hooks", "mcpServers", "permissionMode"):
            assert reasons[key.lower()] == f"a plugin's skill may not have the key {key!r}"

    opened(scenario)


def test_a_reference_that_is_not_set_is_an_error_that_names_it_and_a_set_one_is_used(tmp_path, opened, monkeypatch):
    entry = {"command": sys.executable, "args": ["${CLAUDE_PLUGIN_ROOT}/gone.py"], "env": {"T": "${WEATHER_KEY}"}}
    write_bundle(tmp_path / "plugins" / "tools", {"name": "tools", "mcpServers": {"db": entry}})

    async def scenario(host):
        async def failed():
            row = (await host.servers())["db"]
            return row if row["status"] == "error" else None

        return (await host.until(failed))["detail"]

    assert "WEATHER_KEY" in opened(scenario)
    monkeypatch.setenv("WEATHER_KEY", "a value of ten")
    assert "WEATHER_KEY" not in opened(scenario)


def test_a_python_plugin_offers_a_bundle_of_its_package_in_three_lines(tmp_path, opened):
    folder = write_bundle(tmp_path / "package" / "bundle", {"name": "acme"}, FILES)
    module = ModuleType("acme_plugin")

    @hookimpl
    def pizzabot_skill_sources():
        return [bundle_offer("acme", folder)]

    module.pizzabot_skill_sources = pizzabot_skill_sources

    async def scenario(host):
        row = await host.row("acme")
        assert (row["status"], row["removable"]) == ("loaded", False)
        assert set(await host.skills(plugin="acme")) == {"review"}

    opened(scenario, plugins=[("acme-plugin", module)])


def test_without_the_plugin_there_are_no_bundles_and_the_error_says_so(tmp_path, opened):
    write_bundle(tmp_path / "plugins" / "tools", {"name": "tools"}, FILES)

    async def scenario(host):
        assert (await host.bundles.listing(caller=LOCAL))["bundles"] == []
        for call in (
            host.bundles.reload(caller=LOCAL),
            host.bundles.refresh("a", caller=LOCAL),
            host.bundles.delete("a", caller=LOCAL),
            host.install(zipped()),
        ):
            with pytest.raises(Conflict) as raised:
                await call
            assert raised.value.code == "plugins_disabled"

    opened(scenario, settings={"plugins": {"disable": ["bundles"]}})


def test_an_install_goes_on_to_its_end_when_whoever_asked_is_gone(tmp_path, opened):
    async def scenario(host):
        await host.bundles.listing(caller=LOCAL)
        async with host.bundles.live.writing:
            asking = asyncio.create_task(host.install(zipped()))
            while not any(task.get_name() == "install a bundle" for task in asyncio.all_tasks()):  # noqa: ASYNC110
                await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
        await host.until(lambda: host.skills(plugin="tools"))

    opened(scenario)


def test_what_a_crash_left_in_the_folder_is_erased_at_the_next_start(tmp_path):
    plugins = InstallFolder(tmp_path / "plugins")
    plugins.prepare()
    kept = write_bundle(plugins.path / "kept", {"name": "kept"})
    staged = plugins.stage({"a": b""})
    half = write_bundle(plugins.path / "half", {"name": "half"}, FILES)
    plugins.hide(half)
    odd = write_bundle(plugins.path / "odd", {"name": "odd"}, {".removed-plugin/a": ""})
    plugins.prepare()
    assert [staged.exists(), half.exists(), kept.exists(), odd.exists()] == [False, False, True, True]
    plugins.hide(odd)
    plugins.prepare()
    assert not odd.exists()
    assert plugins.path.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_does_not_go_away_is_tried_five_times_and_then_told(tmp_path, monkeypatch):
    plugins = InstallFolder(tmp_path / "plugins")
    plugins.prepare()
    tries = []
    monkeypatch.setattr(installing, "ERASE_PAUSE_SECONDS", 0)
    monkeypatch.setattr(installing, "_erase", tries.append)
    with pytest.raises(PizzabotError) as raised:
        plugins.erase(plugins.stage({"a": b""}))
    assert (raised.value.code, len(tries)) == ("plugins_unwritable", 5)


def test_a_folder_that_cannot_be_written_is_an_error_of_the_install_alone(tmp_path, opened):
    (tmp_path / "plugins").write_text("a file")

    async def scenario(host):
        with pytest.raises(PizzabotError) as raised:
            await host.install(zipped())
        assert raised.value.code == "plugins_unwritable"

    opened(scenario)
