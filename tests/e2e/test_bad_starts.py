"""Bad input to the real command: the documented exit code, one last line that says what, why and the way out.

What can go on goes on: a server serves beside broken plugins, without its model, and next to a refused second one.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from commands import clean_environment, pizzabot, refused_start
from servers import Server, running_server
from talking import HttpConversation, ask, text_of

from pizzabot.testing.plugins import install_plugin

PROGRAM = "from pizzabot.cli import main; sys.exit(main())"
FAILED, USAGE, CONFIGURATION, TAKEN, STORAGE, UNREACHABLE = 1, 2, 3, 4, 5, 6
TOKEN = "a-token-of-more-than-32-characters-for-tests"


def get(server: Server, path: str, **headers: str) -> httpx.Response:
    return httpx.get(server.http + path, headers=headers, timeout=30, trust_env=False)


def converse(server: Server, *texts: str) -> list[dict]:
    """Say these in one thread and return the data of each run's last frame."""
    import asyncio

    async def scene() -> list[dict]:
        async with asyncio.timeout(60), HttpConversation(server.http) as talk:
            return [await _last(talk, text) for text in texts]

    return asyncio.run(scene())


async def _last(talk: HttpConversation, text: str) -> dict:
    return (await ask(talk, "t", text))[-1]["params"]["data"]


def answer(server: Server, text: str) -> str:
    import asyncio

    async def scene() -> str:
        async with asyncio.timeout(60), HttpConversation(server.http) as talk:
            return text_of(await ask(talk, "t", text))

    return asyncio.run(scene())


# Plugins of others

HOOKS = "from pizzabot_hookspecs import Offer, hookimpl\n"
BROKEN = {
    "acme-import": ("failed", "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
    "acme-exit": ("failed", "SystemExit: enough"),
    "acme-hook": ("incompatible", "implements pizzabot_toppings"),
    "acme-argument": ("incompatible", "pizzabot_storage_backends asks for cheese"),
    "acme-twin": ("failed", '2 plugins are called "acme-twin": acme_one of acme-one, acme_two of acme-two'),
    "acme-future": ("incompatible", "needs pizzabot-host>=99"),
}


@pytest.fixture
def plugins(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH in which one plugin is fine and the others are each broken in a way of their own."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    install_plugin(folder, "acme_import", "import nothing_of_that_name\n")
    install_plugin(folder, "acme_exit", 'import sys\nsys.exit("enough")\n')
    install_plugin(folder, "acme_hook", HOOKS + "@hookimpl\ndef pizzabot_toppings():\n    return []\n")
    install_plugin(
        folder, "acme_argument", HOOKS + "@hookimpl\ndef pizzabot_storage_backends(cheese):\n    return []\n"
    )
    install_plugin(folder, "acme_one", "raise RuntimeError('imported')", plugin_name="acme-twin")
    install_plugin(folder, "acme_two", "raise RuntimeError('imported')", plugin_name="acme-twin")
    install_plugin(folder, "acme_future", "raise RuntimeError('imported')", requires=["pizzabot-host>=99"])
    install_plugin(folder, "acme_fine", offering("storage_backends", "fine", 'raise RuntimeError("the disk is full")'))
    return folder


def offering(kind: str, name: str, create: str) -> str:
    return (
        f"{HOOKS}def create(context, settings):\n    {create}\n\n@hookimpl\ndef pizzabot_{kind}():\n"
        f'    return [Offer(name="{name}", summary="for a test", create=create)]\n'
    )


def test_plugins_names_every_broken_one_with_its_reason_and_the_rest_is_loaded(tmp_path, plugins):
    ended = pizzabot(tmp_path, "plugins", "--json", environ={"PYTHONPATH": str(plugins)})
    assert ended.code == FAILED
    assert ended.last_line.startswith(f"{len(BROKEN) + 1} of ")
    assert '"pizzabot plugins show acme-argument"' in ended.last_line
    rows = {row["name"]: row for row in json.loads(ended.stdout)["plugins"]}
    for name, (state, reason) in BROKEN.items():
        assert rows[name]["state"] == state
        assert reason in rows[name]["reason"]
        assert name in ended.last_line
    assert {row["state"] for name, row in rows.items() if name not in BROKEN} == {"loaded"}
    assert rows["acme-fine"]["offers"] == {"storage_backends": ["fine"]}


def test_the_server_serves_beside_broken_plugins_and_says_which_are_broken(tmp_path, plugins):
    with running_server(tmp_path, environ=clean_environment(tmp_path, {"PYTHONPATH": str(plugins)})) as server:
        assert answer(server, "all the same") == "all the same"
        told = {row["name"]: row["reason"] for row in get(server, "/status").json()["plugins"]["broken"]}
        assert server.stop() == 0
    for name, (state, reason) in BROKEN.items():
        assert reason in told[name]
        assert re.search(rf"plugin {name} is {state}: .*{re.escape(reason)}", server.printed)


@pytest.mark.parametrize("name", BROKEN)
def test_a_selected_plugin_that_is_broken_fails_with_its_cause(tmp_path, plugins, name):
    code, line = refused_start(tmp_path, config=f'storage.use = "{name}"', environ={"PYTHONPATH": str(plugins)})
    state, reason = BROKEN[name]
    assert code == CONFIGURATION
    assert line.startswith(f'no offer "{name}" of kind storage_backends: the plugin "{name}" is {state} (')
    assert reason in line
    assert "there are: acme-fine:fine, memory-storage:memory, sqlite-storage:sqlite" in _sorted_offers(line)


def _sorted_offers(line: str) -> str:
    return re.sub(r"there are: ([^;]*)", lambda found: "there are: " + ", ".join(sorted(found[1].split(", "))), line)


def test_a_selected_offer_that_cannot_be_made_says_plugin_offer_and_cause(tmp_path, plugins):
    code, line = refused_start(tmp_path, config='storage.use = "fine"', environ={"PYTHONPATH": str(plugins)})
    assert code == FAILED
    assert line.startswith('the plugin "acme-fine" could not make "fine" of kind storage_backends')
    assert "RuntimeError: the disk is full" in line


def test_an_offer_of_two_plugins_is_chosen_by_its_full_name_only(tmp_path):
    for name in ("acme_a", "acme_b"):
        install_plugin(tmp_path / "plugins", name, offering("storage_backends", "vault", "raise RuntimeError"))
    environ = {"PYTHONPATH": str(tmp_path / "plugins")}
    code, line = refused_start(tmp_path, config='storage.use = "vault"', environ=environ)
    assert code == CONFIGURATION
    assert '"acme-a:vault" or "acme-b:vault"' in line


def test_without_plugins_nothing_of_others_is_imported(tmp_path, plugins):
    (plugins / "acme_import.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')")
    environ = {"PYTHONPATH": str(plugins), "PIZZABOT_NO_PLUGINS": "1"}
    assert pizzabot(tmp_path, "plugins", environ=environ).code == 0
    assert not (tmp_path / "imported").exists()


# Configuration

CONFIGURATIONS = {
    "a table that is not closed": ("[storage\nuse = 1\n", r"pizzabot\.toml, line 1, column 9: Expected '\]'"),
    "a text that does not end": ('[storage]\nuse = "sqlite', r"pizzabot\.toml, line 2, column 14: "),
    "an unknown storage": (
        'storage.use = "sqllite"',
        r'no offer "sqllite" of kind storage_backends; did you mean "sqlite"\?; there are: .*sqlite-storage:sqlite',
    ),
    "an unknown runtime": (
        'runtime.use = "nope"',
        r'no offer "nope" of kind agent_runtimes; there are: deepagents-runtime:deepagents',
    ),
    "an unknown transport": (
        'transports.use = ["nope"]',
        r'no offer "nope" of kind transports; there are: http-server:http',
    ),
    "an unknown setting": (
        '[storage]\nusee = "sqlite"',
        r"unknown setting storage\.usee \(file .*pizzabot\.toml:2\): did you mean storage\.use\?",
    ),
    "an unknown section": ('[stroage]\nuse = "sqlite"', r"unknown setting stroage .*did you mean storage\?"),
    "an unknown setting of a plugin": (
        "[transports.http]\nprot = 8080",
        r"transports\.http\.prot \(file .*pizzabot\.toml:2\): ",
    ),
    "a value of the wrong kind": (
        '[transports.http]\nheartbeat_seconds = "many"',
        r"transports\.http\.heartbeat_seconds \(file .*pizzabot\.toml:2\): .*number",
    ),
    "a secret that is not set": (
        '[transports.http]\ntoken = {env = "NOT_SET"}',
        r'secret \{env = "NOT_SET"\} is not set: set the environment variable NOT_SET',
    ),
    "a secret that no store has": (
        '[transports.http]\ntoken = "${NOT_SET}"',
        r"secret \$\{NOT_SET\} is not set in environment, keyring, file: set the variable NOT_SET or run `pizzabot",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CONFIGURATIONS)
def test_a_bad_configuration_is_exit_code_3_and_one_line_with_the_place(tmp_path, what):
    config, expected = CONFIGURATIONS[what]
    code, line = refused_start(tmp_path, config=config)
    assert code == CONFIGURATION
    assert re.search(expected, line), line


def test_why_others_are_not_loaded_is_part_of_a_missing_selection(tmp_path, plugins):
    code, line = refused_start(tmp_path, config='runtime.use = "x"', environ={"PYTHONPATH": str(plugins)})
    assert code == CONFIGURATION
    for name, (state, reason) in BROKEN.items():
        assert re.search(rf"{name} {state} \({'.*' if name == 'acme-hook' else ''}{re.escape(reason)}", line), name


def test_a_secret_written_into_the_file_is_refused_and_not_repeated(tmp_path):
    secret = "sk-written-into-the-file"
    code, line = refused_start(tmp_path, config=f'[models.work]\nuse = "openai"\napi_key = "{secret}"')
    assert code == CONFIGURATION
    assert re.match(r"models\.work\.api_key \(file .*pizzabot\.toml:3\) holds a secret itself; write a reference", line)
    assert secret not in line


def test_the_start_says_which_configuration_it_found(tmp_path):
    with running_server(tmp_path, environ=clean_environment(tmp_path)) as server:
        assert server.stop() == 0
    assert f"configuration {tmp_path / 'pizzabot.toml'}\n" in server.printed


def test_a_configuration_that_was_named_and_is_not_there_is_exit_code_3(tmp_path):
    code, line = refused_start(tmp_path, "--config", "nowhere.toml")
    assert (code, line.endswith("nowhere.toml does not exist [config_not_found]")) == (CONFIGURATION, True)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (
            {},
            ["no token is set (PIZZABOT_API_TOKEN", " and no browser origin is named (PIZZ", "set both, or bind 127.0"],
        ),
        ({"PIZZABOT_API_TOKEN": "short"}, ["its token has 5 characters instead of at least 32", "no browser origin"]),
        (
            {"PIZZABOT_API_TOKEN": TOKEN},
            ["and no browser origin is named (PIZZABOT_ALLOWED_ORIGINS", "set it, or bind"],
        ),
        ({"PIZZABOT_ALLOWED_ORIGINS": "https://a.example"}, ["and no token is set", "set it, or bind 127.0.0.1"]),
    ],
    ids=["nothing", "short token", "no origins", "no token"],
)
def test_a_bind_beyond_loopback_is_refused_with_all_that_is_missing(tmp_path, environ, expected):
    code, line = refused_start(tmp_path, "--host", "0.0.0.0", environ=environ)
    assert code == CONFIGURATION
    assert line.startswith("host 0.0.0.0 ")
    for words in expected:
        assert words in line


def test_a_host_without_an_address_is_said_to_have_none_before_anything_else(tmp_path):
    code, line = refused_start(tmp_path, "--host", "nowhere.invalid")
    assert (code, line.startswith("host 'nowhere.invalid' has no address")) == (CONFIGURATION, True)


def test_an_empty_model_is_exit_code_2(tmp_path):
    code, line = refused_start(tmp_path, "--model", "")
    assert (code, line.startswith("argument --model: it is empty: name a model as USE:MODEL")) == (USAGE, True)


@pytest.mark.parametrize("port", ["many", "-1", "65536"])
def test_a_port_that_is_none_is_exit_code_2(tmp_path, port):
    code, line = refused_start(tmp_path, f"--port={port}", "--port", port)
    assert code == USAGE
    assert f"'{port}' is not a port: a number from 0 to 65535" in line or "expected one argument" in line


# Address and data root


def test_a_port_in_use_is_exit_code_4_and_names_the_place(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, line = refused_start(tmp_path, "--port", str(port))
    assert code == TAKEN
    assert line.startswith(f"127.0.0.1:{port} is already in use; ")
    assert "--port N" in line


def test_a_data_root_in_use_names_the_process_and_the_first_server_goes_on(tmp_path):
    with running_server(tmp_path / "first") as server:
        code, line = refused_start(tmp_path / "second", "--data-root", str(server.data_root))
        assert code == TAKEN
        assert f"data root {server.data_root} is in use by process {server.pid}: " in line
        assert "--data-root" in line
        assert answer(server, "still here") == "still here"


@pytest.mark.parametrize(
    "place", ["a file", "below a file", "a link to nowhere", "a circle", "too long", "the kernel's"]
)
def test_a_data_root_that_cannot_be_written_is_exit_code_4(tmp_path, place):
    """Ways that hold for the administrator, too, whom no permission stops."""
    (tmp_path / "file").write_text("kept")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    root = {
        "a file": tmp_path / "file",
        "below a file": tmp_path / "file" / "data",
        "a link to nowhere": tmp_path / "dangling",
        "a circle": tmp_path / "circle",
        "too long": tmp_path / ("long" * 100),
        "the kernel's": Path("/proc/pizzabot"),
    }[place]
    code, line = refused_start(tmp_path, "--data-root", str(root))
    assert code == TAKEN
    assert line.startswith(f"data root {root} cannot be used: ")
    assert "choose another one with --data-root" in line
    assert ("it is a file, not a folder" in line) is (place == "a file")
    assert (tmp_path / "file").read_text() == "kept"


def test_a_disk_without_room_is_exit_code_4_with_the_way_out(tmp_path):
    """A limit on the size of files: for the process the same as a full disk."""
    started = f"import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); {PROGRAM}"
    ended = subprocess.run(
        [sys.executable, "-c", started, "serve", "--port", "0", "--data-root", str(tmp_path / "data")],
        env=clean_environment(tmp_path), cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == TAKEN
    line = ended.stderr.splitlines()[-1]
    assert line.startswith(f"pizzabot: data root {tmp_path / 'data'} cannot be used: File too large; make room on")


def test_an_empty_data_root_is_exit_code_2_and_the_working_folder_stays_as_it_is(tmp_path):
    (tmp_path / "here").mkdir(mode=0o755)
    code, line = refused_start(tmp_path / "here", "--data-root", "")
    assert (code, line.startswith("argument --data-root: it is empty: name a folder")) == (USAGE, True)
    assert not list((tmp_path / "here").iterdir())
    assert (tmp_path / "here").stat().st_mode & 0o777 == 0o755


def test_the_lock_of_a_killed_server_is_free_and_the_next_start_works(tmp_path):
    with running_server(tmp_path) as server:
        assert answer(server, "before") == "before"
        killed = server.pid
        server.kill()
        assert (server.data_root / "lock").read_text().strip() == str(killed)
        server.start()
        assert answer(server, "after") == "after"


# Databases


@pytest.fixture
def used(tmp_path: Path) -> Path:
    """The data root of a server that held a conversation and was stopped."""
    with running_server(tmp_path) as server:
        answer(server, "hello")
        assert server.stop() == 0
    return server.data_root


def test_a_damaged_database_is_exit_code_5_and_stays_as_it_is(tmp_path, used):
    database = used / "app.sqlite"
    for damage in (b"no database at all, just a text file", database.read_bytes()[:16] + os.urandom(8000)):
        database.write_bytes(damage)
        code, line = refused_start(tmp_path, "--data-root", str(used))
        assert code == STORAGE
        assert line.startswith(f"database {database} is damaged: ")
        assert "start with another data root" in line
        assert database.read_bytes() == damage


def test_a_newer_database_is_exit_code_5_and_names_both_versions(tmp_path, used):
    with closing(sqlite3.connect(used / "app.sqlite")) as connection, connection:
        connection.execute("INSERT INTO migrations VALUES ('app', 999, '2999-01-01T00:00:00.000000Z')")
    code, line = refused_start(tmp_path, "--data-root", str(used))
    assert code == STORAGE
    assert "has schema version 999 of app, this program knows " in line
    assert "install the newer pizzabot-host again, or start with another data root" in line


# Models and their providers


def test_a_default_model_that_is_no_model_id_is_exit_code_3(tmp_path):
    code, line = refused_start(tmp_path, "--model", "nonsense")
    assert code == CONFIGURATION
    assert line.startswith("model 'nonsense' is not of the form use:model, such as local:smollm2-135m")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("nobody:x", 'no offer "nobody" of kind model_providers; there are: echo:echo, '),
        ("work:x", 'no offer "zzz" of kind model_providers; there are: echo:echo, '),
    ],
)
def test_an_unknown_model_is_said_at_the_start_in_the_status_and_by_each_turn(tmp_path, model, expected):
    environ = clean_environment(tmp_path)
    with running_server(tmp_path, model=model, config='[models.work]\nuse = "zzz"', environ=environ) as server:
        failed, _ = converse(server, "hello", "again")
        assert (failed["event"], expected in failed["error"]) == ("failed", True)
        status = get(server, "/status").json()
        assert (status["model"], status["modelState"]["state"]) == (model, "failed")
        assert expected in status["modelState"]["detail"]
        assert get(server, "/ping").json() == {"status": "Healthy"}
        ended = pizzabot(tmp_path, "chat", "--url", server.http, "hello")
        assert (ended.code, expected in ended.last_line) == (FAILED, True)
        ended = pizzabot(tmp_path, "chat", "--url", server.http, "--model", "echo:echo", "hello")
        assert (ended.code, ended.stdout.strip()) == (0, "hello")
        assert server.stop() == 0
    assert f"model {model} cannot be used: {expected}" in server.printed
    assert "talk to it" not in server.printed


def test_a_model_that_cannot_be_loaded_is_said_once_it_is_known(tmp_path):
    environ = clean_environment(tmp_path)
    with running_server(tmp_path, model="openai:x", environ=environ) as server:
        line = server.wait_for_line("cannot be used")
        assert line.startswith("  model openai:x cannot be used: ")
        assert "no API key: set OPENAI_API_KEY" in line
        assert server.stop() == 0
    assert "talk to it" not in server.printed


def test_a_fallback_that_answers_is_named_at_the_start(tmp_path):
    config = '[models]\nfallback = ["echo:echo"]'
    with running_server(tmp_path, model="openai:x", config=config, environ=clean_environment(tmp_path)) as server:
        line = server.wait_for_line("cannot be used")
        assert "; echo:echo answers: pizzabot chat --url http" in line


def test_a_terminal_that_goes_away_stops_the_server_in_order(tmp_path):
    with running_server(tmp_path) as server:
        assert answer(server, "hello") == "hello"
        assert server.stop(signal.SIGHUP) == 0
    assert "pizzabot: stopping" in server.errors()


@contextmanager
def silent_endpoint() -> Iterator[str]:
    """Something that accepts connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"


def test_a_provider_that_does_not_answer_fails_the_turn_in_time_and_the_server_lives(tmp_path):
    with silent_endpoint() as url:
        config = f'[models.mute]\nuse = "openai"\nbase_url = "{url}"\ntimeout = 0.5\nmax_retries = 0\n'
        with running_server(tmp_path, model="mute:m", config=config, environ=clean_environment(tmp_path)) as server:
            (failed,) = converse(server, "hello?")
            assert (failed["event"], failed["code"]) == ("failed", "TIMEOUT")
            assert url.removesuffix("/v1") in failed["error"]
            assert get(server, "/ping").json() == {"status": "Healthy"}
            listed = {row["provider"]: row for row in get(server, "/models").json()["providers"]}
            assert (listed["mute"]["status"], listed["mute"]["code"]) == ("error", "network")
            assert listed["echo"]["status"] == "ready"


def test_a_model_process_that_is_killed_fails_its_turn_and_is_there_again_for_the_next(tmp_path, llama):
    with running_server(tmp_path, model="local:tiny", environ=llama) as server:
        assert answer(server, "hello there").split() == ["hello", "there"]
        failed, after = converse(server, "die", "back again")
        assert (failed["event"], failed["code"]) == ("failed", "MODEL_UNAVAILABLE")
        assert "signal 9" in failed["error"]
        assert after["event"] == "completed"
        assert get(server, "/ping").json() == {"status": "Healthy"}


def test_a_model_process_that_is_killed_between_turns_is_not_noticed(tmp_path, llama):
    with running_server(tmp_path, model="local:tiny", environ=llama) as server:
        answer(server, "hello there")
        (child,) = children_of(server.pid)
        os.kill(child, signal.SIGKILL)
        assert answer(server, "and again").split() == ["and", "again"]


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# `pizzabot chat`


def test_chat_without_a_server_is_exit_code_6_and_says_how_to_get_one(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    ended = pizzabot(tmp_path, "chat", "--url", url, "hello")
    assert ended.code == UNREACHABLE
    assert ended.last_line.startswith(f"no server: {url} does not answer")
    assert "`pizzabot serve`" in ended.last_line


class Stranger(BaseHTTPRequestHandler):
    """Some other program's web server."""

    def do_GET(self) -> None:
        body = b"<h1>It works!</h1>"
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_chat_with_something_that_is_no_pizzabot_says_so(tmp_path):
    with HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{stranger.server_port}"
        ended = pizzabot(tmp_path, "chat", "--url", url, "hello")
        stranger.shutdown()
    assert ended.code == UNREACHABLE
    assert ended.last_line == f"{url} is no pizzabot server (HTTP 200); name the server with --url"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "the server wants a token, and none was given"),
        ({"PIZZABOT_API_TOKEN": "guess"}, "the one given is not it"),
    ],
    ids=["none", "wrong"],
)
def test_chat_with_a_wrong_token_or_none_is_exit_code_1_and_says_where_it_is_taken_from(tmp_path, given, expected):
    with running_server(tmp_path / "server", environ={"PIZZABOT_API_TOKEN": TOKEN}) as server:
        ended = pizzabot(tmp_path, "chat", "--url", server.http, "hello", environ=given)
        right = pizzabot(tmp_path, "chat", "--url", server.http, "hello", environ={"PIZZABOT_API_TOKEN": TOKEN})
    assert ended.code == FAILED
    assert expected in ended.last_line
    assert "set PIZZABOT_API_TOKEN, or use --token" in ended.last_line
    assert (right.code, right.stdout.strip()) == (0, "hello")
