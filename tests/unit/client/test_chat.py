"""`pizzabot chat` as a real process against a real server: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = "import sys\nfrom pizzabot.cli import main\nsys.argv[1:1] = ['chat']\nsys.exit(main())"
# Ctrl-C on a terminal reaches the session that the terminal belongs to.
OWN_TERMINAL = "import fcntl, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
WAIT = 30.0


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "PYTHONUTF8": "1"}


@pytest.fixture
def chat(environ: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            input=stdin,
            check=False,
            capture_output=True,
            text=True,
            timeout=WAIT,
            env={**environ, **more},
        )

    return run


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr.rstrip("\n").rpartition("\n")[2]


def test_a_question_is_answered_on_stdout_and_nothing_else_is(server: Any, chat: Any) -> None:
    done = chat("tell", "me about pizza", "--url", server.url)
    assert (done.returncode, done.stdout, done.stderr) == (0, "tell me about pizza \n", "")


def test_what_is_piped_in_is_the_question(server: Any, chat: Any) -> None:
    done = chat("--url", server.url, stdin="from a pipe")
    assert (done.returncode, done.stdout) == (0, "from a pipe \n")


def test_an_empty_pipe_is_a_usage_error(server: Any, chat: Any) -> None:
    done = chat("--url", server.url, stdin=" \n")
    assert done.returncode == 2
    assert last_line(done).startswith("pizzabot: there is nothing to say")


def test_a_pipe_over_the_limit_is_refused(server: Any, chat: Any) -> None:
    done = chat("--url", server.url, stdin="x" * 1_000_001)
    assert (done.returncode, server.requests) == (2, [])
    assert "1000000 characters" in last_line(done)


def test_the_address_comes_from_the_environment_too(server: Any, chat: Any) -> None:
    assert chat("hi", PIZZABOT_URL=server.url).returncode == 0


def test_no_server_is_exit_6_with_how_to_start_one(dead_url: str, chat: Any) -> None:
    done = chat("hi", "--url", dead_url)
    assert (done.returncode, done.stdout) == (6, "")
    assert last_line(done).startswith(f"pizzabot: no server: {dead_url}")
    assert "pizzabot serve" in last_line(done)
    assert done.stderr.count("\n") == 1


def test_something_that_is_no_pizzabot_is_exit_6(server: Any, chat: Any) -> None:
    server.identity = {"hello": "world"}
    done = chat("hi", "--url", server.url)
    assert done.returncode == 6
    assert "no pizzabot server" in last_line(done)


def test_a_bad_address_is_a_usage_error(chat: Any) -> None:
    done = chat("hi", "--url", "ftp://nowhere")
    assert done.returncode == 2
    assert "ftp://nowhere" in last_line(done)


def test_a_failed_run_is_exit_1_with_code_and_detail(server: Any, chat: Any) -> None:
    server.ending = {"event": "failed", "code": "RATE_LIMIT", "error": "slow\ndown"}
    done = chat("hi", "--url", server.url)
    assert (done.returncode, last_line(done)) == (1, "pizzabot: run failed: RATE_LIMIT: slow down")


@pytest.mark.parametrize(
    ("ending", "words"),
    [
        ({"event": "completed", "code": "CANCELLED"}, "stopped by somebody else"),
        ({"event": "interrupted", "code": "SUPERSEDED"}, "took the run's place"),
        ({"event": "interrupted"}, "waits for an approval"),
    ],
)
def test_a_run_that_did_not_complete_is_exit_1(server: Any, chat: Any, ending: Any, words: str) -> None:
    server.ending = ending
    done = chat("hi", "--url", server.url)
    assert done.returncode == 1
    assert words in last_line(done)


def test_a_server_without_a_model_is_exit_1_with_its_three_ways(server: Any, chat: Any) -> None:
    ways = [{"title": f"way {number}", "command": f"do {number}"} for number in (1, 2, 3)]
    server.status = {"version": "0", "model": None, "waysToGetAModel": ways}
    done = chat("hi", "--url", server.url)
    assert done.returncode == 1
    assert [line for line in done.stderr.splitlines() if line.startswith("(")] == [
        f"({number}) way {number}: do {number}" for number in (1, 2, 3)
    ]
    assert last_line(done).startswith("pizzabot: the server has no model")
    assert server.commands("run.start") == []


def test_a_model_is_named_in_the_runs_configuration(server: Any, chat: Any) -> None:
    server.status = {"model": None}
    assert chat("hi", "--url", server.url, "--model", "echo:echo").returncode == 0
    [command] = server.commands("run.start")
    assert command["params"]["config"] == {"configurable": {"model": "echo:echo"}}


def test_the_token_is_taken_from_environment_file_and_reference(server: Any, chat: Any, tmp_path: Path) -> None:
    server.token = "the-token"
    (tmp_path / "token").write_text("the-token\n")
    assert chat("hi", "--url", server.url, PIZZABOT_API_TOKEN="the-token").returncode == 0
    assert chat("hi", "--url", server.url, "--token", f"file:{tmp_path}/token").returncode == 0
    assert chat("hi", "--url", server.url, "--token", "env:MINE", MINE="the-token").returncode == 0
    assert chat("hi", "--url", server.url, "--token", "${MINE}", MINE="the-token").returncode == 0
    done = chat("hi", "--url", server.url)
    assert done.returncode == 1
    assert "none was given" in last_line(done)


@pytest.mark.parametrize("reference", ["env:NOT_SET_ANYWHERE", "file:/no/such/file"])
def test_a_token_that_cannot_be_found_is_exit_3(server: Any, chat: Any, reference: str) -> None:
    done = chat("hi", "--url", server.url, "--token", reference)
    assert (done.returncode, server.requests) == (3, [])
    assert reference.partition(":")[2] in last_line(done)


def test_json_prints_the_runs_frames_a_line_each(server: Any, chat: Any) -> None:
    done = chat("hi there", "--url", server.url, "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert set(lines[0]) == {"type", "thread_id", "run_id"}
    assert [line["method"] for line in lines[1:]] == ["lifecycle", "messages", "messages", "messages", "lifecycle"]
    assert [line["seq"] for line in lines[1:]] == [1, 2, 3, 4, 5]


def test_a_cut_stream_is_followed_to_the_end(server: Any, chat: Any) -> None:
    server.cut_after = [2, 1]
    server.lose_answers = 1
    done = chat("one two three", "--url", server.url)
    assert (done.returncode, done.stdout) == (0, "one two three \n")


def test_continue_goes_on_in_the_last_thread_and_a_question_begins_a_new_one(server: Any, chat: Any) -> None:
    for arguments in ((), ("--continue",), (), ("--thread", "mine"), ("-c",)):
        assert chat("hi", "--url", server.url, *arguments).returncode == 0
    first, second, third, fourth, fifth = (
        request["path"].split("/")[2] for request in server.requests if request["path"].endswith("/commands")
    )
    assert first == second != third
    assert (fourth, fifth) == ("mine", "mine")


def test_the_remembered_thread_is_in_a_file_that_only_the_person_reads(server: Any, chat: Any, tmp_path: Path) -> None:
    chat("hi", "--url", server.url)
    [file] = (tmp_path / "state").rglob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(json.loads(file.read_text())) == [server.url]


def test_a_state_folder_that_cannot_be_written_costs_a_notice_only(server: Any, chat: Any, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file where the folder would be")
    done = chat("hi", "--url", server.url)
    assert (done.returncode, done.stdout) == (0, "hi \n")
    assert "cannot be remembered" in done.stderr


def test_ctrl_c_stops_the_run_and_exits_130_with_what_came_so_far(server: Any, environ: dict[str, str]) -> None:
    server.hold = True
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "so far", "--url", server.url],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.read(7) == "so far "
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT)
    assert (process.returncode, out) == (130, "\n")
    assert err == "pizzabot: stopped with Ctrl-C\n"
    assert server.stopped == list(server.runs.values())


@pytest.mark.parametrize("presses", [2, 3])
def test_signals_close_together_are_one_press(server: Any, environ: dict[str, str], presses: int) -> None:
    server.hold = True
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "so far", "--url", server.url],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.read(7) == "so far "
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WAIT)
    assert (process.returncode, err) == (130, "pizzabot: stopped with Ctrl-C\n")
    assert server.stopped == list(server.runs.values())


def test_a_reader_that_goes_away_ends_it_without_a_traceback(server: Any, environ: dict[str, str]) -> None:
    server.hold = True
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "a", "--url", server.url, "--json"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip
    assert process.stdout is not None
    assert server.held.wait(WAIT)
    process.stdout.readline()
    process.stdout.close()
    server.release.set()
    assert process.stderr is not None
    err = process.stderr.read()
    assert (process.wait(WAIT), err) == (0, "")
    process.stderr.close()


class Terminal:
    """A process on a pseudo-terminal."""

    def __init__(self, arguments: list[str], environ: dict[str, str]) -> None:
        self.main, side = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", OWN_TERMINAL + PROGRAM, *arguments],
            stdin=side, stdout=side, stderr=side, env={**environ, "TERM": "dumb"}, start_new_session=True,
        )  # fmt: skip
        os.close(side)
        self.shown = ""

    def type(self, text: str) -> None:
        os.write(self.main, text.encode())

    def wait_for(self, text: str) -> str:
        """What was shown up to and with `text`; forgets it."""
        until = time.monotonic() + WAIT
        while text not in self.shown:
            ready, _, _ = select.select([self.main], [], [], max(0.0, until - time.monotonic()))
            assert ready, f"{text!r} has not come; shown: {self.shown!r}"
            try:
                self.shown += os.read(self.main, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"it ended before {text!r}; shown: {self.shown!r}") from None
        before, _, self.shown = self.shown.partition(text)
        return before + text

    def press_ctrl_c(self) -> None:
        """Once the process waits for input: CPython sees a signal between prompt and waiting only at the next key."""
        until = time.monotonic() + WAIT
        state = Path(f"/proc/{self.process.pid}/stat")
        while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "S":
            assert time.monotonic() < until
        self.type("\x03")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT)
        os.close(self.main)


@pytest.fixture
def terminal(server: Any, environ: dict[str, str]) -> Iterator[Terminal]:
    opened = Terminal(["--url", server.url], environ)
    try:
        yield opened
    finally:
        opened.close()


def test_the_prompt_answers_line_by_line_on_one_thread_until_quit(server: Any, terminal: Terminal) -> None:
    terminal.wait_for("> ")
    terminal.type("hello there\n")
    terminal.wait_for("hello there \r\n")
    terminal.wait_for("> ")
    terminal.type("again\n")
    terminal.wait_for("again \r\n")
    terminal.type("/quit\n")
    assert terminal.process.wait(WAIT) == 0
    assert len({request["path"] for request in server.requests if request["path"].endswith("/commands")}) == 1


def test_ctrl_c_during_an_answer_stops_the_run_and_returns_to_the_prompt(server: Any, terminal: Terminal) -> None:
    server.hold = True
    terminal.wait_for("> ")
    terminal.type("long story\n")
    terminal.wait_for("long story \r\n" if False else "story ")
    assert server.held.wait(WAIT)
    terminal.type("\x03")
    terminal.wait_for("[cancelled]")
    terminal.wait_for("> ")
    assert server.stopped == list(server.runs.values())
    terminal.type("\x04")
    assert terminal.process.wait(WAIT) == 0


def test_ctrl_c_twice_at_the_prompt_leaves_with_130(terminal: Terminal) -> None:
    terminal.wait_for("> ")
    terminal.press_ctrl_c()
    terminal.wait_for("Ctrl-C again")
    terminal.wait_for("> ")
    terminal.press_ctrl_c()
    assert terminal.process.wait(WAIT) == 130


def test_the_commands_of_the_prompt(server: Any, terminal: Terminal) -> None:
    terminal.wait_for("> ")
    terminal.type("/thread\n")
    first = terminal.wait_for("> ")
    terminal.type("/new\n")
    assert "thread " in (second := terminal.wait_for("> "))
    assert first.split("thread ")[-1] != second.split("thread ")[-1]
    terminal.type("/thread bad/id\n")
    terminal.wait_for("a thread id has")
    terminal.wait_for("> ")
    terminal.type("/thread other\n")
    terminal.wait_for("thread other\r\n")
    terminal.wait_for("> ")
    terminal.type("/stop\n")
    terminal.wait_for("stopped")
    terminal.wait_for("> ")
    terminal.type("/status\n")
    terminal.wait_for("model echo:echo")
    terminal.wait_for("> ")
    terminal.type("/help\n")
    terminal.wait_for("/quit")
    terminal.wait_for("> ")
    terminal.type("/nonsense\n")
    terminal.wait_for("no command /nonsense")
    terminal.wait_for("> ")
    terminal.type("//slash\n")
    terminal.wait_for("/slash \r\n")
    assert server.stopped == [None]
    assert server.commands("run.start")[-1]["params"]["input"]["messages"][0]["content"] == "/slash"


def test_an_error_at_the_prompt_is_said_and_the_prompt_stays(server: Any, terminal: Terminal) -> None:
    terminal.wait_for("> ")
    server.ending = {"event": "failed", "code": "TIMEOUT", "error": "too late"}
    terminal.type("hi\n")
    terminal.wait_for("run failed: TIMEOUT: too late")
    terminal.wait_for("> ")
    server.refuse = (200, {"type": "error", "id": 1, "error": "run_active", "message": "busy"})
    terminal.type("hi\n")
    terminal.wait_for("busy (run_active)")
    terminal.wait_for("> ")


def test_a_model_cannot_steer_the_terminal(server: Any, terminal: Terminal) -> None:
    terminal.wait_for("> ")
    steering = {"type": "text-delta", "text": "\x1b]0;owned\x07\x1b[2J\x9b31m\rsafe\u202e"}
    server.extra_frames = [
        ("messages", {"run_id": "x", "event": "message-start", "role": "ai", "id": "m0"}, []),
        ("messages", {"run_id": "x", "event": "content-block-delta", "index": 0, "delta": steering}, []),
        ("tools", {"event": "tool-started", "tool_call_id": "c", "tool_name": "\x1b[31mred", "input": {}}, []),
    ]
    terminal.type("go\n")
    shown = terminal.wait_for("go \r\n")
    assert "]0;owned[2J31msafe" in shown
    assert "[31mred" in shown
    shown = shown.partition("]0;owned")[2]
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)


def test_the_prompt_goes_on_in_the_last_thread(server: Any, environ: dict[str, str], terminal: Terminal) -> None:
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for("hi \r\n")
    terminal.type("/quit\n")
    terminal.process.wait(WAIT)
    [thread] = {request["path"].split("/")[2] for request in server.requests if request["path"].endswith("/commands")}
    for arguments, expected in ((["--url", server.url], True), (["--url", server.url, "--new"], False)):
        second = Terminal(arguments, environ)
        try:
            assert (f"thread {thread}" in second.wait_for("> ")) is expected
        finally:
            second.close()
