"""The prompt of `pizzabot chat`: a line is said, one that begins with / is a command. Ctrl-C twice or Ctrl-D leaves."""

from __future__ import annotations

from enum import Enum, auto

from pizzabot.cli.chat_memory import ID_RULE, is_thread_id
from pizzabot.cli.chat_questions import Asking, stop_turn, waits
from pizzabot.cli.chat_session import Session
from pizzabot.cli.exit_codes import ExitCode
from pizzabot.cli.streams import NotText
from pizzabot.client import ClientError, RefusedError, RunEnded, RunFailed, RunOutcome

PROMPT = "> "
HELP = (
    "/new            begin a new conversation",
    "/thread [ID]    show this conversation's id, or go to another one",
    "/answer         answer what this conversation waits for: tool calls to allow, questions",
    "/stop           stop what runs or waits on this conversation, whoever started it; also where you are asked",
    "/status         show the server's version, model and state",
    "/help           show this",
    "/quit           leave (Ctrl-D; Ctrl-C stops an answer, twice at the prompt leaves)",
    "//text          say a text that begins with a slash",
)


class _Next(Enum):
    GO_ON = auto()
    LEAVE = auto()


def converse(session: Session) -> int:
    """Ask and answer until the person leaves; 0, or 130 when it was with Ctrl-C."""
    _enable_editing()
    session.screen.notice(f"thread {session.thread_id} · /help")
    pressed, asked = False, False
    while True:
        try:
            if not asked:
                asked = True
                _answer_open(session)
            line = session.screen.read(PROMPT)
            pressed = False
            if _handle(session, line) is _Next.LEAVE:
                return ExitCode.OK
        except EOFError:
            session.screen.notice("")
            return ExitCode.OK
        except KeyboardInterrupt:
            if pressed:
                session.screen.notice("")
                return ExitCode.INTERRUPTED
            pressed = True
            session.screen.notice("Ctrl-C again, /quit or Ctrl-D leaves")
        except NotText as error:
            session.screen.notice(str(error))
        except ClientError as error:
            session.screen.notice(f"{error.detail} ({error.code})")


def _enable_editing() -> None:
    try:
        import readline
    except ImportError:  # a Python without it: the terminal's own line editing is left
        return
    readline.set_auto_history(True)


def _handle(session: Session, line: str) -> _Next:
    text = line.strip()
    if not text:
        return _Next.GO_ON
    if text.startswith("/") and not text.startswith("//"):
        return _command(session, text)
    _say(session, text.removeprefix("/") if text.startswith("//") else text)
    return _Next.GO_ON


def _say(session: Session, text: str) -> None:
    try:
        end = session.ask(text)
    except RefusedError as error:
        if error.code != "interrupt_pending":
            raise
        session.screen.notice("· this conversation waits for you; what you said was not sent")
        _answer_open(session)
        return
    _tell_end(session, Asking(session).settle(end))


def _answer_open(session: Session) -> None:
    """Ask what was left open, here or in another client."""
    end = Asking(session).answer_open()
    if end is not None:
        _tell_end(session, end)


def _tell_end(session: Session, end: RunEnded | RunFailed) -> None:
    if waits(end):
        session.screen.notice("[waits for you: /answer]")
    elif isinstance(end, RunFailed):
        session.screen.notice(f"run failed: {end.code}: {end.detail}")
    elif end.outcome is not RunOutcome.COMPLETED:
        session.screen.notice(f"[{end.outcome.value}]")


def _command(session: Session, text: str) -> _Next:
    word, _, argument = text.partition(" ")
    argument = argument.strip()
    if word in ("/quit", "/exit", "/q"):
        return _Next.LEAVE
    if word == "/new":
        session.new_thread()
        session.screen.notice(f"thread {session.thread_id}")
    elif word == "/thread":
        _thread(session, argument)
    elif word == "/answer":
        if not session.questions():
            session.screen.notice("nothing waits for you here")
        _answer_open(session)
    elif word == "/stop":
        stop_turn(session)
    elif word == "/status":
        _status(session)
    elif word == "/help":
        for line in HELP:
            session.screen.notice(line, as_it_is=True)
    else:
        session.screen.notice(f"no command {word}; /help lists them, //… says a text that begins with a slash")
    return _Next.GO_ON


def _thread(session: Session, argument: str) -> None:
    if argument and not is_thread_id(argument):
        session.screen.notice(ID_RULE)
        return
    session.thread_id = argument or session.thread_id
    session.screen.notice(f"thread {session.thread_id}")
    if argument:
        _answer_open(session)


def _status(session: Session) -> None:
    status = session.status()
    runtime, runs = status.get("runtime"), status.get("runs")
    facts = {
        "version": status.get("version"),
        "model": status.get("model") or "none",
        "runtime": runtime.get("state") if isinstance(runtime, dict) else None,
        "active runs": runs.get("active") if isinstance(runs, dict) else None,
    }
    session.screen.notice(" · ".join(f"{name} {value}" for name, value in facts.items() if value is not None))
