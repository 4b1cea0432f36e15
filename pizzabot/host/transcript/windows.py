"""From a page back to a state, and a further page into a state: how a client goes on from what it was sent.

A page is exact at its `asOfSeq`. What came since then was kept by whoever asked for it and is applied to it first; what
the page has seen already is left alone until the state's own cursor has passed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from pizzabot.host.transcript.entries import Entry
from pizzabot.host.transcript.fold import fold
from pizzabot.host.transcript.pages import ItemsPage, Page
from pizzabot.host.transcript.shapes import Item, State, Turn, initial, part_key, scope_key

_Record = TypeVar("_Record", bound=Mapping[str, Any])
_Part = TypeVar("_Part", bound=Mapping[str, Any])


def from_page(page: Page) -> State:
    """The state of which `page` shows all that is loaded; folding what comes after `asOfSeq` goes on exactly."""
    state = initial(scope=[list(page["namespace"])])
    state["cursor"], state["head"], state["headSeq"] = page["asOfSeq"], page["head"], page["headSeq"]
    state["runs"] = {run["runId"]: run for run in page["runs"]}
    state["requests"] = {one["interruptId"]: one for one in page["requests"]}
    for shown in page["turns"]:
        state["turns"][shown["id"]] = _turn(shown, page["namespace"])
        state["branches"][shown["parentId"] or ""] = list(shown["siblings"]["ids"])
        for item in shown["items"]:
            if item["kind"] == "request":
                state["requests"].setdefault(item["interruptId"], _request(item, shown["id"]))
    if page["turns"]:
        state["branches"][page["turns"][-1]["id"]] = list(page["next"])
    return state


def merge_page(state: State, page: Page, newer: Iterable[Entry] = ()) -> State:
    """`state` with what `page` shows. Of what both have, the later stays.

    `newer` are the events since `page["asOfSeq"]` up to the state's cursor, which its reader keeps while a page is on
    its way (spec/12 §1.2). A page that is ahead of the state needs none: events that it has seen are dropped for it.
    A page of a subagent's items goes into turns that are loaded, and widens the scope.
    """
    namespace = list(page["namespace"])
    brought = fold(from_page(page), (entry for entry in newer if entry.seq <= state["cursor"]))
    merged = cast("State", {**state, "turns": dict(state["turns"]), "ahead": dict(state["ahead"])})
    for turn_id, turn in brought["turns"].items():
        mine = state["turns"].get(turn_id)
        if mine is None and namespace:
            continue
        key = part_key(namespace, turn_id)
        known = max(state["cursor"], state["ahead"].get(key, 0)) if _covers(state, namespace) else 0
        merged["turns"][turn_id] = (
            turn if mine is None else _merged(mine, turn, namespace, theirs_is_later=brought["cursor"] >= known)
        )
        if brought["cursor"] > max(state["cursor"], merged["ahead"].get(key, 0)):
            merged["ahead"][key] = brought["cursor"]
    if not _covers(state, namespace) and any(turn_id in state["turns"] for turn_id in brought["turns"]):
        merged["scope"] = [*(state["scope"] or ()), namespace]
    return merged if namespace else _with_records(merged, brought)


def _with_records(merged: State, brought: State) -> State:
    """What belongs to the turns of a page. The head is left to the events: only at its cursor is a state whole."""
    turns = brought["turns"]
    runs = {key: run for key, run in brought["runs"].items() if run["turnId"] in turns}
    requests = {key: one for key, one in brought["requests"].items() if one["turnId"] in turns}
    merged["runs"], merged["requests"] = _later(merged["runs"], runs), _later(merged["requests"], requests)
    merged["branches"] = dict(merged["branches"])
    for parent, ids in brought["branches"].items():
        if len(ids) >= len(merged["branches"].get(parent, ())):
            merged["branches"][parent] = ids
    return merged


def merge_items(state: State, page: ItemsPage, newer: Iterable[Entry] = ()) -> State:
    """`state` with older items of a turn that it has; of an item that both have, the later stays.

    `newer` are the events since `page["asOfSeq"]` up to the state's cursor, as for `merge_page`.
    """
    turn = state["turns"].get(page["turnId"])
    if turn is None:
        return state
    key, namespace = scope_key(page["namespace"]), page["namespace"]
    brought = _brought(state, turn, page, newer)
    merged = cast("Turn", {**turn, "items": _items(turn["items"], brought)})
    own = [item for item in merged["items"] if item["namespace"] == namespace]
    elided = dict(turn.get("elided", {}))
    before = elided.pop(key, {"count": 0})["count"] - (len(merged["items"]) - len(turn["items"]))
    if before > 0 and page["hasBefore"] and own:
        elided[key] = {"count": before, "beforeSeq": own[0]["seq"]}
    merged["elided"] = elided
    if not elided:
        del merged["elided"]
    return cast("State", {**state, "turns": {**state["turns"], turn["id"]: merged}})


def _brought(state: State, turn: Turn, page: ItemsPage, newer: Iterable[Entry]) -> list[Item]:
    """The items of the page as they are at the state's cursor."""
    ids = {item["id"] for item in page["items"]}
    going_on = {"open": page.get("open", {}), "calls": page.get("calls", {})}
    as_then = cast("Turn", {**turn, "items": page["items"], **going_on})
    as_then.pop("elided", None)
    then = initial(scope=[page["namespace"]])
    then["cursor"], then["turns"], then["runs"] = page["asOfSeq"], {turn["id"]: as_then}, state["runs"]
    now = fold(then, (entry for entry in newer if entry.seq <= state["cursor"]))
    items = [item for item in now["turns"][turn["id"]]["items"] if item["id"] in ids]
    return [_answered(item, state) if item["kind"] == "request" else item for item in items]


def _answered(item: Item, state: State) -> Item:
    """The item of a request, which the state knows without it."""
    request = state["requests"].get(item["interruptId"])
    if request is None or request["rev"] <= item["rev"]:
        return item
    told: Item = {"rev": request["rev"], "state": request["state"], "payload": request["payload"]}
    return item | told | {key: request[key] for key in ("answer", "by", "at") if key in request}


def _covers(state: State, namespace: list[str]) -> bool:
    return state["scope"] is None or namespace in state["scope"]


def _turn(shown: Mapping[str, Any], namespace: list[str]) -> Turn:
    turn = {key: value for key, value in shown.items() if key not in ("siblings", "elided")}
    turn |= {key: shown.get(key, {}) for key in ("open", "calls", "graphs")}
    if "elided" in shown:
        turn["elided"] = {scope_key(namespace): shown["elided"]}
    return cast("Turn", turn)


def _request(item: Item, turn_id: str) -> Any:
    request = {key: item[key] for key in ("interruptId", "state", "payload", "seq", "rev", "namespace")}
    request |= {"turnId": turn_id, "runId": None, "kind": item["requestKind"]}
    return request | {key: item[key] for key in ("answer", "by", "at") if key in item}


def _later(mine: Mapping[str, _Record], theirs: Mapping[str, _Record]) -> dict[str, _Record]:
    """Both, and of what is in both the one that changed last."""
    news = {key: one for key, one in theirs.items() if key not in mine or one["rev"] > mine[key]["rev"]}
    return {**mine, **news}


def _items(mine: Iterable[Item], theirs: Iterable[Item]) -> list[Item]:
    items = {item["id"]: item for item in mine}
    items |= {item["id"]: item for item in theirs if item["id"] not in items or item["rev"] > items[item["id"]]["rev"]}
    return sorted(items.values(), key=lambda item: item["seq"])


def _merged(mine: Turn, theirs: Turn, namespace: list[str], *, theirs_is_later: bool) -> Turn:
    """A turn that both have: every item that either has; the rest from the later, its own fields from pages of it."""
    fields = theirs if theirs_is_later and not namespace else mine
    turn = cast("Turn", {**fields, "items": _items(mine["items"], theirs["items"])})
    speaking = theirs if theirs_is_later else mine
    turn["open"] = _of_both(mine["open"], speaking["open"], namespace)
    turn["calls"] = _of_both(mine["calls"], speaking["calls"], namespace)
    turn["graphs"] = {**theirs["graphs"], **mine["graphs"]}  # what is begun anew or over is said by events to come
    _elide(turn, mine, theirs, namespace)
    return turn


def _of_both(mine: Mapping[str, _Part], speaking: Mapping[str, _Part], namespace: list[str]) -> dict[str, _Part]:
    others = {key: one for key, one in mine.items() if one["namespace"] != namespace}
    return others | {key: one for key, one in speaking.items() if one["namespace"] == namespace}


def _elide(turn: Turn, mine: Turn, theirs: Turn, namespace: list[str]) -> None:
    """How many items are still not loaded: as many as the whole has without what either has brought."""
    key = scope_key(namespace)
    elided = {name: one for name, one in mine.get("elided", {}).items() if name != key}
    shown = _of(turn, namespace)
    totals = (
        one.get("elided", {}).get(key, {"count": 0})["count"] + len(_of(one, namespace)) for one in (mine, theirs)
    )
    missing = max(totals) - len(shown)
    if missing > 0 and shown:
        elided[key] = {"count": missing, "beforeSeq": shown[0]["seq"]}
    turn.pop("elided", None)
    if elided:
        turn["elided"] = elided


def _of(turn: Turn, namespace: list[str]) -> list[Item]:
    return [item for item in turn["items"] if item["namespace"] == namespace]
