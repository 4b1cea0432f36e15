"""`pizzabot plugins` as a process: what is printed, the exit codes, and that it runs with everything broken."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from pizzabot.testing.plugins import install_plugin

KEYS = {
    "name", "state", "distribution", "version", "module", "builtin", "ms", "slow", "offers", "reason", "exception",
    "stands_in_for",
}  # fmt: skip

RUN = """
import sys
from pizzabot.cli import main
code = main(["plugins", *sys.argv[1:]])
sdks = "openai anthropic boto3 google ollama litestar uvicorn mcp langchain langchain_core langgraph deepagents rich"
print("imported:", *sorted(set(sdks.split()) & set(sys.modules)))
sys.exit(code)
"""

SETTINGS = """
from enum import Enum
from typing import Annotated, Literal
from pydantic import BaseModel, Field, SecretStr
from pizzabot_hookspecs import Offer, hookimpl

class Mode(Enum):
    FAST = "fast"
    SAFE = "safe"

class Pool(BaseModel):
    size: int = Field(default=4, description="connections that are kept open")

class Settings(BaseModel):
    dsn: SecretStr = Field(description="where the database is")
    mode: Mode = Mode.SAFE
    level: Literal["a", "b"] | None = None
    tags: Annotated[list[str], Field(max_length=3)] = Field(default_factory=list)
    pool: Pool = Pool()

@hookimpl
def pizzabot_storage_backends():
    return [Offer(name="postgres", summary="one big database", create=print, settings=Settings, extra="pg")]
"""


@pytest.fixture
def command(folder, tmp_path):
    """Runs the command with the plugins of the folder in an empty home; the process's result."""

    def run(*words, config=None, program=("-m", "pizzabot.cli", "plugins"), **environment):
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        if config is not None:
            (home / "pizzabot.toml").write_text(config)
        kept = {key: os.environ[key] for key in ("PATH", "VIRTUAL_ENV") if key in os.environ}
        return subprocess.run(
            [sys.executable, *program, *words],
            env={**kept, "HOME": str(home), "PYTHONPATH": str(folder), **environment},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def last_line(result):
    return result.stderr.splitlines()[-1]


def test_json_has_the_same_keys_for_every_plugin_whatever_its_state(command, folder, offering):
    install_plugin(folder, "acme", offering("parrot"))
    install_plugin(folder, "broken", "import no_such_driver")
    install_plugin(folder, "old", "", requires=["pizzabot-host>=99"])
    install_plugin(folder, "off", "")

    result = command("--json", config='[plugins]\ndisable = ["off", "uninstalled"]\n')

    listing = json.loads(result.stdout)
    plugins = {plugin["name"]: plugin for plugin in listing["plugins"]}
    assert all(set(plugin) == KEYS for plugin in plugins.values())
    states = {name: plugins[name]["state"] for name in ("acme", "broken", "old", "off")}
    assert states == {"acme": "loaded", "broken": "failed", "old": "incompatible", "off": "disabled"}
    assert plugins["acme"]["offers"] == {"model_providers": ["parrot"]}
    assert plugins["broken"]["exception"] == "ModuleNotFoundError"
    assert plugins["sqlite-storage"]["builtin"] is True
    assert "environment" in plugins["secret-stores"]["offers"]["secret_stores"]
    assert listing["notes"] == ['[plugins] disable names "uninstalled", and no plugin of that name is installed']
    assert result.returncode == 1
    assert "broken (failed), old (incompatible)" in last_line(result)


def test_nothing_heavy_is_imported_to_list_plugins(command):
    result = command("--json", program=("-c", RUN))

    assert result.stdout.splitlines()[-1] == "imported:"


def test_the_table_is_plain_aligned_and_uncut_when_it_is_piped(command, folder):
    long = "no " * 100 + "table"
    install_plugin(folder, "broken", f"raise ValueError({long!r})")

    result = command(COLUMNS="40", FORCE_COLOR="1")

    lines = result.stdout.splitlines()
    state = lines[0].index("STATE")
    assert "secret_stores: environment, file, keyring" in result.stdout
    assert lines[0].split()[:4] == ["NAME", "STATE", "FROM", "MS"]
    assert {line[state:].split()[0] for line in lines[1:]} <= {"loaded", "failed"}
    (row,) = [line for line in lines if line.startswith("broken ")]
    assert row.endswith("ValueError: " + long)
    assert "broken 1.0" in row
    assert "\x1b" not in result.stdout
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_stand_in_is_said_in_its_own_column(command, folder, offering):
    install_plugin(folder, "acme", offering("sqlite", "storage_backends"))

    lines = command().stdout.splitlines()

    assert lines[0].endswith("STANDS IN FOR")
    (row,) = [line for line in lines if line.startswith("acme ")]
    assert row.endswith("sqlite-storage:sqlite")


def test_a_plugin_that_prints_at_import_does_not_break_the_json(command, folder):
    install_plugin(folder, "noisy", "print('hello')")

    result = command("--json")

    assert "noisy" in [plugin["name"] for plugin in json.loads(result.stdout)["plugins"]]
    assert "hello" in result.stderr


def test_a_broken_configuration_is_said_and_the_list_is_printed_all_the_same(command, folder, offering):
    install_plugin(folder, "acme", offering("parrot"))

    result = command("--json", config="[plugins\ndisable = 1")

    listing = json.loads(result.stdout)
    assert "acme" in [plugin["name"] for plugin in listing["plugins"]]
    assert listing["notes"][0].startswith("the configuration is left out")
    assert result.returncode == 3
    assert "pizzabot.toml" in last_line(result)


def test_strict_does_not_keep_the_list_from_being_printed(command, folder):
    install_plugin(folder, "broken", "raise SystemExit")

    result = command(config="[plugins]\nstrict = true\n")

    assert "SystemExit" in result.stdout
    assert result.returncode == 1


def test_no_plugins_leaves_third_parties_out(command, folder):
    install_plugin(folder, "broken", "raise SystemExit")

    result = command("--no-plugins")

    assert "broken" not in result.stdout


def test_show_prints_offers_settings_and_where_each_value_is_from_and_no_value(command, folder):
    install_plugin(folder, "acme", SETTINGS)
    config = '[storage.postgres]\ndsn = {env = "PGPASSWORD"}\npool = {size = 9}\n'

    result = command("show", "acme", config=config, PIZZABOT__STORAGE__POSTGRES__MODE="fast", PGPASSWORD="s3cret")

    text = result.stdout
    rows = {line.split()[0]: " ".join(line.split()) for line in text.splitlines() if line.strip()}
    assert text.startswith("acme: loaded\n  from acme 1.0, module acme, ")
    assert "storage_backends: acme:postgres\n  one big database" in text
    assert 'pip install "pizzabot-host[pg]"' in text
    assert "[storage.postgres]" in text
    assert rows["dsn"].startswith("dsn SecretStr required file ")
    assert rows["dsn"].endswith("pizzabot.toml:2 where the database is")
    assert rows["mode"] == "mode 'fast' | 'safe' 'safe' environment PIZZABOT__STORAGE__POSTGRES__MODE"
    assert rows["level"] == "level 'a' | 'b' | None None default"
    assert rows["tags"] == "tags list[str] computed default"
    assert rows["pool.size"].startswith("pool.size int 4 file ")
    assert "s3cret" not in text
    assert result.returncode == 0


def test_show_has_each_use_of_a_model_provider(command, folder):
    source = SETTINGS.replace("storage_backends", "model_providers").replace("postgres", "bedrock")
    install_plugin(folder, "acme", source)

    result = command("show", "acme", "--json", config='[models.work]\nuse = "bedrock"\ndsn = {env = "X"}\n')

    (shown,) = json.loads(result.stdout)["plugins"]
    (offer,) = shown["offered"]
    (use,) = offer["uses"]
    assert (shown["name"], offer["qualified"]) == ("acme", "acme:bedrock")
    assert use["section"] == "models.work"
    assert use["settings"][0]["source"].endswith("pizzabot.toml:3")


def test_show_of_a_failed_plugin_has_the_traceback_for_its_author(command, folder):
    install_plugin(folder, "broken", "def connect():\n    raise ValueError('no table')\nconnect()")

    result = command("show", "broken")

    assert result.stdout.startswith("broken: failed: ValueError: no table\n")
    assert 'broken.py", line 2, in connect' in result.stdout
    assert result.returncode == 1


def test_show_of_an_unknown_name_lists_the_names(command):
    result = command("show", "nobody")

    assert last_line(result).startswith('pizzabot: no plugin is called "nobody"; there are: echo, ')
    assert result.returncode == 1


def test_a_secret_of_the_environment_that_a_plugin_quotes_is_not_printed(command, folder):
    install_plugin(folder, "broken", "import os\nraise ValueError('refused ' + os.environ['ACME_API_KEY'])")

    for words in ((), ("--json",), ("show", "broken")):
        result = command(*words, ACME_API_KEY="s3cret-s3cret-s3cret")
        assert "ValueError: refused" in result.stdout
        assert "s3cret" not in result.stdout + result.stderr


def test_on_a_terminal_nothing_is_cut_and_no_color_is_honoured(command, folder):
    install_plugin(folder, "broken", "raise ValueError('[models] ' + 'x' * 200)")
    in_a_terminal = "import pty, sys; pty.spawn([sys.executable, '-m', 'pizzabot.cli', 'plugins'])"

    result = command(program=("-c", in_a_terminal), COLUMNS="60", TERM="xterm-256color", NO_COLOR="1", FORCE_COLOR="1")

    assert result.stdout.count("x") >= 200
    assert "[models]" in result.stdout
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", result.stdout)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout).splitlines()
    assert max(len(line) for line in lines if not line.startswith("pizzabot:")) <= 60


def test_a_terminal_that_cannot_show_a_character_gets_an_escape(command, folder):
    install_plugin(folder, "broken", "raise ValueError('Käse')")

    result = command(PYTHONIOENCODING="ascii")

    assert "ValueError: K\\xe4se" in result.stdout
