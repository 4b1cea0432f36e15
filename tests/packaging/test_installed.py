"""The wheel, installed in an environment of its own: the command works, and the examples are found, chosen and used."""

from __future__ import annotations

import json
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from environments import EXAMPLES, REPOSITORY, Environment, attempt, clean_environ, run

from pizzabot import __version__
from pizzabot.kernel import BUILTINS

CONFIGURATION = """
[models]
default = "bird:macaw"
[models.bird]
use = "parrot"
[runtime]
use = "replay"
[transports]
use = ["http", "lines"]
"""
START_SECONDS = 60


def plugins_of(environment: Environment, folder: Path, *, exit_code: int = 0) -> dict[str, dict[str, Any]]:
    """`pizzabot plugins --json` as name -> what is told."""
    done = attempt(environment.command("pizzabot"), "plugins", "--json", cwd=folder, environ={"HOME": str(folder)})
    assert done.returncode == exit_code, done.stdout + done.stderr
    return {plugin["name"]: plugin for plugin in json.loads(done.stdout)["plugins"]}


def test_the_packages_come_from_the_wheel_and_not_from_the_checkout(plain, tmp_path):
    code = (
        "import pizzabot, pizzabot_hookspecs, pizzabot_builtin_plugins as b;"
        "print(pizzabot.__file__, pizzabot_hookspecs.__file__, b.__file__, sep='\\n')"
    )
    for file in run(plain.python, "-P", "-c", code, cwd=tmp_path).splitlines():
        assert Path(file).is_relative_to(plain.packages)


def test_the_command_says_its_version(plain, tmp_path):
    assert run(plain.command("pizzabot"), "--version", cwd=tmp_path).split() == ["pizzabot", __version__]


def test_every_built_in_is_loaded_from_the_wheel_and_nobody_elses(plain, tmp_path):
    plugins = plugins_of(plain, tmp_path)
    assert list(plugins) == list(BUILTINS)
    for plugin in plugins.values():
        assert (plugin["state"], plugin["reason"]) == ("loaded", None)
        assert (plugin["distribution"], plugin["version"]) == ("pizzabot-host", __version__)


@pytest.mark.parametrize(
    ("name", "offers", "stands_in_for"),
    [
        ("bundle-weather", {"skill_sources": ["weather"]}, []),
        ("materializer-openapi", {"skill_sources": ["openapi"]}, []),
        ("parrot", {"model_providers": ["parrot"]}, []),
        ("runtime-replay", {"agent_runtimes": ["replay"]}, []),
        ("skill-source-handbook", {"skill_sources": ["handbook"]}, []),
        ("storage-audit", {"storage_backends": ["sqlite"]}, ["sqlite-storage:sqlite"]),
        ("tool-notes", {"agent_tools": ["notes"]}, []),
        ("transport-lines", {"transports": ["lines"]}, []),
    ],
)
def test_an_example_is_loaded_once_it_is_installed(with_examples, tmp_path, name, offers, stands_in_for):
    plugin = plugins_of(with_examples, tmp_path)[name]
    assert (plugin["state"], plugin["reason"]) == ("loaded", None)
    assert (plugin["offers"], plugin["stands_in_for"]) == (offers, stands_in_for)
    assert plugin["distribution"].endswith("-example")
    assert not plugin["builtin"]


def test_an_example_that_is_switched_off_in_the_configuration_is_not_imported(with_examples, tmp_path):
    (tmp_path / "pizzabot.toml").write_text('[plugins]\ndisable = ["storage-audit"]\n')
    plugin = plugins_of(with_examples, tmp_path)["storage-audit"]
    assert (plugin["state"], plugin["offers"], plugin["ms"]) == ("disabled", {}, 0)


@contextmanager
def running(environment: Environment, folder: Path) -> Iterator[dict[str, str]]:
    """A server on which every example is in use, by its configuration alone: address by scheme. It stops in order."""
    (folder / "pizzabot.toml").write_text(CONFIGURATION)
    with (folder / "stderr.txt").open("w") as errors:
        serving = subprocess.Popen(
            [str(environment.command("pizzabot")), "serve", "--port", "0", "--data-root", str(folder / "data")],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env=clean_environ() | {"HOME": str(folder)},
        )
        assert serving.stdout is not None
        try:
            ready, _, _ = select.select([serving.stdout], [], [], START_SECONDS)
            first = serving.stdout.readline() if ready else ""
            assert "listening on" in first, (folder / "stderr.txt").read_text()
            found = first.partition("listening on ")[2].strip().split(", ")
            yield {address.partition(":")[0]: address for address in found}
        finally:
            serving.terminate()
            serving.communicate(timeout=20)
    assert serving.returncode == 0, (folder / "stderr.txt").read_text()


def test_the_configuration_chooses_all_four_and_they_hold_a_conversation(with_examples, tmp_path):
    data, at = tmp_path / "data", {"cwd": tmp_path, "environ": {"HOME": str(tmp_path)}}
    with running(with_examples, tmp_path) as addresses:
        over_http = run(with_examples.command("pizzabot"), "chat", "--url", addresses["http"], "more olives", **at)
        assert "MORE OLIVES" in over_http  # the loud parrot
        lines = (with_examples.python, "-P", "-m", "pizzabot_lines", addresses["unix"])
        assert run(*lines, "no olives", "thread-1", **at) == "NO OLIVES\n"
        assert (data / "lines.sock").is_socket()
        assert run(with_examples.python, "-P", "-c", DELETE, addresses["unix"], **at).strip() == "True"

    assert not (data / "lines.sock").exists()
    assert (data / "replay" / "replay.sqlite3").exists()
    events = [json.loads(line)["event"] for line in (data / "audit" / "audit.ndjson").read_text().splitlines()]
    assert events == [*(["run.admitted", "run.claimed", "run.finished"] * 2), "thread.deleted"]


DELETE = """
import asyncio, sys
from pizzabot_lines.client import LinesClient

async def main():
    client = await LinesClient.connect(sys.argv[1])
    print((await client.call("delete_thread", thread_id="thread-1"))["deleted"])
    await client.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_tests_of_an_example_pass_on_what_was_installed(example, with_examples):
    """`-P`: the package is the installed one, not the folder beside its tests."""
    folder = REPOSITORY / "examples" / example
    told = run(with_examples.python, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)
    assert " passed" in told
    assert "failed" not in told
    assert "skipped" not in told
