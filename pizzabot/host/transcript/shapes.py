"""What a transcript is, as JSON: the state of the fold with its turns, items, runs and requests (spec/12 §1.1).

The TypeScript fold has the same keys (`tests/wire/fold/`). `seq` is the first event of a thing and so its place, `rev`
the last event that changed it. Times are milliseconds.
"""

from __future__ import annotations

import json
from typing import Any, NotRequired, TypeAlias, TypedDict

from pizzabot_hookspecs.wire import Namespace

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
Item: TypeAlias = dict[str, Any]
"""`{id, kind, seq, rev, namespace, agent?}` and by `kind`:

text       `{text, state: open|done|cut, role?: "user"}`; id `<message id>:<block>`
reasoning  `{text, state, startedAt, endedAt}`; id as a text's
tool       `{callId, name, input?, output?, error?, sources?, state: writing|open|done|failed|cut}`; id
           `tool:<call id>@<seq>`, because some models number their calls anew in each message
subagent   the same and `{title, steps, child?}`; `name` is the subagent, `child` the namespace of what it does
request    `{interruptId, requestKind, state, payload, answer?, by?, at?}`; id `request:<interrupt id>`
notice     `{code, text}`; id `notice:<seq>`
changes    `{runId, files: [{path, op, sizeBefore, sizeAfter, added, removed}], truncated}`; id `changes:<run id>`

`namespace` is that of the graph: `[]` for the thread itself, `["tools:<id>"]` for what a subagent says and does.
`input`, `output` and `error` are text, JSON as it was written; in a page they may be a preview (`previews.py`).
`partial` marks a call whose arguments were cut off. `sources` are `[{id, title, url?, excerpt, retrievedAt}]`, at most
50, what the result was taken from; several calls may have one with the same id, which is then the same source.
"""


CLOSED = frozenset({"done", "failed", "cut"})
"""States of what gets no more text."""


class OpenCall(TypedDict):
    """A call that frames may still be about. `item` is an item's id; the item may be one that is not loaded."""

    item: str
    namespace: list[str]
    closed: bool


class Graph(TypedDict):
    """Whose work a namespace is: that of the subagent which this call began; `ended` with the call's last frame."""

    namespace: list[str]
    callId: str
    ended: bool


class Place(TypedDict):
    """Where a turn stands in its thread. A turn is one, too."""

    id: str
    seq: int
    parentId: str | None


class Turn(Place):
    """`seq` and `rev` do not count what happens below a subagent. `open` has the messages that are being said.

    `calls` are those since the last message of their graph, and the ones still going on, by `part_key` of namespace
    and call id; `graphs` the namespaces of subagents at work, by `scope_key`. Frames are read with both, so that a
    state that has only a part of the items reads them as the whole does: `open`, `calls` and `graphs` are in pages.
    `base` and `end` are the checkpoints that the turn began on and that it has left.
    """

    rev: int
    source: str | None
    message: dict[str, Any] | None
    base: str | None
    end: NotRequired[str]
    runs: list[str]
    status: str
    code: NotRequired[str]
    error: NotRequired[str]
    items: list[Item]
    open: dict[str, dict[str, Any]]
    calls: dict[str, OpenCall]
    graphs: dict[str, Graph]
    elided: NotRequired[dict[str, dict[str, int]]]


class RunRecord(TypedDict):
    """`turnId` may name a turn that is not loaded. `attempts` counts how often it was said to be running; `closed`
    with its last frame."""

    runId: str
    turnId: str
    seq: int
    rev: int
    status: str
    attempts: int
    startedAt: int
    endedAt: NotRequired[int]
    closed: NotRequired[bool]
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
    of none under "". `ahead` names what a page brought that is newer than `cursor`, by `part_key` of namespace
    and turn. `unloaded` are the places of turns that only rows have (`rows.py`)."""

    cursor: int
    head: str | None
    headSeq: int
    scope: list[list[str]] | None
    turns: dict[str, Turn]
    runs: dict[str, RunRecord]
    requests: dict[str, Request]
    branches: dict[str, list[str]]
    ahead: dict[str, int]
    unloaded: NotRequired[dict[str, Place]]


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


def part_key(namespace: Namespace | list[str], part_id: str) -> str:
    """One string for a namespace and the id of a turn or a call: JSON, because both may be anything."""
    return _encode([scope_key(namespace), part_id])
