"""What is said in the scenes, and what a client must see of it, however it looks and whatever happened meanwhile."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

APPROVE = {"decisions": [{"type": "approve"}]}
EDIT = {"decisions": [{"type": "edit", "editedAction": {"name": "mail", "args": {"to": "cyd"}}}]}
"""In the spelling of JavaScript, which only StreamController translates."""
REJECT = {"decisions": [{"type": "reject", "message": "not today"}]}

Call = tuple[str, str]
"""Name of a tool, and what its result begins with."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A turn whose first word is `one`.

    `answers`    the texts of the orchestrator; `inner` those of the subagent to which it delegates
    `calls`      the orchestrator's own, `inner_calls` the subagent's
    `asked`      whom a mail was to go to, for each question to the person; `responses` the answers
    `failed`     the code and the text with which the run ends
    """

    text: str
    answers: tuple[str, ...]
    reasoning: str = ""
    calls: tuple[Call, ...] = ()
    inner: tuple[str, ...] = ()
    inner_calls: tuple[Call, ...] = ()
    asked: tuple[str, ...] = ()
    responses: tuple[Any, ...] = ()
    failed: tuple[str, str] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """What its scenes are given."""
        last = self.inner[-1] if self.inner else None
        return {"text": self.text, "first": "one", "inner": last, "responses": list(self.responses) or None}

    @property
    def stored(self) -> tuple[str, ...]:
        """The answers that the thread keeps."""
        return () if self.failed else self.answers


def tool(name: str, **args: Any) -> str:
    return f"[[tool {name} {json.dumps(args)}]]"


def task(description: str) -> str:
    return tool("task", subagent_type="clerk", description=description)


PACE = "[[pace 0.05]]"
LONG = "one two three four five six seven eight nine ten eleven twelve"
"""Long enough that the connection, or the server, is gone before it is told."""
ADDED = ("add", "1 and 2 make 3")
INNER = f"{PACE} adding {tool('add', a=1, b=2)} [[then]] {PACE} all added up"
INNER_MAIL = f"{PACE} mailing {tool('mail', to='ada')} [[then]] {PACE} all sent"
MAILS = " ".join(tool("mail", to=name) for name in ("ada", "bob", "dee"))
EDITED = "Note: the person changed the arguments"

CASES = {
    "text": Case(text=f"{PACE} {LONG}", answers=(LONG,)),
    "reasoning": Case(
        text=f"{PACE} [[reasoning a thought of some length]] {LONG}",
        answers=(LONG,),
        reasoning="a thought of some length",
    ),
    "tool calls": Case(
        text=f"{PACE} {LONG} {tool('add', a=1, b=2)} {tool('boom', why='it is broken')} [[then]] {PACE} three four",
        answers=(LONG, "three four"),
        calls=(ADDED, ("boom", "boom: it is broken")),
    ),
    "subagent": Case(
        text=f"{PACE} {LONG} {task(INNER)} [[then]] {PACE} three four five",
        answers=(LONG, "three four five"),
        calls=(("task", "all added up"),),
        inner=("adding", "all added up"),
        inner_calls=(ADDED,),
    ),
    "parallel approvals": Case(
        text=f"{PACE} one two {MAILS} [[then]] three",
        answers=("one two", "three"),
        calls=(("mail", "mail sent to ada"), ("mail", EDITED), ("mail", "The person refused")),
        asked=("ada", "bob", "dee"),
        responses=(APPROVE, EDIT, REJECT),
    ),
    "nested approvals": Case(
        text=f"{PACE} one two {task(INNER_MAIL)} [[then]] {PACE} three",
        answers=("one two", "three"),
        calls=(("task", "all sent"),),
        inner=("mailing", "all sent"),
        inner_calls=(("mail", "mail sent to ada"),),
        asked=("ada",),
        responses=(APPROVE,),
    ),
    "failure": Case(
        text=f"{PACE} [[error-after 11 RATE_LIMIT slow down]] {LONG}",
        answers=(LONG.removesuffix("twelve"),),
        failed=("RATE_LIMIT", "slow down"),
    ),
}

OTHER = Case(text=f"{PACE} one more and other words", answers=("one more and other words",))
"""A turn that shares no message with another."""
