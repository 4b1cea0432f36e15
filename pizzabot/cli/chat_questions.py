"""What a run waits for, asked in line: tool calls to allow, questions to answer, what to do after a crash.

Enter alone decides nothing. `later` leaves a question open, Ctrl-C and Ctrl-D all of them; they can be asked again,
here or elsewhere. `/stop` stops the turn instead.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pizzabot.cli.chat_forms import Person
from pizzabot.cli.chat_screen import one_line, visible
from pizzabot.cli.chat_session import Session
from pizzabot.cli.streams import NotText
from pizzabot.client import Question, RefusedError, RunEnded, RunFailed, RunOutcome
from pizzabot_hookspecs.support.questions import checked_question, is_question

LATER = "later"
STOP = "/stop"
KEYS = {
    "approve": "a",
    "reject": "r",
    "edit": "e",
    "respond": "s",
    "retry": "r",
    "skip": "s",
    "stop": "t",
    LATER: "l",
}
"""Each word with the letter that stands for it: no two of one question have the same."""
_SHOWN = {"respond": "re[s]pond", "stop": "s[t]op"}
_MOVED = frozenset({"already_decided", "no_such_interrupt"})
"""Somebody else was faster."""


class _LeftOpen(Exception):
    """The person decides this one later."""


class _AllLeftOpen(Exception):
    """The person decides nothing now."""


class _TurnStopped(Exception):
    """The person does not want what is asked for to go on."""


def waits(end: RunEnded | RunFailed) -> bool:
    """Whether the run ended because a person has to say something."""
    if isinstance(end, RunFailed):
        return end.code == "NEEDS_ATTENTION"
    return end.outcome is RunOutcome.INTERRUPTED


class Asking:
    """What one turn asks, until it is at its end. A question that is put off is not asked again by the same object."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._put_off: set[str] = set()
        self.given_up = False
        """Whether the person stopped the turn instead of answering."""

    def settle(self, end: RunEnded | RunFailed) -> RunEnded | RunFailed:
        """Ask and follow until the run is at its end, or what it asks is put off; how the last run ended."""
        while waits(end) and self._session.screen.can_ask:
            further = self._ask()
            if self.given_up:
                return RunEnded(run_id=end.run_id, outcome=RunOutcome.CANCELLED)
            if further is None:
                break
            end = further
        return end

    def answer_open(self) -> RunEnded | RunFailed | None:
        """Ask what is open on the thread and go on with it; None where nothing was decided."""
        end = self._ask() if self._session.screen.can_ask else None
        return None if end is None else self.settle(end)

    def _ask(self) -> RunEnded | RunFailed | None:
        """Once; how the run that went on ended."""
        while questions := [found for found in self._session.questions() if found.interrupt_id not in self._put_off]:
            answers = self._answers(questions)
            if not answers:
                return None
            try:
                return self._session.answer(answers)
            except RefusedError as error:
                if error.code != "invalid_decision" and error.code not in _MOVED:
                    raise
                self._session.screen.notice(f"· {error.detail}")
        return None

    def _answers(self, questions: Sequence[Question]) -> dict[str, Any]:
        """A recovery is decided alone; everything else together, as far as the person decides it."""
        recovery = next((question for question in questions if question.kind == "recovery"), None)
        answers: dict[str, Any] = {}
        for question in questions if recovery is None else [recovery]:
            try:
                answers[question.interrupt_id] = _ASKING.get(question.kind, _approval)(self._session, question.payload)
            except _LeftOpen:
                self._put_off.add(question.interrupt_id)
                self._session.screen.notice("· left open")
            except _AllLeftOpen:
                self._put_off.update(found.interrupt_id for found in questions)
                unsent = "; what you decided was not sent" if answers else ""
                self._session.screen.notice(f"· left open{unsent}")
                return {}
            except _TurnStopped:
                self.given_up = stop_turn(self._session)
                return {}
        return answers


def stop_turn(session: Session) -> bool:
    """Stop what runs or waits on the thread and say what became of it; whether nothing waits any more."""
    waited = session.questions()
    session.stop()
    if session.questions():
        session.screen.notice("· this conversation still waits for you: /answer")
        return False
    session.screen.notice("stopped; what it asked is withdrawn" if waited else "stopped")
    return True


def _approval(session: Session, payload: Any) -> Any:
    payload = payload if isinstance(payload, Mapping) else {}
    rules = {str(rule.get("action_name")): rule for rule in payload.get("review_configs") or ()}
    decisions = []
    for action in payload.get("action_requests") or ():
        name = str(action.get("name"))
        session.screen.notice(f"· the assistant wants to call {visible(one_line(name))}:")
        _show(session, action.get("args"))
        allowed = [word for word in rules.get(name, {}).get("allowed_decisions") or () if word in KEYS]
        decision = _decision(session, _choose(session, allowed), action)
        if isinstance(call_id := payload.get("tool_call_id"), str):
            session.screen.decided(call_id, refused=decision["type"] == "reject")
        decisions.append(decision)
    return {"decisions": decisions}


def _decision(session: Session, kind: str, action: Mapping[str, Any]) -> dict[str, Any]:
    if kind == "reject":
        message = _line(session, "why (may be empty): ")
        return {"type": kind, "message": message} if message.strip() else {"type": kind}
    if kind == "respond":
        return {"type": kind, "message": _filled(session, "the result that the assistant gets: ")}
    if kind == "edit":
        written = json.dumps(action.get("args") or {}, ensure_ascii=True)
        arguments = _json(session, "arguments as JSON: ", prefilled=written, table=True)
        return {"type": kind, "edited_action": {"name": action.get("name"), "args": arguments}}
    return {"type": kind}


def _input(session: Session, payload: Any) -> Any:
    if is_question(payload):
        person = Person(tell=partial(session.screen.notice, as_it_is=True), read=partial(_line, session))
        return person.answer(checked_question(payload))
    asked = payload if isinstance(payload, Mapping) else {"question": payload}
    session.screen.notice(f"· {asked.get('question') or 'the assistant asks for an answer'}")
    schema = asked.get("answer_schema")
    if not isinstance(schema, Mapping) or schema.get("type") in (None, "string"):
        return _filled(session, "answer: ")
    _show(session, schema)
    return _json(session, "answer as JSON: ")


def _recovery(session: Session, payload: Any) -> Any:
    payload = payload if isinstance(payload, Mapping) else {}
    session.screen.notice(f"· {payload.get('reason') or 'a tool was running, and no result of it was kept'}")
    for action in payload.get("actions") or ():
        session.screen.notice(f"  {action.get('tool')} ({action.get('call_id')})")
    return {"choice": _choose(session, [word for word in payload.get("choices") or () if word in KEYS])}


_ASKING: dict[str, Callable[[Session, Any], Any]] = {"approval": _approval, "input": _input, "recovery": _recovery}


def _show(session: Session, value: Any) -> None:
    """All of it: nobody should allow what was cut off."""
    for line in visible(json.dumps(value, ensure_ascii=False, indent=2)).split("\n"):
        session.screen.notice(f"  {line}", as_it_is=True)


def _choose(session: Session, allowed: Sequence[str]) -> str:
    words = [*allowed, LATER]
    asked = " / ".join(_SHOWN.get(word, f"[{word[0]}]{word[1:]}") for word in words)
    while True:
        given = _line(session, f"{asked}? ").strip().lower()
        for word in words:
            if given in (word, KEYS[word]):
                if word == LATER:
                    raise _LeftOpen
                return word


def _filled(session: Session, prompt: str) -> str:
    while not (given := _line(session, prompt).strip()):
        pass
    return given.removeprefix("/") if given.startswith("//") else given  # as at the prompt


def _json(session: Session, prompt: str, *, prefilled: str = "", table: bool = False) -> Any:
    while True:
        written = _line(session, prompt, prefilled)
        try:
            value = json.loads(written)
        except (ValueError, RecursionError) as error:
            session.screen.notice(f"· that is not JSON: {error}")
            prefilled = prefilled and written
            continue
        if not table or isinstance(value, dict):
            return value
        session.screen.notice("· arguments are an object: {…}")


def _line(session: Session, prompt: str, prefilled: str = "") -> str:
    while True:
        try:
            given = session.screen.read(prompt, prefilled)
            if given.strip() == STOP:
                raise _TurnStopped
            return given
        except NotText as error:
            session.screen.notice(f"· {error}")
        except (EOFError, KeyboardInterrupt):
            session.screen.notice("")
            raise _AllLeftOpen from None


def how_to_answer(session: Session, usual_url: str) -> str:
    """The command that asks the open questions of this thread."""
    where = "" if session.url == usual_url else f" --url {shlex.quote(session.url)}"
    return f"pizzabot chat --thread {shlex.quote(session.thread_id)}{where}"
