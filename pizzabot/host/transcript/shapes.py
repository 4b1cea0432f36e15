"""What a transcript is, as JSON: the state of the fold with its turns, items, runs and requests (spec/12 §1.1).

The TypeScript fold has the same keys (`tests/wire/fold/`). `seq` is the first event of a thing and so its place, `rev`
the last event that changed it. Times are milliseconds.
"""

from __future__ import annotations

import json
from typing import Any, NotRequired, TypeAlias, TypedDict

from pizzabot_hookspecs.wire import Namespace

Item: TypeAlias = dict[str, Any]
"""`{id, kind, seq, rev, namespace, agent?}` and by `kind`:

text       `{text, state: open|done|cut, role?: "user"}`; id `<message id>:<block>`
reasoning  `{text, state, startedAt, endedAt}`; id as a text's
tool       `{callId, name, input?, output?, error?, state: writing|open|done|failed|cut}`; id `tool:<call id>`, below a
           subagent `tool:<its namespace>/<call id>`
subagent   the same and `{title, steps, child?}`; `name` is the subagent, `child` the namespace of what it does
request    `{interruptId, requestKind, state, payload, answer?, by?, at?}`; id `request:<interrupt id>`
notice     `{code, text}`; id `notice:<seq>`

`namespace` is that of the graph: `[]` for the thread itself, `["tools:<id>"]` for what a subagent says and does.
`input`, `output` and `error` are text, JSON as it was written; in a page they may be a preview (`previews.py`).
`partial` marks a call whose arguments were cut off.
"""


class Turn(TypedDict):
    """`seq` and `rev` do not count what happens below a subagent. `open` has the messages that are being said."""

    id: str
    seq: int
    rev: int
    parentId: str | None
    source: str | None
    message: dict[str, Any] | None
    base: str | None
    runs: list[str]
    status: str
    code: NotRequired[str]
    error: NotRequired[str]
    items: list[Item]
    open: dict[str, dict[str, Any]]
    elided: NotRequired[dict[str, dict[str, int]]]


class RunRecord(TypedDict):
    """`turnId` may name a turn that is not loaded. `attempts` counts how often it was said to be running."""

    runId: str
    turnId: str
    seq: int
    rev: int
    status: str
    attempts: int
    startedAt: int
    endedAt: NotRequired[int]
    code: NotRequired[str]
    model: NotRequired[str]
    end: NotRequired[str]
    usage: NotRequired[dict[str, Any]]


class Request(TypedDict):
    interruptId: str
    turnId: str
    runId: str | None
    kind: str
    state: str
    namespace: list[str]
    seq: int
    rev: int
    payload: Any
    answer: NotRequired[Any]
    by: NotRequired[str]
    at: NotRequired[int]


class State(TypedDict):
    """`scope` lists the namespaces whose items are kept, None for all. `branches` has the children of a turn, those
    of none under "". `ahead` names what a page brought that is newer than `cursor`, by `scope_key` and turn."""

    cursor: int
    head: str | None
    headSeq: int
    scope: list[list[str]] | None
    turns: dict[str, Turn]
    runs: dict[str, RunRecord]
    requests: dict[str, Request]
    branches: dict[str, list[str]]
    ahead: dict[str, int]


def initial(scope: list[list[str]] | None = None) -> State:
    """The state before the first event; `scope` `[[]]` leaves out what subagents say and do."""
    return {
        "cursor": 0,
        "head": None,
        "headSeq": 0,
        "scope": scope,
        "turns": {},
        "runs": {},
        "requests": {},
        "branches": {},
        "ahead": {},
    }


def scope_key(namespace: Namespace | list[str]) -> str:
    """A namespace as a key: `""` for the thread itself, else its segments joined by `|`."""
    return "|".join(namespace)


def ahead_key(namespace: Namespace | list[str], turn_id: str) -> str:
    """One string for two parts of any content."""
    return json.dumps([scope_key(namespace), turn_id], ensure_ascii=False, separators=(",", ":"))
