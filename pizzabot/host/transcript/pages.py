"""Pages of a transcript: turns of one path from the root to a head, as they are at `asOfSeq` (spec/12 §1.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, TypedDict, cast

from pizzabot.host.text import to_json
from pizzabot.host.transcript.paths import DEFAULT_TURNS, Path, place_of
from pizzabot.host.transcript.previews import previewed
from pizzabot.host.transcript.runs import is_going
from pizzabot.host.transcript.shapes import Item, OpenCall, Request, RunRecord, State, Turn, scope_key
from pizzabot_hookspecs import NotFound

MAX_BYTES = 1024 * 1024
"""Of a page's turns; it is cut between them, and a single turn that is larger loses its oldest items."""
ITEMS_SHOWN_WHOLE = 200
ITEMS_SHOWN = 100
"""Of a turn that has more than `ITEMS_SHOWN_WHOLE`."""


_PARTS = ("items", "open", "calls", "graphs", "elided")
UNSETTLED = frozenset({"running", "waiting", "attention"})
"""Of a turn, what is not its end."""


class Page(TypedDict):
    """`leaf` ends the path, `head` is the thread's. `next` are the children of the last turn. `runs` are those of the
    turns and what is going on; `requests` are all that are open, and the decided ones of turns that have not
    ended. `elided` of a turn: `{count, beforeSeq}`."""

    threadId: str
    head: str | None
    headSeq: int
    leaf: str | None
    namespace: list[str]
    turns: list[dict[str, Any]]
    runs: list[RunRecord]
    requests: list[Request]
    next: list[str]
    hasBefore: bool
    hasAfter: bool
    asOfSeq: int


class ItemsPage(TypedDict):
    turnId: str
    namespace: list[str]
    items: list[Item]
    hasBefore: bool
    asOfSeq: int
    open: NotRequired[dict[str, dict[str, Any]]]
    calls: NotRequired[dict[str, OpenCall]]


def page(
    state: State,
    *,
    thread_id: str,
    limit: int = DEFAULT_TURNS,
    before_seq: int | None = None,
    around_seq: int | None = None,
    head: str | None = None,
    namespace: Sequence[str] = (),
) -> Page:
    """At most `limit` turns (1 to 100) of the path to `head`: the newest, those before a `seq`, or those around one.

    With `namespace`, the items of exactly that graph, and only the turn that it works for. A state with part of a
    thread gives the pages of that part; the turns that `turns_of_page` names must be loaded, or else `LookupError`.
    Raises `NotFound` `no_such_turn` for a `head` that is not in it.
    """
    leaf = state["head"] if head is None else head
    if head is not None and place_of(state, head) is None:
        raise NotFound("no_such_turn", f"this thread has no turn {head!r}")
    shown = list(namespace)
    path = Path(state, leaf, shown)
    chosen = [state["turns"][place["id"]] for place in path.chosen(limit, before_seq, around_seq)]
    turns = _fitting(state, chosen, shown, around_seq)
    first, last = (turns[0]["id"], turns[-1]["id"]) if turns else (None, None)
    return {
        "threadId": thread_id,
        "head": state["head"],
        "headSeq": state["headSeq"],
        "leaf": leaf,
        "namespace": shown,
        "turns": turns,
        "runs": _runs(state, turns),
        "requests": _waiting(state),
        "next": [] if last is None else list(state["branches"].get(last, ())),
        "hasBefore": path.goes_on_before(first),
        "hasAfter": last is not None and last != path.newest,
        "asOfSeq": state["cursor"],
    }


def turn_items(
    state: State,
    turn_id: str,
    *,
    before_seq: int | None = None,
    limit: int = ITEMS_SHOWN,
    namespace: Sequence[str] = (),
) -> ItemsPage:
    """Older items of a turn, `limit` (1 to 200) of those whose `seq` is below `before_seq`, ascending.

    Items of one event come together. Raises `NotFound` `no_such_turn`.
    """
    turn = state["turns"].get(turn_id)
    if turn is None:
        raise NotFound("no_such_turn", f"this thread has no turn {turn_id!r}")
    shown = list(namespace)
    older = [
        item
        for item in turn["items"]
        if item["namespace"] == shown and (before_seq is None or item["seq"] < before_seq)
    ]
    start = _whole_events(older, len(older) - min(max(limit, 1), ITEMS_SHOWN_WHOLE))
    kept = older[start:]
    while len(kept) > 1 and _size(kept) > MAX_BYTES:
        start = _whole_events(older, start + (len(kept) + 1) // 2)
        if start + len(kept) == len(older) and older[start:] == kept:
            break
        kept = older[start:]
    found: ItemsPage = {
        "turnId": turn_id,
        "namespace": shown,
        "items": [_shown_item(item) for item in kept],
        "hasBefore": len(kept) < len(older) or scope_key(shown) in turn.get("elided", {}),
        "asOfSeq": state["cursor"],
    }
    return cast("ItemsPage", {**found, **_going_on(turn, shown)})


def _fitting(state: State, chosen: list[Turn], namespace: list[str], around_seq: int | None) -> list[dict[str, Any]]:
    """The turns as they are shown, without those at the far end for which the page has no room."""
    turns = [_shown(state, turn, namespace) for turn in chosen]
    sizes = [_size(turn) for turn in turns]
    while sum(sizes) > MAX_BYTES and len(turns) > 1:
        from_the_end = around_seq is not None and abs(turns[-1]["seq"] - around_seq) > abs(turns[0]["seq"] - around_seq)
        at = -1 if from_the_end else 0
        del turns[at], sizes[at]
    if turns and sum(sizes) > MAX_BYTES:
        turns[0] = _smaller(state, chosen, turns[0]["id"], namespace)
    return turns


def _smaller(state: State, chosen: list[Turn], turn_id: str, namespace: list[str]) -> dict[str, Any]:
    """A turn that is too large alone, with as many of its last items as fit, one at least."""
    turn = next(one for one in chosen if one["id"] == turn_id)
    count = ITEMS_SHOWN
    shown = _shown(state, turn, namespace, most=count)
    while count > 1 and _size(shown) > MAX_BYTES:
        count //= 2
        shown = _shown(state, turn, namespace, most=count)
    return shown


def _shown(state: State, turn: Turn, namespace: list[str], *, most: int | None = None) -> dict[str, Any]:
    items = [item for item in turn["items"] if item["namespace"] == namespace]
    elided = turn.get("elided", {}).get(scope_key(namespace))
    before = elided["count"] if elided else 0
    total = before + len(items)
    if most is not None or total > ITEMS_SHOWN_WHOLE:
        cut = _whole_events(items, len(items) - (ITEMS_SHOWN if most is None else most))
        items, before = items[cut:], before + cut
    shown = {key: value for key, value in turn.items() if key not in _PARTS}
    siblings = list(state["branches"].get(turn["parentId"] or "", ()))
    shown["siblings"] = {
        "index": siblings.index(turn["id"]) if turn["id"] in siblings else 0,
        "count": len(siblings),
        "ids": siblings,
    }
    shown["items"] = [_shown_item(item) for item in items]
    if before:
        shown["elided"] = {"count": before, "beforeSeq": items[0]["seq"] if items else turn["rev"] + 1}
    shown |= _going_on(turn, namespace)
    if turn["graphs"]:
        shown["graphs"] = turn["graphs"]
    return shown


def _going_on(turn: Turn, namespace: list[str]) -> dict[str, Any]:
    """`open` and `calls` of a graph; neither where nothing goes on."""
    parts: dict[str, Mapping[str, Any]] = {"open": turn["open"], "calls": turn["calls"]}
    own = {
        name: {key: one for key, one in part.items() if one["namespace"] == namespace} for name, part in parts.items()
    }
    return {name: part for name, part in own.items() if part}


def _whole_events(items: Sequence[Item], start: int) -> int:
    """`start`, or what is before it, so that items of one event are not divided: `beforeSeq` cannot say where."""
    start = max(start, 0)
    while 0 < start < len(items) and items[start - 1]["seq"] == items[start]["seq"]:
        start -= 1
    return start


def _shown_item(item: Item) -> Item:
    """The item with previews of its long texts."""
    if "callId" not in item:
        return item
    changes = {}
    for field in ("input", "output", "error"):
        text = item.get(field)
        if isinstance(text, str):
            part = "input" if field == "input" else "output"
            short = previewed(text, call_id=item["callId"], part=part, growing=_is_growing(item, part))
            if short is not text:
                changes[field] = short
    return {**item, **changes} if changes else item


def _is_growing(item: Item, part: str) -> bool:
    """Whether a text has no end yet, or never got one: its preview is its beginning, which does not change."""
    if part == "input":
        return item["state"] == "writing" or "partial" in item
    return item["state"] in ("open", "cut")


def _runs(state: State, turns: Sequence[dict[str, Any]]) -> list[RunRecord]:
    ids = {run_id for turn in turns for run_id in turn["runs"]}
    ids |= {run_id for run_id, run in state["runs"].items() if is_going(run)}
    found = [state["runs"][run_id] for run_id in ids if run_id in state["runs"]]
    return sorted(found, key=lambda run: (run["seq"], run["runId"]))


def _waiting(state: State) -> list[Request]:
    unsettled = {turn_id for turn_id, turn in state["turns"].items() if turn["status"] in UNSETTLED}
    found = [one for one in state["requests"].values() if one["state"] == "open" or one["turnId"] in unsettled]
    return sorted(found, key=lambda request: (request["seq"], request["interruptId"]))


def _size(value: Any) -> int:
    return len(to_json(value))
