"""kill -9 in the middle of an install, a deletion and a materialization: after a restart the old version or none."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pizzabot.host.materializing.snapshots import FOLDER
from pizzabot.testing.bundle_files import bundle_files, write_bundle, zip_of
from pizzabot_hookspecs import LOCAL

SKILL = "---\ndescription: d\n---\nb\n"
FILES = bundle_files({"name": "tools"}, {f"skills/s{number}/SKILL.md": SKILL for number in range(5)})
MAKE = """
import json, os, pathlib
out = pathlib.Path(os.environ["PIZZABOT_MATERIALIZER_OUTPUT_DIR"])
(out / ".claude-plugin").mkdir()
(out / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "gen"}))
for name in pathlib.Path("names").read_text().split():
    (out / "skills" / name).mkdir(parents=True)
    (out / "skills" / name / "SKILL.md").write_text("---\\ndescription: d\\n---\\nb\\n")
"""


def is_gone(pid):
    """Whether it runs no more; one that nobody reaps, as the first process of a container does not, counts as gone."""
    try:
        os.kill(pid, signal.SIGCONT)
        stat = Path(f"/proc/{pid}/stat")
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return True


def killed_at(data_root, what, step, number):
    """Run the host until it gets there, and kill it without a word."""
    command = [sys.executable, str(Path(__file__).with_name("held_host.py")), str(data_root), what, step, str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        process.kill()


@pytest.mark.parametrize(
    ("step", "number", "there"),
    [("write a file", 1, False), ("write a file", 4, False), ("place", 1, False), ("name a folder", 1, True)],
)
def test_an_install_that_is_killed_is_there_whole_or_not_at_all(tmp_path, opened, step, number, there):
    (tmp_path / "tools.zip").write_bytes(zip_of({**FILES, **extension()}) if there else zip_of(FILES))
    killed_at(tmp_path, str(tmp_path / "tools.zip"), step, number)

    async def scenario(host):
        row = await host.row("tools")
        names = [path.name for path in (tmp_path / "plugins").iterdir()]
        assert (names, row is not None) == ((["tools"], True) if there else ([], False))
        if not there:
            assert await host.install(zip_of(FILES)) == {"name": "tools"}
            assert len(await host.skills(plugin="tools")) == 5

    opened(scenario)


def extension():
    manifest = {"name": "tools", "extensions": {"dev.pizzabot.materializer": {"entrypoint": "make.py"}}}
    return bundle_files(manifest, {"make.py": MAKE.replace('"gen"', '"tools"'), "names": "a b"})


@pytest.mark.parametrize(("step", "number", "there"), [("hide", 1, True), ("erase", 1, True), ("erase", 2, False)])
def test_a_deletion_that_is_killed_is_not_begun_or_is_finished_at_the_next_start(tmp_path, opened, step, number, there):
    for path, content in FILES.items():
        (tmp_path / "plugins" / "tools" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "plugins" / "tools" / path).write_bytes(content)
    killed_at(tmp_path, "delete", step, number)

    async def scenario(host):
        assert len(await host.skills(plugin="tools")) == (5 if there else 0)
        assert (tmp_path / "plugins" / "tools").exists() is there

    opened(scenario)


@pytest.mark.parametrize(
    ("step", "number"), [("name a folder", 1), ("settle", 1), ("name a folder", 2), ("name a folder", 3)]
)
def test_a_materialization_that_is_killed_leaves_the_old_version_and_the_next_run_clears_up(
    tmp_path, opened, step, number
):
    entry = {"entrypoint": "make.py", "sync": ["manual"]}
    manifest = {"name": "gen", "extensions": {"dev.pizzabot.materializer": entry}}
    folder = write_bundle(tmp_path / "plugins" / "gen", manifest, {"make.py": MAKE, "names": "old"})

    async def refreshed(host):
        await host.bundles.listing(caller=LOCAL)
        assert (await host.bundles.refresh("gen", caller=LOCAL))["materialization"]["state"] == "synced"
        return set(await host.skills(plugin="gen"))

    assert opened(refreshed) == {"old"}
    (folder / "names").write_text("new newer")
    killed_at(tmp_path, "refresh", step, number)

    async def scenario(host):
        assert await host.row("gen") is not None
        assert set(await host.skills(plugin="gen")) == {"old"}
        assert await refreshed(host) == {"new", "newer"}

    opened(scenario)
    place = tmp_path / FOLDER / "gen"
    state = json.loads((place / "state.json").read_text())
    assert state["snapshot"] in {path.name for path in (place / "snapshots").iterdir()}
    assert len(list((place / "snapshots").iterdir())) <= 2
    assert not list(place.glob(".staging-*"))


def test_a_kill_of_the_server_leaves_no_materializer(tmp_path):
    told = tmp_path / "pid"
    os.mkfifo(told)
    script = f"import os, time\nopen({str(told)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    entry = {"entrypoint": "make.py", "sync": ["manual"]}
    manifest = {"name": "gen", "extensions": {"dev.pizzabot.materializer": entry}}
    write_bundle(tmp_path / "plugins" / "gen", manifest, {"make.py": script})
    command = [sys.executable, str(Path(__file__).with_name("held_host.py")), str(tmp_path), "refresh", "settle", "1"]
    with subprocess.Popen(command) as process:
        pid = int(told.read_text())
        process.kill()
    deadline = time.monotonic() + 10
    while not is_gone(pid):
        assert time.monotonic() < deadline, "the materializer outlived its server"
        time.sleep(0.02)
