"""`pizzabot chat`: one question and its answer, or a conversation at a prompt, with a running server.

With TEXT (or text piped in) it asks once, streams the answer to stdout and ends; without, it is a prompt. Everything
that is not the answer goes to stderr. What a run waits for is asked in line on a terminal. Exit codes: 0 answered, 1
the run failed or waits for a person or the server refused, 2 usage, 3 the token cannot be found, 6 no server,
130 stopped with Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.failures import say
from pizzabot.cli.streams import NotText, read_text, text_of

if TYPE_CHECKING:
    from pizzabot.cli.chat_session import Session
    from pizzabot.client import ClientError

MAX_INPUT_CHARS = 1_000_000
"""What is read from a pipe at most; more is refused, not cut."""


class ChatError(Exception):
    """What is said in the last line, and the exit code."""

    def __init__(self, exit_code: ExitCode, line: str) -> None:
        super().__init__(line)
        self.exit_code = exit_code


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what to say; without it a prompt, or what is piped in")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--thread", metavar="ID", help="go on in this conversation")
    where.add_argument("--new", action="store_true", help="begin a new conversation (a single question always does)")
    where.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on in the last conversation")
    parser.add_argument("--url", metavar="URL", help="the server (default PIZZABOT_URL, else http://127.0.0.1:8080)")
    parser.add_argument(
        "--token",
        metavar="REF",
        help="the API token as env:NAME or file:PATH (default env:PIZZABOT_API_TOKEN); a plain value shows in `ps`",
    )
    parser.add_argument("--model", metavar="USE:MODEL", help="answer with this model instead of the server's")
    parser.add_argument("--json", action="store_true", help="print the protocol's frames, one JSON object a line")


def run(args: argparse.Namespace) -> int:
    from pizzabot.client import ClientError

    try:
        return _chat(args)
    except ChatError as problem:
        return _say(problem.exit_code, str(problem))
    except ClientError as error:
        return _say(*_explained(error, args))
    except UnicodeEncodeError:
        return _say(ExitCode.USAGE, "the token or the address has characters that no request can carry")
    except KeyboardInterrupt:
        return _say(ExitCode.INTERRUPTED, "stopped with Ctrl-C")


def _chat(args: argparse.Namespace) -> int:
    from pizzabot.cli.chat_session import Session

    text = _text(args)
    _check_words(args)
    token = token_of(args.token, os.environ)
    with Session(url=url_of(args.url, os.environ), token=token, model=args.model, as_json=args.json) as session:
        session.connect()
        if not args.model:
            _check_model(session)
        session.choose_thread(args.thread, go_on=args.go_on or (text is None and not args.new))
        if text is None:
            from pizzabot.cli.chat_prompt import converse

            return converse(session)
        return _ask_once(session, text)


def _text(args: argparse.Namespace) -> str | None:
    """What to say once; None for a prompt."""
    if not args.text and sys.stdin.isatty():
        return None
    try:
        text = text_of(" ".join(args.text)) if args.text else read_text(sys.stdin, MAX_INPUT_CHARS)
    except NotText as error:
        raise ChatError(ExitCode.USAGE, f"what you say cannot be sent: {error}") from error
    if len(text) > MAX_INPUT_CHARS:
        raise ChatError(ExitCode.USAGE, f"the text is longer than {MAX_INPUT_CHARS} characters")
    if not text.strip():
        raise ChatError(ExitCode.USAGE, 'there is nothing to say: pizzabot chat "TEXT", or pipe a text in')
    return text


def _check_words(args: argparse.Namespace) -> None:
    """What becomes part of a request: refused here, where it can be said which option it was."""
    from pizzabot.cli.chat_memory import ID_RULE, is_thread_id

    for option in ("thread", "url", "token", "model"):
        given = getattr(args, option)
        try:
            setattr(args, option, None if given is None else text_of(given))
        except NotText as error:
            raise ChatError(ExitCode.USAGE, f"argument --{option}: {error}") from error
    if args.thread is not None and not is_thread_id(args.thread):
        raise ChatError(ExitCode.USAGE, f"argument --thread: {ID_RULE}")
    if args.model is not None and not args.model.strip():
        raise ChatError(ExitCode.USAGE, "argument --model: it is empty: name a model as USE:MODEL, or leave it out")


def _ask_once(session: Session, text: str) -> int:
    from pizzabot.cli.chat_questions import Asking, how_to_answer, waits
    from pizzabot.client import RunFailed, RunOutcome

    asking = Asking(session)
    end = asking.settle(session.ask(text))
    if asking.given_up:
        return _say(ExitCode.FAILED, "you stopped it with /stop")
    if waits(end) and not session.stopped:
        way_out = f"answer it on a terminal: {how_to_answer(session, url_of(None, os.environ))}"
        reason = f"run failed: {end.code}: {end.detail}" if isinstance(end, RunFailed) else "the run waits for you"
        return _say(ExitCode.FAILED, f"{reason}; {way_out}")
    if isinstance(end, RunFailed):
        return _say(ExitCode.FAILED, f"run failed: {end.code}: {end.detail}")
    if session.stopped:
        return _say(ExitCode.INTERRUPTED, "stopped with Ctrl-C")
    if end.outcome is RunOutcome.COMPLETED:
        return ExitCode.OK
    why = {
        RunOutcome.CANCELLED: "the run was stopped by somebody else",
        RunOutcome.SUPERSEDED: "another message on this thread took the run's place",
        RunOutcome.INTERRUPTED: "the run waits for you",
    }
    return _say(ExitCode.FAILED, why[end.outcome])


def _check_model(session: Session) -> None:
    """A server without a model would only fail the run: say beforehand how to get one."""
    status = session.status()
    if "model" not in status or status["model"] is not None:
        return
    for way in session.ways_to_a_model(status):
        session.screen.notice(way)
    raise ChatError(
        ExitCode.FAILED, "the server has no model: restart it in one of the ways above, or name one with --model"
    )


def url_of(given: str | None, environ: Mapping[str, str]) -> str:
    """`--url`, PIZZABOT_URL, or this machine at PORT or 8080."""
    return given or environ.get("PIZZABOT_URL") or f"http://127.0.0.1:{environ.get('PORT') or 8080}"


def token_of(reference: str | None, environ: Mapping[str, str]) -> str | None:
    """The token behind a reference. None where none is named and PIZZABOT_API_TOKEN is not set."""
    if reference is None:
        return environ.get("PIZZABOT_API_TOKEN") or None
    kind, _, name = reference.partition(":")
    if reference.startswith("${") and reference.endswith("}"):
        kind, name = "env", reference[2:-1]
    if kind == "env":
        if not (value := environ.get(name, "").strip()):
            raise ChatError(
                ExitCode.CONFIGURATION, f"the token cannot be had: the environment variable {name} is not set"
            )
        return value
    if kind == "file":
        return _token_in(Path(name).expanduser())
    return reference


def _token_in(path: Path) -> str:
    try:
        value = path.read_text(encoding="utf-8")[:10_000].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ChatError(ExitCode.CONFIGURATION, f"the token cannot be read from {path}: {error}") from error
    if not value:
        raise ChatError(ExitCode.CONFIGURATION, f"the token cannot be read from {path}: it is empty")
    return value


def _explained(error: ClientError, args: argparse.Namespace) -> tuple[ExitCode, str]:
    from pizzabot.client import IncompatibleError, RefusedError, StreamCutError, UnreachableError
    from pizzabot.client.channel import STOPPING

    if isinstance(error, UnreachableError):
        start = "start one with `pizzabot serve`, or name another with --url"
        way_out = "ask again when it is back" if error.code in STOPPING else start
        return ExitCode.UNREACHABLE, f"no server: {error.detail}; {way_out}"
    if isinstance(error, IncompatibleError):
        return ExitCode.UNREACHABLE, f"{error.detail}; name the server with --url"
    if isinstance(error, StreamCutError):
        return ExitCode.UNREACHABLE, f"{error.detail}; the run is kept, and goes on once the server is there again"
    if isinstance(error, RefusedError) and error.status == 401:
        held = "the one given is not it" if args.token or os.environ.get("PIZZABOT_API_TOKEN") else "none was given"
        return ExitCode.FAILED, f"the server wants a token, and {held}: set PIZZABOT_API_TOKEN, or use --token"
    more = "; `pizzabot chat --thread ID` on a terminal asks you" if error.code == "interrupt_pending" else ""
    return (ExitCode.USAGE if error.code == "bad_url" else ExitCode.FAILED), f"{error.detail} ({error.code}){more}"


def _say(exit_code: ExitCode, line: str) -> int:
    from pizzabot.cli.chat_screen import one_line

    say(one_line(line))
    return exit_code
