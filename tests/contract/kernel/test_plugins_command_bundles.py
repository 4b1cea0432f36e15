"""`pizzabot plugins` lists declarative bundles beside Python plugins, without a server, and runs nothing for it."""

import json
import os
import subprocess
import sys

import pytest

from pizzabot.testing.bundle_files import write_bundle
from pizzabot.testing.plugins import install_plugin

SKILL = "---\ndescription: d\n---\nb\n"
OFFERS = """
from pathlib import Path
from pizzabot_hookspecs import hookimpl
from pizzabot_hookspecs.support.packaged_bundles import bundle_offer

@hookimpl
def pizzabot_skill_sources():
    return [bundle_offer("acme", Path({folder!r}))]
"""


@pytest.fixture
def plugins(tmp_path):
    def run(*words, **environment):
        kept = {key: os.environ[key] for key in ("PATH", "VIRTUAL_ENV") if key in os.environ}
        site = {"PYTHONPATH": str(tmp_path / "site"), "PIZZABOT_DATA_ROOT": str(tmp_path / "root")}
        return subprocess.run(
            [sys.executable, "-m", "pizzabot.cli", "plugins", *words],
            env={**kept, "HOME": str(tmp_path), **site, **environment},
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    (tmp_path / "root").mkdir()
    (tmp_path / "site").mkdir()
    return run


def test_bundles_of_every_place_are_listed_and_a_broken_one_is_exit_code_1(tmp_path, plugins):
    write_bundle(
        tmp_path / "root" / "plugins" / "tools", {"name": "tools", "version": "1.5"}, {"skills/a/SKILL.md": SKILL}
    )
    write_bundle(tmp_path / "external" / "ext", {"name": "ext", "apiVersion": "pizza-bot/v9"})
    write_bundle(tmp_path / ".config" / "pizzabot" / "plugins" / "mine", {"name": "mine"})
    entry = {"dev.pizzabot.materializer": {"entrypoint": "m.py"}}
    write_bundle(tmp_path / "root" / "plugins" / "gen", {"name": "gen", "extensions": entry}, {"m.py": "1/0"})
    write_bundle(tmp_path / "acme", {"name": "acme"})
    install_plugin(tmp_path / "site", "acme_plugin", OFFERS.format(folder=str(tmp_path / "acme")))

    mine = plugins("--json")
    listed = {row["name"]: row["status"] for row in json.loads(mine.stdout)["bundles"]}
    assert listed == {"acme": "loaded", "gen": "loaded", "mine": "loaded", "tools": "loaded"}
    assert mine.returncode == 0

    both = plugins("--json", PIZZABOT_EXTERNAL_PLUGINS_DIRS=f"{tmp_path / 'external'}{os.pathsep}{tmp_path / 'gone'}")
    listed = {row["name"]: row["status"] for row in json.loads(both.stdout)["bundles"]}
    assert listed == {"acme": "loaded", "ext": "incompatible", "gen": "loaded", "tools": "loaded"}
    assert "1 of 4 bundles cannot be used: ext (incompatible)" in both.stderr.splitlines()[-1]

    assert both.returncode == 1
    table = plugins().stdout
    assert "BUNDLE  STATE   VERSION  SKILLS  SERVERS" in table
    assert "tools   loaded  1.5      1       0" in table


def test_without_bundles_nothing_is_said_of_them_and_the_key_is_there(plugins):
    result = plugins("--json")
    assert (json.loads(result.stdout)["bundles"], result.returncode) == ([], 0)
    assert "BUNDLE" not in plugins().stdout


def test_the_list_runs_where_bundles_cannot_be_read(tmp_path, plugins):
    (tmp_path / "root" / "plugins").write_text("a file")
    [row] = json.loads(plugins("--json").stdout)["bundles"]
    assert (row["name"], row["status"]) == ("plugins", "failed")
    disabled = tmp_path / "pizzabot.toml"
    disabled.write_text('[plugins]\ndisable = ["bundles"]\n')
    assert json.loads(plugins("--json").stdout)["bundles"] == []
