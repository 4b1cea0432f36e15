"""What can happen in a turn, as scripts for the echo model, with what a user must have seen when it is over."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sdk import Call, Scope, conversation

WORDS = " ".join(f"w{number}" for number in range(40))
ENDLESS = " ".join(f"w{number}" for number in range(2000))
"""At the pace of the tests still being told when they come to stop it, however busy the machine is."""
APPROVE = {"decisions": [{"type": "approve"}]}
REJECT = {"decisions": [{"type": "reject", "message": "not now"}]}


def edited(name: str, **args: Any) -> dict[str, Any]:
    return {"decisions": [{"type": "edit", "edited_action": {"name": name, "args": args}}]}


def tool(name: str, **args: Any) -> str:
    return f"[[tool {name} {json.dumps(args)}]]"


def delegated(description: str) -> str:
    """A call of `task` whose description is a script for the subagent alone: its directives are escaped."""
    task = json.dumps({"description": description, "subagent_type": "clerk"})
    for bracket, escaped in (("[", "\\u005b"), ("]", "\\u005d")):
        task = task.replace(bracket, escaped)
    return f"[[tool task {task}]]"


@dataclass(frozen=True)
class Scenario:
    """`script(mark)` is the message; `mark` makes its gate the test's own.

    `gate`       where the run is in its middle: it stands there while the test does something to it; None: `sees`
    `siblings`   tools that run beside the one at the gate and have ended by then
    `sees`       text that has come by then
    `answers`    of a run that asks before it comes to its gate, by the `to` or the question of what is asked
    `texts`      whole messages with text, of the root; `reasoning` that of all of them
    `tools`      the root's, sorted; `clerk`: texts and tools of the subagent
    `error`      what the run fails with
    `results`    how the texts of the state's tool messages end, in any order (an edit is told before the result)
    """

    name: str
    script: Callable[[str], str]
    gate: str | None = None
    siblings: tuple[str, ...] = ()
    sees: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    reasoning: str = ""
    tools: Callable[[str], list[Call]] = lambda _: []
    clerk: Callable[[str], tuple[list[str], list[Call]]] | None = None
    results: Callable[[str], list[str]] = lambda _: []
    error: str | None = None

    def check(self, mark: str, scope: Scope) -> None:
        """`scope` is all that the projections showed of the turn."""
        assert scope.texts == list(self.texts)
        assert "".join(message.reasoning for message in scope.messages if message.whole) == self.reasoning
        assert scope.tools == self.tools(mark)
        assert len(scope.subagents) == (1 if self.clerk else 0)
        if self.clerk is not None:
            (below,) = scope.subagents
            assert (below.texts, below.tools) == self.clerk(mark)

    def check_state(self, mark: str, values: dict[str, Any]) -> None:
        """`values` holds this turn last. Nothing is there twice."""
        ids = [message["id"] for message in values["messages"]]
        assert len(ids) == len(set(ids))
        told = conversation(values)
        start = max(index for index, (kind, _) in enumerate(told) if kind == "human")
        assert told[start] == ("human", self.script(mark))
        assert [text for kind, text in told[start:] if kind == "ai" and text] == list(self.texts)
        results = [text for kind, text in told[start:] if kind == "tool"]
        assert len(results) == len(self.results(mark))
        for expected in self.results(mark):
            assert len([text for text in results if text.endswith(expected)]) == 1, (expected, results)
        assert not [key for key in values if key.startswith("_")], "a private channel"


def saw(mark: str) -> list[Call]:
    return [Call("look", {"what": mark}, f"saw {mark}")]


def mailed_by_the_clerk(mark: str) -> str:
    return f"{tool('mail', to='cyd')} [[then]] {tool('look', what=mark)} [[then]] sent"


SCENARIOS = [
    Scenario("text", lambda _: f"[[pace 0.01]]{WORDS}", sees="w9", texts=(WORDS,)),
    Scenario(
        "reasoning",
        lambda _: f"[[pace 0.01]][[reasoning a long thought]]{WORDS}",
        sees="w9",
        texts=(WORDS,),
        reasoning="a long thought",
    ),
    Scenario(
        "tool",
        lambda mark: f"{tool('look', what=mark)} [[then]] looked",
        gate="look",
        texts=("looked",),
        tools=saw,
        results=lambda mark: [f"saw {mark}"],
    ),
    Scenario(
        "parallel tools",
        lambda mark: (
            f"Let me see. {tool('look', what=mark)} {tool('note', text='n')} "
            f"[[then]] {tool('boom', why='x')} [[then]] ok"
        ),
        gate="look",
        siblings=("note",),
        texts=("Let me see.", "ok"),
        tools=lambda mark: [
            Call("boom", {"why": "x"}, error="boom: x"),
            *saw(mark),
            Call("note", {"text": "n"}, "noted"),
        ],
        results=lambda mark: [f"saw {mark}", "noted", "or go on without this tool."],
    ),
    Scenario(
        "subagent",
        lambda mark: f"{delegated(tool('look', what=mark) + ' [[then]] reported')} [[then]] delegated",
        gate="look",
        texts=("delegated",),
        tools=lambda mark: [
            Call(
                "task",
                {"description": tool("look", what=mark) + " [[then]] reported", "subagent_type": "clerk"},
                "reported",
            )
        ],
        clerk=lambda mark: (["reported"], saw(mark)),
        results=lambda _: ["reported"],
    ),
    Scenario(
        "parallel approvals",
        lambda mark: (
            f"{tool('mail', to='ada')} {tool('mail', to='bob')} [[then]] {tool('look', what=mark)} [[then]] mailed"
        ),
        gate="look",
        answers={"ada": APPROVE, "bob": edited("mail", to="bob@home")},
        texts=("mailed",),
        tools=lambda mark: [
            *saw(mark),
            Call("mail", {"to": "ada"}, "mail sent to ada"),
            Call("mail", {"to": "bob@home"}, "mail sent to bob@home"),
        ],
        results=lambda mark: [f"saw {mark}", "mail sent to ada", "mail sent to bob@home"],
    ),
    Scenario(
        "nested approval",
        lambda mark: f"{delegated(mailed_by_the_clerk(mark))} [[then]] delegated",
        gate="look",
        answers={"cyd": APPROVE},
        texts=("delegated",),
        tools=lambda mark: [
            Call(
                "task",
                {"description": mailed_by_the_clerk(mark), "subagent_type": "clerk"},
                "sent",
            )
        ],
        clerk=lambda mark: (["sent"], [*saw(mark), Call("mail", {"to": "cyd"}, "mail sent to cyd")]),
        results=lambda _: ["sent"],
    ),
    Scenario(
        "question",
        lambda mark: f"{tool('ask', question='Which size?')} [[then]] {tool('look', what=mark)} [[then]] thanks",
        gate="look",
        answers={"Which size?": "large"},
        texts=("thanks",),
        tools=lambda mark: [Call("ask", {"question": "Which size?"}, "the person said large"), *saw(mark)],
        results=lambda mark: ["the person said large", f"saw {mark}"],
    ),
    Scenario(
        "failure",
        lambda mark: f"{tool('look', what=mark)} [[then]] [[error RATE_LIMIT slow down]]",
        gate="look",
        tools=saw,
        results=lambda mark: [f"saw {mark}"],
        error="slow down",
    ),
]
