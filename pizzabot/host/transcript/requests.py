"""What a turn asks the person: opened by a frame or a fact, settled by facts, else by `input.answered`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pizzabot.host.transcript.draft import Draft, OpenTurn, changed, new_item
from pizzabot.host.transcript.entries import Entry
from pizzabot.host.transcript.shapes import Request
from pizzabot_hookspecs.wire import Namespace

OPEN = "open"
DECIDED = "decided"
WITHDRAWN = "withdrawn"
_STATES = frozenset({OPEN, DECIDED, WITHDRAWN, "expired"})


def see_requested(draft: Draft, entry: Entry) -> None:
    """An `input.requested` frame; the same question may come again in the run that goes on."""
    data = entry.data
    interrupt_id = data.get("interrupt_id")
    if not isinstance(interrupt_id, str) or entry.run_id is None:
        return
    payload = data.get("payload", data.get("value"))
    change = {"state": OPEN, "payload": payload, "kind": _text(data.get("kind")), "runId": entry.run_id}
    turn_id = draft.turn_id_of(entry, entry.run_id)
    _change(draft, entry, interrupt_id, change, turn_id=turn_id, namespace=entry.namespace)


def see_answered(draft: Draft, entry: Entry) -> None:
    """An `input.answered` frame. It says less than the fact, so it settles only what is still open."""
    ids = entry.data.get("interrupt_ids")
    for interrupt_id in ids if isinstance(ids, list) else ():
        request = draft.state["requests"].get(interrupt_id) if isinstance(interrupt_id, str) else None
        if request is None:
            continue
        if entry.run_id is not None and entry.run_id not in draft.state["runs"]:
            draft.begin_run(entry, entry.run_id, request["turnId"])  # a log that is older than the facts
        if request["state"] == OPEN or request["rev"] == entry.seq:
            _change(draft, entry, interrupt_id, {"state": DECIDED})


def see_request_fact(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    """`pizzabot.request`. One that opens stands behind its frame, which alone knows the namespace."""
    interrupt_id, state = payload.get("interrupt_id"), payload.get("state")
    if not isinstance(interrupt_id, str) or state not in _STATES:
        return
    change: dict[str, Any] = {"state": state, "kind": _text(payload.get("kind"))}
    change |= {key: payload[key] for key in ("payload", "answer", "by", "at") if payload.get(key) is not None}
    turn_id = None
    if interrupt_id not in draft.state["requests"]:
        if state != OPEN:
            return  # of a turn that is not loaded
        run_id = payload.get("run_id")
        run = draft.state["runs"].get(run_id) if isinstance(run_id, str) else None
        if run is None:
            return
        turn_id, change["runId"] = run["turnId"], run["runId"]
    _change(draft, entry, interrupt_id, change, turn_id=turn_id)


def withdraw_of_run(draft: Draft, entry: Entry) -> None:
    """A run that ended without waiting asks for nothing more: what it has asked was never stored."""
    run = draft.state["runs"].get(str(entry.run_id))
    asked = [] if run is None else draft.requests_of(run["turnId"])
    for request in (one for one in asked if one["runId"] == entry.run_id):
        if request["state"] == OPEN or request["rev"] == entry.seq:
            _change(draft, entry, request["interruptId"], {"state": WITHDRAWN})


def _change(
    draft: Draft,
    entry: Entry,
    interrupt_id: str,
    change: dict[str, Any],
    *,
    turn_id: str | None = None,
    namespace: Namespace = (),
) -> None:
    change = {key: value for key, value in change.items() if value is not None}
    request = draft.request(interrupt_id)
    if request is None:
        if turn_id is None:
            return
        request = _new(entry, interrupt_id, turn_id, namespace)
        draft.add_request(request)
    elif entry.seq <= request["rev"]:
        _show(
            draft, entry, request
        )  # a page has brought the record, and may have left out the item: it is a subagent's
        return
    request.update(cast("Any", change))
    request["rev"] = entry.seq
    if not draft.is_ahead(entry, request["turnId"]) and (opened := draft.open_turn(request["turnId"])) is not None:
        opened.turn["rev"] = max(opened.turn["rev"], entry.seq)
        _end_of_waiting(draft, opened, request)
    _show(draft, entry, request)


def _show(draft: Draft, entry: Entry, request: Request) -> None:
    namespace = tuple(request["namespace"])
    if not draft.in_scope(namespace) or draft.is_ahead(entry, request["turnId"], namespace):
        return
    opened = draft.open_turn(request["turnId"])
    if opened is None:
        return
    item = opened.by_id.get(f"request:{request['interruptId']}")
    if item is None:
        if request["seq"] != entry.seq:
            return  # among the items that a page has left out
        item = new_item(entry, f"request:{request['interruptId']}", "request", namespace, seq=request["seq"])
        item["interruptId"] = request["interruptId"]
        opened.add(item)
    elif not changed(opened, item, entry):
        return
    item |= {"requestKind": request["kind"], "state": request["state"], "payload": request["payload"]}
    item |= {key: request[key] for key in ("answer", "by", "at") if key in request}


def _end_of_waiting(draft: Draft, opened: OpenTurn, request: Request) -> None:
    """A turn whose last question was taken back waits for nobody, and no run will come to say so."""
    turn = opened.turn
    if request["state"] in (OPEN, DECIDED) or turn["status"] not in ("waiting", "attention"):
        return
    if all(one["state"] != OPEN for one in draft.requests_of(turn["id"])):
        turn["status"] = "stopped"


def _new(entry: Entry, interrupt_id: str, turn_id: str, namespace: Namespace) -> Request:
    return {
        "interruptId": interrupt_id,
        "turnId": turn_id,
        "runId": None,
        "kind": "approval",
        "state": OPEN,
        "namespace": list(namespace),
        "seq": entry.seq,
        "rev": entry.seq,
        "payload": None,
    }


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
