"""Materializers as real processes: what they get, what becomes of what they make, and of those that do not behave."""

import asyncio
import json
import os
import signal
from pathlib import Path
from types import ModuleType

import pytest

from pizzabot.host.materializing import output
from pizzabot.host.materializing.snapshots import FOLDER, Snapshots
from pizzabot.testing.bundle_files import bundle_files, write_bundle, zip_of
from pizzabot_hookspecs import LOCAL, Conflict, NotFound, Offer, hookimpl

EXTENSION = "dev.pizzabot.materializer"
SKILL = "---\ndescription: generated\n---\nb\n"
MAKES = """
import json, os, pathlib, sys
out = pathlib.Path(os.environ["PIZZABOT_MATERIALIZER_OUTPUT_DIR"])
name = os.environ["PIZZABOT_MATERIALIZER_PLUGIN_NAME"]
here = pathlib.Path(os.environ["PIZZABOT_MATERIALIZER_PLUGIN_ROOT"])
def write(path, text):
    (out / path).parent.mkdir(parents=True, exist_ok=True)
    (out / path).write_text(text)
def bundle(**manifest):
    write(".claude-plugin/plugin.json", json.dumps({"name": name, **manifest}))
SKILL = "---\\ndescription: generated\\n---\\nb\\n"
"""
GOOD = MAKES + 'bundle()\nwrite("skills/made/SKILL.md", SKILL)\n'


def materialized(script, **entry):
    manifest = {"name": "gen", "extensions": {EXTENSION: {"entrypoint": "make.py", **entry}}}
    return bundle_files(manifest, {"make.py": script})


@pytest.fixture
def gen(tmp_path):
    """Writes the bundle `gen` into the folder of plugins."""

    def write(script=GOOD, **entry):
        files = materialized(script, **entry)
        manifest = json.loads(files.pop(".claude-plugin/plugin.json"))
        return write_bundle(tmp_path / "plugins" / "gen", manifest, files)

    return write


async def synced(host, *states):
    """The row of `gen` once its materializer is at rest."""

    async def at_rest():
        row = await host.row("gen")
        return row if row and row.get("materialization", {}).get("state") in (states or {"synced"}) else None

    return await host.until(at_rest)


def test_it_gets_its_sources_and_its_variables_and_nothing_of_the_hosts(tmp_path, gen, opened, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "not for you")
    told = MAKES + (
        "bundle()\n"
        'told = {"args": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(), "stdin": sys.stdin.read()}\n'
        'write("skills/made/SKILL.md", SKILL)\nwrite("skills/made/told.json", json.dumps(told))\n'
    )
    folder = gen(told, sourceRoots=["~/notes", "${HOME}/more", "data", "/abs"])

    async def scenario(host):
        row = await synced(host)
        assert row["contributions"] == {"skills": 1, "mcpServers": 0}
        home = str(Path.home())
        sources = [f"{home}/notes", f"{home}/more", f"{folder}/data", "/abs"]
        assert row["materialization"]["sourceRoots"] == sources
        skill = await host.host.skills.get("made", caller=LOCAL)
        said = json.loads(next(file["content"] for file in skill["files"] if file["path"] == "told.json"))
        assert (said["args"], said["cwd"], said["stdin"]) == (sources, str(folder), "")
        for prefix in ("PIZZABOT", "PIZZA"):
            assert said["env"][f"{prefix}_MATERIALIZER_PLUGIN_NAME"] == "gen"
            assert said["env"][f"{prefix}_MATERIALIZER_PLUGIN_ROOT"] == str(folder)
            assert said["env"][f"{prefix}_MATERIALIZER_OUTPUT_DIR"].startswith(str(tmp_path / FOLDER / "gen"))
        assert "SOME_API_KEY" not in said["env"]

    opened(scenario)


def test_a_later_run_that_fails_keeps_the_last_good_version_as_stale(gen, opened):
    async def scenario(host):
        first = await synced(host)
        gen(MAKES + 'bundle()\nwrite("skills/half/SKILL.md", SKILL)\nsys.exit("the notes are gone")\n')
        answer = await host.bundles.refresh("gen", caller=LOCAL)
        assert answer["materialization"]["state"] == "stale"
        assert answer["materialization"]["detail"] == "make.py ended with exit code 1: the notes are gone"
        assert answer["materialization"]["lastSyncedAt"] == first["materialization"]["lastSyncedAt"]
        assert set(await host.skills(plugin="gen")) == {"made"}
        assert (await host.row("gen"))["status"] == "loaded"
        gen(GOOD.replace("skills/made", "skills/other"))
        assert (await host.bundles.refresh("gen", caller=LOCAL))["materialization"]["state"] == "synced"
        assert set(await host.skills(plugin="gen")) == {"other"}

    gen()
    opened(scenario)


def is_gone(pid):
    """Whether it runs no more; one that nobody reaps, as the first process of a container does not, counts as gone."""
    try:
        os.kill(pid, signal.SIGCONT)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return True


BAD = {
    "another name": (MAKES + 'write(".claude-plugin/plugin.json", json.dumps({"name": "other"}))', "named 'other'"),
    "a materializer in it": (
        MAKES + f'bundle(extensions={{"{EXTENSION}": {{"entrypoint": "x.py"}}}})', "a materializer of its own"
    ),
    "no manifest": (MAKES + 'write("skills/made/SKILL.md", SKILL)', "failed: .claude-plugin/plugin.json"),
    "a path that leads out": (MAKES + 'bundle(skills="../..")', "leads out"),
    "a skill that cannot be used": (MAKES + 'bundle()\nwrite("skills/a/SKILL.md", "no")', "SKILL.md line 1"),
    "a forbidden key": (
        MAKES + 'bundle()\nwrite("skills/a/SKILL.md", "---\\ndescription: d\\nhooks: x\\n---\\n")', "the key 'hooks'"
    ),
    "a server that is none": (MAKES + 'bundle(mcpServers={"a": {"type": "websocket", "url": "ws://a"}})', "WebSocket"),
    "a link": (MAKES + 'bundle()\n(out / "skills").symlink_to(here)', "a link"),
    "exit code 3": ("import sys; sys.exit(3)", "exit code 3"),
    "an exception": ("raise ValueError('oh no')", "ValueError: oh no"),
    "nothing": ("", "failed: .claude-plugin/plugin.json"),
    "much to say": ("import sys; print('x' * 1_000_000); print('the end', file=sys.stderr); sys.exit(1)", "the end"),
    "killed": ("import os; os.kill(os.getpid(), 9)", "exit code"),
}  # fmt: skip


@pytest.mark.parametrize(("script", "reason"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_not_switched_in_and_the_plugin_is_failed(tmp_path, gen, opened, script, reason):
    gen(script)

    async def scenario(host):
        row = await synced(host, "error")
        assert reason in row["detail"]
        assert (row["status"], row["contributions"]) == ("failed", {"skills": 0, "mcpServers": 0})
        assert await host.skills(plugin="gen") == {}
        assert list((tmp_path / FOLDER / "gen").iterdir()) == []

    opened(scenario)


def test_a_row_says_that_it_has_run_only_when_what_it_made_is_in_use(gen, opened):
    gen()

    async def scenario(host):
        live = host.bundles.live
        await synced(host)
        gen(GOOD.replace("skills/made", "skills/other"))
        apply, let_go, applying = live._apply, asyncio.Event(), asyncio.Event()

        async def held():
            applying.set()
            await let_go.wait()
            await apply()

        before = (await host.row("gen"))["materialization"]
        live._apply = held
        refreshing = asyncio.create_task(host.bundles.refresh("gen", caller=LOCAL))
        await applying.wait()
        assert (await host.row("gen"))["materialization"] == before
        let_go.set()
        await refreshing
        assert (await host.row("gen"))["materialization"]["state"] == "synced"
        assert set(await host.skills(plugin="gen")) == {"other"}

    opened(scenario)


def test_a_slow_one_is_ended_with_all_it_started_and_the_others_do_not_wait(tmp_path, gen, opened):
    slow = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "time.sleep(600)\n"
    )
    gen(slow, timeoutMs=1_000)
    write_bundle(tmp_path / "plugins" / "static", {"name": "static"}, {"skills/static/SKILL.md": SKILL})

    async def scenario(host):
        assert set(await host.skills(plugin="static")) == {"static"}
        assert (await host.row("gen"))["materialization"]["state"] == "running"
        row = await synced(host, "error")
        assert row["detail"] == "it did not end within 1 s (`timeoutMs`)"

    opened(scenario)
    for pid in (tmp_path / "pids").read_text().split():
        assert is_gone(int(pid))


def test_a_huge_one_is_ended_while_it_writes(gen, opened, monkeypatch):
    monkeypatch.setattr(output, "MAX_BYTES", 1_000_000)
    gen(MAKES + 'import time\nbundle()\nwrite("big", "x" * 2_000_000)\ntime.sleep(600)')

    async def scenario(host):
        assert "1000000 bytes" in (await synced(host, "error"))["detail"]

    opened(scenario)


def test_too_many_and_too_deep_files_are_refused(tmp_path):
    for number in range(output.MAX_FILES + 1):
        (tmp_path / str(number)).touch()
    for bad in (tmp_path, tmp_path / "0"):
        if bad.is_dir():
            with pytest.raises(Exception, match="more than 2048 files"):
                output.check_size(bad)
    deep = tmp_path / "deep"
    (deep / "/".join("a" * (output.MAX_DEPTH + 2))).mkdir(parents=True)
    with pytest.raises(Exception, match="nested deeper"):
        output.check_size(deep)


@pytest.mark.parametrize("entrypoint", ["../make.py", "/etc/hosts", "gone.py", "link.py", "skills"])
def test_an_entrypoint_is_a_file_of_the_bundle(tmp_path, gen, opened, entrypoint):
    folder = gen(entrypoint=entrypoint)
    (tmp_path / "make.py").write_text(GOOD)
    (folder / "link.py").symlink_to(tmp_path / "make.py")
    (folder / "skills").mkdir()

    async def scenario(host):
        assert "`entrypoint`" in (await synced(host, "error"))["detail"]

    opened(scenario)


def test_a_reason_that_is_not_named_runs_nothing_and_the_last_version_is_used(tmp_path, gen, opened):
    counted = GOOD + f'open({str(tmp_path / "runs")!r}, "a").write("x")\n'
    gen(counted, sync=["manual"])

    async def first(host):
        row = await synced(host, "error")
        assert "startup" in row["detail"]
        assert (await host.bundles.refresh("gen", caller=LOCAL))["materialization"]["state"] == "synced"

    async def second(host):
        row = await synced(host)
        assert (row["status"], set(await host.skills(plugin="gen"))) == ("loaded", {"made"})

    opened(first)
    opened(second)
    assert (tmp_path / "runs").read_text() == "x"
    gen(counted, sync=["startup"])

    async def third(host):
        await host.until(_ran(tmp_path, "xx"))
        await host.bundles.reload(caller=LOCAL)
        assert (await synced(host))["materialization"]["state"] == "synced"

    opened(third)
    assert (tmp_path / "runs").read_text() == "xx"


def _ran(tmp_path, times):
    async def ran():
        return (tmp_path / "runs").read_text() == times

    return ran


def test_a_failing_one_is_not_installed_and_nothing_of_it_is_left(tmp_path, opened):
    async def scenario(host):
        with pytest.raises(Conflict) as raised:
            await host.install(zip_of(materialized("raise SystemExit('no source')")))
        assert (raised.value.code, "no source" in raised.value.detail) == ("activation_failed", True)
        assert list((tmp_path / "plugins").iterdir()) == []
        assert list((tmp_path / FOLDER).iterdir()) == []
        assert await host.install(zip_of(materialized(GOOD))) == {"name": "gen"}
        assert (await host.row("gen"))["materialization"]["state"] == "synced"
        await host.bundles.delete("gen", caller=LOCAL)
        assert list((tmp_path / FOLDER).iterdir()) == []

    opened(scenario)


def test_one_that_is_dropped_into_the_folder_runs_and_one_without_is_not_found(gen, opened):
    async def scenario(host):
        with pytest.raises(NotFound) as raised:
            await host.bundles.refresh("gen", caller=LOCAL)
        assert raised.value.code == "no_such_materialization"
        gen()
        await synced(host)
        assert set(await host.skills(plugin="gen")) == {"made"}

    opened(scenario)


def test_leftovers_are_pruned_and_a_state_that_cannot_be_read_counts_as_none(tmp_path):
    snapshots = Snapshots(tmp_path)
    kept = snapshots.keep("gen", snapshots.begin("gen"), 1.5)
    assert snapshots.last("gen") == kept
    place = tmp_path / "gen"
    (place / "snapshots" / "1-old").mkdir()
    (place / ".staging-old").mkdir()
    (place / "state-x.tmp").touch()
    staging = snapshots.begin("gen")
    assert sorted(path.name for path in place.iterdir()) == sorted([staging.name, "snapshots", "state.json"])
    assert list((place / "snapshots").iterdir()) == [kept.folder]
    (tmp_path / "outside").mkdir()
    (place / "snapshots" / "link").symlink_to(tmp_path / "outside")
    for state in (
        "", "[]", "{}", "null", '{"snapshot": "../../outside", "lastSyncedAt": 1}',
        '{"snapshot": "gone", "lastSyncedAt": 1}',
        '{"snapshot": "link", "lastSyncedAt": 1}', '{"snapshot": "link", "lastSyncedAt": NaN}', "[" * 5000, "\xff",
    ):  # fmt: skip
        (place / "state.json").write_text(state)
        assert (snapshots.last("gen"), snapshots.every()) == (None, {}), state


def python_plugin(materialize, name="gen"):
    class Made:
        def __init__(self):
            self.asked = []

        async def materialize(self, request, /):
            self.asked.append(request)
            return await materialize(request)

    made = Made()
    module = ModuleType("python_materializer")

    @hookimpl
    def pizzabot_materializers():
        return [Offer(name=name, summary="made in Python", create=lambda _context, _settings: made)]

    module.pizzabot_materializers = pizzabot_materializers
    return made, ("python-materializer", module)


async def good_files(request):
    return bundle_files({"name": request.bundle}, {"skills/made/SKILL.md": SKILL})


@pytest.mark.parametrize(("offer", "entry"), [("gen", {}), ("acme", {"use": "acme"}), ("acme", {"use": "acme-x:acme"})])
def test_a_python_materializer_is_used_by_name_or_because_it_is_called_like_the_bundle(gen, opened, offer, entry):
    made, plugin = python_plugin(good_files, offer)
    gen("raise SystemExit(1)", sourceRoots=["/abs"], timeoutMs=7_000, **entry)

    async def scenario(host):
        if entry.get("use") == "acme-x:acme":
            assert "acme-x:acme" in (await synced(host, "error"))["detail"]
            return
        await synced(host)
        assert set(await host.skills(plugin="gen")) == {"made"}
        [request] = made.asked
        assert (request.bundle, request.reason, request.seconds) == ("gen", "startup", 7.0)
        assert [str(source) for source in request.sources] == ["/abs"]

    opened(scenario, plugins=[plugin])


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"../x": b""}, "path segment"),
        ({"/x": b""}, "path segment"),
        ({"a": "text"}, "it returned no files"),
        (None, "it returned no files"),
        ({"a": b"", "a/b": b""}, "Error"),
    ],
)
def test_what_a_python_materializer_returns_stays_inside(tmp_path, gen, opened, files, reason):
    async def returned(_request):
        return files

    _, plugin = python_plugin(returned)
    gen()

    async def scenario(host):
        assert reason in (await synced(host, "error"))["detail"]
        assert not list(tmp_path.rglob("x"))

    opened(scenario, plugins=[plugin])


def test_a_host_that_stops_ends_a_materializer_that_runs(tmp_path, gen, opened):
    gen(f"import os, time\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()) + ' ')\ntime.sleep(600)")

    async def scenario(host):
        async def began():
            return (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text().endswith(" ")

        await host.until(began)

    opened(scenario)
    assert is_gone(int((tmp_path / "pid").read_text()))
    assert list((tmp_path / FOLDER / "gen").iterdir()) == []


def test_several_run_side_by_side_and_a_refresh_runs_one_alone(tmp_path, opened):
    for name in ("a", "b", "c"):
        manifest = {"name": name, "extensions": {EXTENSION: {"entrypoint": "make.py"}}}
        script = (
            GOOD.replace("skills/made", f"skills/{name}") + f'open({str(tmp_path)!r} + "/ran-" + name, "a").write("x")'
        )
        write_bundle(tmp_path / "plugins" / name, manifest, {"make.py": script})

    async def scenario(host):
        async def three():
            rows = (await host.bundles.listing(caller=LOCAL))["bundles"]
            return all(row["materialization"]["state"] == "synced" for row in rows)

        await host.until(three)
        await asyncio.gather(*(host.bundles.refresh("b", caller=LOCAL) for _ in range(2)))
        assert [(tmp_path / f"ran-{name}").read_text() for name in "abc"] == ["x", "xxx", "x"]

    opened(scenario)
