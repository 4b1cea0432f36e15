"""`pizzabot chat` as a real process against a real server: what it prints, where, and how it exits."""

from __future__ import annotations

import io
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

from pizzabot.cli.chat_screen import MAX_HELD_CHARS, Screen, may_dim
from pizzabot.cli.chat_session import waits_for
from pizzabot.client import TextDelta

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
        ({"event": "interrupted"}, "waits for you; answer it on a terminal"),
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
    assert server.held.wait(WAIT)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=WAIT)
    assert (process.returncode, out) == (130, "so far \n")
    assert err == "pizzabot: stopped with Ctrl-C\n"
    assert set(server.stopped) == set(server.runs.values())


@pytest.mark.parametrize("presses", [2, 3])
def test_signals_close_together_are_one_press(server: Any, environ: dict[str, str], presses: int) -> None:
    server.hold = True
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "so far", "--url", server.url],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip
    assert server.held.wait(WAIT)
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=WAIT)
    assert (process.returncode, err) == (130, "pizzabot: stopped with Ctrl-C\n")
    assert set(server.stopped) == set(server.runs.values())


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


def test_what_is_not_utf8_is_exit_2_and_one_line(server: Any, chat: Any, environ: dict[str, str]) -> None:
    command = [sys.executable, "-c", PROGRAM, "--url", server.url]
    piped = subprocess.run(command, input=b"\xff\xfe bad", check=False, capture_output=True, env=environ)
    typed = subprocess.run([*command, b"\xff bad"], check=False, capture_output=True, env=environ)
    for done in (piped, typed):
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"pizzabot: what you say cannot be sent: it is not text in UTF-8 (byte 0xff ")
        assert done.stderr.count(b"\n") == 1
    assert server.requests == []


@pytest.mark.parametrize("option", ["--thread", "--url", "--token", "--model"])
def test_an_option_that_is_not_utf8_is_exit_2(environ: dict[str, str], option: str) -> None:
    command = [sys.executable, "-c", PROGRAM, "hi", option, b"\xff"]
    done = subprocess.run(command, check=False, capture_output=True, env=environ)
    assert done.returncode == 2
    assert done.stderr.startswith(f"pizzabot: argument {option}: it is not text in UTF-8".encode())


def test_a_plain_locale_sends_utf8_and_shows_what_it_can(server: Any, environ: dict[str, str]) -> None:
    plain = {**environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", PROGRAM, "--url", server.url]
    piped = subprocess.run(command, input="grün".encode(), check=False, capture_output=True, env=plain)
    typed = subprocess.run([*command, "grün".encode()], check=False, capture_output=True, env=plain)
    assert [done.stdout for done in (piped, typed)] == [b"gr\\xfcn \n"] * 2
    said = [command["params"]["input"]["messages"][0]["content"] for command in server.commands("run.start")]
    assert said == ["grün", "grün"]


@pytest.mark.parametrize("thread", ["..", ".", "list", "a/b", ""])
def test_a_thread_that_can_be_none_is_exit_2_with_the_rule(server: Any, chat: Any, thread: str) -> None:
    done = chat("hi", "--url", server.url, "--thread", thread)
    assert (done.returncode, server.requests) == (2, [])
    assert "a thread id has 1 to 255 of the characters" in last_line(done)


@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_full_disk_behind_the_output_is_one_line(server: Any, environ: dict[str, str], more: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "hi", "--url", server.url, *more],
            stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, env=environ, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "pizzabot: standard output cannot be written: No space left on device\n"


def test_a_closed_output_is_one_line_and_nothing_is_asked(server: Any, environ: dict[str, str]) -> None:
    command = ["sh", "-c", '"$@" >&-', "sh", sys.executable, "-c", PROGRAM, "hi", "--url", server.url]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, env=environ, check=False)
    assert (done.returncode, server.requests) == (1, [])
    assert done.stderr == "pizzabot: standard output is closed: there is nowhere to write to\n"


def test_an_answer_that_began_anew_is_in_a_file_once(server: Any, chat: Any) -> None:
    server.cut_once = "one two"
    done = chat("one two three", "--url", server.url)
    assert (done.returncode, done.stdout) == (0, "one two three \n")
    assert done.stderr == "· the server was restarted: the answer begins anew\n"


def test_a_message_over_the_limit_of_what_is_held_is_written_as_it_comes() -> None:
    written = io.StringIO()
    screen = Screen(as_json=False, out=written, err=io.StringIO())
    screen.event(TextDelta(text="x" * MAX_HELD_CHARS, message_id="m"))
    assert not written.getvalue()
    screen.event(TextDelta(text="y", message_id="m"))
    assert written.getvalue().endswith("xy")


def test_while_the_model_is_loaded_it_says_so_once(server: Any, environ: dict[str, str]) -> None:
    server.quiet = True
    server.status = {"model": "local:small", "modelState": {"state": "loading"}}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "hi", "--url", server.url],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ,
    )  # fmt: skip
    assert process.stderr is not None
    assert process.stderr.readline().startswith("· the model local:small is being loaded; the first time, its weights")
    server.release.set()
    out, err = process.communicate(timeout=WAIT)
    assert (process.returncode, out, err) == (0, "hi \n", "")


@pytest.mark.parametrize(
    ("status", "model", "expected"),
    [
        ({"model": "a:b", "modelState": {"state": "loading"}}, None, "the model a:b is being loaded"),
        ({"model": "a:b", "modelState": {"state": "loading"}}, "other:m", None),
        (
            {"model": "a:b", "modelState": {"state": "ready"}, "runtime": {"state": "loading"}},
            None,
            "just been started",
        ),
        ({"model": "a:b", "modelState": {"state": "failed"}, "runtime": {"state": "ready"}}, None, None),
        ({}, None, None),
    ],
)
def test_what_a_silent_server_does_is_read_from_its_status(status: Any, model: Any, expected: Any) -> None:
    told = waits_for(status, model)
    assert (told is None) if expected is None else (expected in str(told))


def test_a_server_that_is_being_stopped_is_called_so(server: Any, chat: Any) -> None:
    server.refuse = (503, {"error": "shutting_down", "detail": "x"})
    done = chat("hi", "--url", server.url)
    assert done.returncode == 6
    assert (
        last_line(done)
        == f"pizzabot: no server: the server at {server.url} is being stopped; ask again when it is back"
    )


SEND = {"name": "send_mail", "args": {"to": "Ada", "text": "hi \u202e\x1b[2J"}}
APPROVAL = {
    "interruptId": "q1",
    "kind": "approval",
    "payload": {
        "action_requests": [SEND, {"name": "remove", "args": {"path": "x"}}],
        "review_configs": [
            {"action_name": "send_mail", "allowed_decisions": ["approve", "edit", "reject", "respond"]},
            {"action_name": "remove", "allowed_decisions": ["approve", "reject"]},
        ],
    },
}
INPUT = {"interruptId": "q2", "kind": "input", "payload": {"question": "Which size?"}}
CHOICE = {
    "interruptId": "q3",
    "kind": "input",
    "payload": {"question": "How many?", "answer_schema": {"type": "integer"}},
}
SIZES = [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large"}]
SIZE = {
    "interruptId": "q5",
    "kind": "input",
    "payload": {
        "version": 1,
        "mode": "choice_with_other",
        "question": "Which size?",
        "options": SIZES,
        "text": "Which size?\n1. Small\n2. Large\nOr answer in your own words.",
    },
}
TABLE = {
    "interruptId": "q6",
    "kind": "input",
    "payload": {
        "version": 2,
        "mode": "form",
        "question": "Book a table",
        "text": "Book a table:\n- how many you are\n- whether it may be inside",
        "fields": [
            {"name": "people", "label": "People", "type": "number", "required": True},
            {"name": "inside", "label": "Inside", "type": "checkbox"},
        ],
    },
}
RECOVERY = {
    "interruptId": "q4",
    "kind": "recovery",
    "payload": {
        "reason": "the server stopped while pay was running",
        "actions": [{"tool": "pay", "call_id": "c1"}],
        "choices": ["retry", "skip", "stop"],
    },
}


def waiting_for(server: Any, *questions: Any, ending: Any = None) -> None:
    server.run_questions = [*questions]
    server.ending = ending or {"event": "interrupted"}


def test_without_a_terminal_a_question_is_exit_1_with_the_command_that_asks_it(server: Any, chat: Any) -> None:
    waiting_for(server, APPROVAL)
    done = chat("hi", "--url", server.url, "--thread", "mine")
    assert (done.returncode, done.stdout) == (1, "hi \n")
    command = f"pizzabot chat --thread mine --url {server.url}"
    assert last_line(done) == f"pizzabot: the run waits for you; answer it on a terminal: {command}"
    assert server.commands("input.respond") == []


def test_a_run_that_needs_attention_names_the_command_too(server: Any, chat: Any) -> None:
    waiting_for(server, RECOVERY, ending={"event": "failed", "code": "NEEDS_ATTENTION", "error": "who knows"})
    done = chat("hi", "--url", server.url)
    assert done.returncode == 1
    assert "NEEDS_ATTENTION: who knows; answer it on a terminal: pizzabot chat --thread " in last_line(done)


def test_json_asks_nothing(server: Any, environ: dict[str, str]) -> None:
    waiting_for(server, APPROVAL)
    opened = Terminal(["hi", "--json", "--url", server.url], environ)
    try:
        opened.wait_for("answer it on a terminal")
        assert opened.process.wait(WAIT) == 1
    finally:
        opened.close()


def test_each_call_is_shown_whole_and_decided_in_line(server: Any, terminal: Terminal) -> None:
    waiting_for(server, APPROVAL)
    terminal.wait_for("> ")
    terminal.type("hi\n")
    shown = terminal.wait_for("[a]pprove / [e]dit / [r]eject / re[s]pond / [l]ater? ")
    assert "the assistant wants to call send_mail:" in shown
    assert '"text": "hi \\u202e\\u001b[2J"' in shown
    terminal.type("\n")
    terminal.wait_for("[l]ater? ")
    terminal.type("r\n")
    terminal.wait_for("why (may be empty): ")
    terminal.type("not to her\n")
    assert "wants to call remove:" in terminal.wait_for("[a]pprove / [r]eject / [l]ater? ")
    terminal.type("edit\n")
    terminal.wait_for("[l]ater? ")
    terminal.type("approve\n")
    terminal.wait_for("went on \r\n")
    terminal.wait_for("> ")
    assert server.answers == [{"decisions": [{"type": "reject", "message": "not to her"}, {"type": "approve"}]}]


def test_arguments_are_edited_as_json_and_a_wrong_edit_is_asked_again(server: Any, terminal: Terminal) -> None:
    payload = {"action_requests": [SEND], "review_configs": APPROVAL["payload"]["review_configs"]}
    waiting_for(server, {**APPROVAL, "payload": payload})
    server.refusals = [("invalid_decision", "response.decisions.0.edited_action.args.to must be a name")]
    terminal.wait_for("> ")
    terminal.type("hi\n")
    for typed in ("nonsense", '{"to": 5}'):
        terminal.wait_for("[l]ater? ")
        terminal.type("e\n")
        terminal.wait_for("arguments as JSON: ")
        terminal.type(f"\x15{typed}\n")
        if typed == "nonsense":
            terminal.wait_for("that is not JSON")
            terminal.wait_for("arguments as JSON: ")
            terminal.type('\x15{"to": 5}\n')
            terminal.wait_for("args.to must be a name")
    terminal.wait_for("went on \r\n")
    [answer] = server.answers
    assert answer == {"decisions": [{"type": "edit", "edited_action": {"name": "send_mail", "args": {"to": 5}}}]}


def test_a_result_can_be_given_instead_and_must_not_be_empty(server: Any, terminal: Terminal) -> None:
    payload = {"action_requests": [SEND], "review_configs": APPROVAL["payload"]["review_configs"]}
    waiting_for(server, {**APPROVAL, "payload": payload})
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for("[l]ater? ")
    terminal.type("s\n")
    terminal.wait_for("the result that the assistant gets: ")
    terminal.type("\n")
    terminal.wait_for("the result that the assistant gets: ")
    terminal.type("sent already\n")
    terminal.wait_for("went on \r\n")
    assert server.answers == [{"decisions": [{"type": "respond", "message": "sent already"}]}]


def test_questions_are_answered_in_text_or_json(server: Any, terminal: Terminal) -> None:
    waiting_for(server, INPUT, CHOICE)
    terminal.wait_for("> ")
    terminal.type("hi\n")
    assert "Which size?" in terminal.wait_for("answer: ")
    terminal.type("large\n")
    assert "How many?" in terminal.wait_for("answer as JSON: ")
    terminal.type("2\n")
    terminal.wait_for("went on \r\n")
    assert server.answers == ["large", 2]


def test_a_choice_and_a_form_are_shown_in_words_and_answered_line_by_line(server: Any, terminal: Terminal) -> None:
    waiting_for(server, SIZE, TABLE)
    terminal.wait_for("> ")
    terminal.type("hi\n")
    shown = terminal.wait_for("answer (a number, or your own words): ")
    assert "· Which size?\r\n  1. Small\r\n  2. Large\r\n  Or answer in your own words.\r\n" in shown
    terminal.type("2\n")
    shown = terminal.wait_for("Enter fills in the form; or answer in your own words: ")
    assert "· Large\r\n" in shown
    assert "· Book a table:\r\n  - how many you are\r\n" in shown
    terminal.type("\n")
    terminal.wait_for("People (a number, required): ")
    terminal.type("many\n")
    assert "People must be a number" in terminal.wait_for("People (a number, required): ")
    terminal.type("3\n")
    terminal.wait_for("Inside (yes or no) [y/N]: ")
    terminal.type("y\n")
    terminal.wait_for("went on \r\n")
    assert server.answers == [
        {"kind": "option", "id": "l"},
        {"kind": "form", "values": {"people": 3, "inside": True}},
    ]


def test_a_form_that_the_server_refuses_is_shown_its_faults_and_may_be_answered_in_words(
    server: Any, terminal: Terminal
) -> None:
    waiting_for(server, TABLE)
    server.refusals = [("invalid_decision", "the answer does not fit, and the question stays open: people is taken")]
    terminal.wait_for("> ")
    terminal.type("hi\n")
    for number, typed in enumerate(("", "just me")):
        terminal.wait_for("or answer in your own words: ")
        terminal.type(f"{typed}\n")
        if not number:
            terminal.wait_for("People (a number, required): ")
            terminal.type("1\n")
            terminal.wait_for("[y/N]: ")
            terminal.type("\n")
            terminal.wait_for("people is taken")
    terminal.wait_for("went on \r\n")
    assert server.answers == [{"kind": "message", "value": "just me"}]


def test_ctrl_d_in_the_middle_of_a_form_leaves_it_open_and_answer_asks_it_again(
    server: Any, terminal: Terminal
) -> None:
    waiting_for(server, TABLE)
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for("or answer in your own words: ")
    terminal.type("\n")
    terminal.wait_for("People (a number, required): ")
    terminal.type("\x04")
    terminal.wait_for("· left open")
    terminal.wait_for("[waits for you: /answer]")
    terminal.wait_for("> ")
    assert server.answers == []
    terminal.type("/answer\n")
    terminal.wait_for("or answer in your own words: ")
    terminal.type("three of us\n")
    terminal.wait_for("went on \r\n")
    assert server.answers == [{"kind": "message", "value": "three of us"}]


def test_a_question_without_a_terminal_is_exit_1_with_the_command_that_asks_it(server: Any, chat: Any) -> None:
    waiting_for(server, TABLE)
    done = chat("hi", "--url", server.url, "--thread", "mine")
    assert (done.returncode, server.answers) == (1, [])
    assert "answer it on a terminal: pizzabot chat --thread mine" in last_line(done)


def test_after_a_crash_the_person_chooses(server: Any, terminal: Terminal) -> None:
    waiting_for(server, RECOVERY, ending={"event": "failed", "code": "NEEDS_ATTENTION", "error": "x"})
    terminal.wait_for("> ")
    terminal.type("hi\n")
    shown = terminal.wait_for("[r]etry / [s]kip / s[t]op / [l]ater? ")
    assert "the server stopped while pay was running" in shown
    assert "pay (c1)" in shown
    terminal.type("s\n")
    terminal.wait_for("went on \r\n")
    assert server.answers == [{"choice": "skip"}]


def asked_of(name: str, call_id: str) -> dict[str, Any]:
    """An approval as the server has it: one call, by its id."""
    rules = [{"action_name": "mail", "allowed_decisions": ["approve", "reject"]}]
    call = {"tool_call_id": call_id, "action_requests": [{"name": "mail", "args": {"to": name}}]}
    return {"interruptId": f"q-{name}", "kind": "approval", "payload": {**call, "review_configs": rules}}


CHOICES = "[a]pprove / [r]eject / [l]ater? "


def test_a_refusal_is_called_one_and_no_failure_of_the_tool(server: Any, terminal: Terminal) -> None:
    waiting_for(server, asked_of("ada", "call-1"), asked_of("bob", "call-2"))
    errors = {"call-1": "The person refused this call.", "call-2": "no such address"}
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for(CHOICES)
    server.extra_frames = [
        ("tools", {"event": "tool-error", "tool_call_id": call, "message": text}, ["tools:1"])
        for call, text in errors.items()
    ]
    terminal.type("r\n")
    terminal.wait_for("why (may be empty): ")
    terminal.type("\n")
    terminal.wait_for(CHOICES)
    terminal.type("a\n")
    shown = terminal.wait_for("went on \r\n")
    assert "· not run: you refused it" in shown
    assert "refused this call" not in shown
    assert "· the tool failed: no such address" in shown


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["ctrl-c", "ctrl-d"])
def test_ctrl_c_and_ctrl_d_leave_everything_that_is_asked_for_later_and_send_nothing(
    server: Any, terminal: Terminal, key: str
) -> None:
    waiting_for(server, *(asked_of(name, name) for name in ("ada", "bob", "cyd")))
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for(CHOICES)
    terminal.type("a\n")
    terminal.wait_for(CHOICES)
    if key == "\x03":
        terminal.press_ctrl_c()
    else:
        terminal.type(key)
    shown = terminal.wait_for("[waits for you: /answer]")
    assert "left open; what you decided was not sent" in shown
    assert "cyd" not in shown
    terminal.wait_for("> ")
    assert server.answers == []
    terminal.type("/answer\n")
    assert "ada" in terminal.wait_for(CHOICES)


def test_what_is_put_off_is_not_asked_again_in_the_same_turn_and_what_is_new_is(
    server: Any, terminal: Terminal
) -> None:
    waiting_for(server, asked_of("ada", "1"), asked_of("bob", "2"))
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for(CHOICES)
    terminal.type("l\n")
    assert "bob" in terminal.wait_for(CHOICES)
    server.run_questions = [asked_of("cyd", "3")]
    terminal.type("a\n")
    shown = terminal.wait_for(CHOICES)
    assert "cyd" in shown
    assert "ada" not in shown
    terminal.type("a\n")
    shown = terminal.wait_for("[waits for you: /answer]")
    assert "ada" not in shown
    assert len(server.answers) == 2
    terminal.type("/answer\n")
    assert "ada" in terminal.wait_for(CHOICES)
    terminal.type("a\n")
    terminal.wait_for("went on \r\n")


@pytest.mark.parametrize(
    ("question", "prompt"), [(INPUT, "answer: "), (CHOICE, "answer as JSON: "), (RECOVERY, "[l]ater? ")]
)
def test_stop_where_one_is_asked_stops_the_turn_and_says_what_happened(
    server: Any, terminal: Terminal, question: Any, prompt: str
) -> None:
    waiting_for(server, question)
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for(prompt)
    terminal.type("/stop\n")
    terminal.wait_for("stopped; what it asked is withdrawn")
    assert "[cancelled]" in terminal.wait_for("> ")
    assert (server.stopped, server.answers) == ([None], [])
    terminal.type("and now\n")
    terminal.wait_for("and now \r\n")


def test_stop_at_an_approval_that_the_server_keeps_open_says_that_it_still_waits(
    server: Any, terminal: Terminal
) -> None:
    server.keep_questions = True
    waiting_for(server, asked_of("ada", "1"))
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for(CHOICES)
    terminal.type("/stop\n")
    terminal.wait_for("this conversation still waits for you: /answer")
    assert "[waits for you: /answer]" in terminal.wait_for("> ")
    assert server.stopped == [None]


def test_stop_at_an_approval_of_a_single_question_is_exit_1(server: Any, environ: dict[str, str]) -> None:
    waiting_for(server, asked_of("ada", "1"))
    opened = Terminal(["hi", "--url", server.url], environ)
    try:
        opened.wait_for(CHOICES)
        opened.type("/stop\n")
        opened.wait_for("pizzabot: you stopped it with /stop")
        assert opened.process.wait(WAIT) == 1
    finally:
        opened.close()


def test_an_answer_that_begins_with_a_slash_is_written_with_two(server: Any, terminal: Terminal) -> None:
    waiting_for(server, INPUT)
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for("answer: ")
    terminal.type("//stop\n")
    terminal.wait_for("went on \r\n")
    assert (server.answers, server.stopped) == (["/stop"], [])


@pytest.mark.parametrize("key", ["l\n", "\x04"], ids=["later", "ctrl-d"])
def test_a_question_that_is_left_open_is_asked_again_by_answer(server: Any, terminal: Terminal, key: str) -> None:
    waiting_for(server, INPUT if key == "\x04" else RECOVERY)
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for("answer: " if key == "\x04" else "[l]ater? ")
    terminal.type(key)
    terminal.wait_for("[waits for you: /answer]")
    terminal.wait_for("> ")
    terminal.type("/answer\n")
    terminal.wait_for("answer: " if key == "\x04" else "[l]ater? ")
    terminal.type("here\n" if key == "\x04" else "retry\n")
    terminal.wait_for("went on \r\n")
    terminal.wait_for("> ")
    terminal.type("/answer\n")
    terminal.wait_for("nothing waits for you here")


def test_what_another_client_decided_is_said_and_not_asked_again(server: Any, terminal: Terminal) -> None:
    waiting_for(server, INPUT)
    server.refusals = [("already_decided", "interrupt 'q2' was decided by me")]
    terminal.wait_for("> ")
    terminal.type("hi\n")
    terminal.wait_for("answer: ")
    server.questions = []
    terminal.type("large\n")
    terminal.wait_for("was decided by me")
    terminal.wait_for("> ")
    assert server.answers == []


def test_the_prompt_begins_with_what_is_open(server: Any, environ: dict[str, str]) -> None:
    server.questions = [INPUT]
    opened = Terminal(["--url", server.url, "--thread", "mine"], environ)
    try:
        opened.wait_for("answer: ")
        opened.type("small\n")
        opened.wait_for("went on \r\n")
        assert server.answers == ["small"]
    finally:
        opened.close()


def test_a_question_of_one_run_is_asked_on_a_terminal_too(server: Any, environ: dict[str, str]) -> None:
    waiting_for(server, INPUT)
    opened = Terminal(["hi", "--url", server.url], environ)
    try:
        opened.wait_for("answer: ")
        opened.type("small\n")
        opened.wait_for("went on \r\n")
        assert opened.process.wait(WAIT) == 0
    finally:
        opened.close()


@pytest.mark.parametrize(
    ("environ", "dims"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({}, False)],
)
def test_a_plain_terminal_gets_no_escapes(environ: dict[str, str], dims: bool) -> None:
    assert may_dim(environ) is dims


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
    assert set(server.stopped) == set(server.runs.values())
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
    terminal.wait_for("a thread id has 1 to 255")
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
