"""A state that is being changed: copies what it touches, once, so that the state it began with stays as it was."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

from pizzabot.host.transcript.entries import Entry
from pizzabot.host.transcript.shapes import CLOSED, Item, OpenCall, Request, RunRecord, State, Turn, part_key, scope_key
from pizzabot_hookspecs.wire import Namespace


class OpenTurn:
    """A turn that may be changed: its items by id, the cards of its subagents by the namespace of what they do."""

    def __init__(self, turn: Turn) -> None:
        items = [dict(item) for item in turn["items"]]
        kept = {"runs": list(turn["runs"]), "items": items}
        copied = {key: _copied(turn[key]) for key in ("open", "calls", "graphs")}
        self.turn = cast("Turn", {**turn, **kept, **copied})
        self.by_id: dict[str, Item] = {item["id"]: item for item in items}
        self.cards: dict[Namespace, Item] = {tuple(item["child"]): item for item in items if "child" in item}

    def add(self, item: Item) -> None:
        """Put an item in its place: items stand in the order of `seq`, those of one event in that of their coming.

        One whose place is among items that a page has left out is only counted with them.
        """
        if self._is_left_out(item):
            return
        items = self.turn["items"]
        at = len(items)
        while at and items[at - 1]["seq"] > item["seq"]:
            at -= 1
        items.insert(at, item)
        self.by_id[item["id"]] = item
        if not item["namespace"]:
            self.turn["rev"] = max(self.turn["rev"], item["rev"])

    def _is_left_out(self, item: Item) -> bool:
        key = scope_key(item["namespace"])
        elided = self.turn.get("elided", {}).get(key)
        if elided is None or item["seq"] >= elided["beforeSeq"]:
            return False
        self.turn["elided"] = {**self.turn["elided"], key: {**elided, "count": elided["count"] + 1}}
        if not item["namespace"]:
            self.turn["rev"] = max(self.turn["rev"], item["rev"])
        return True

    def touch(self, namespace: Namespace, entry: Entry) -> None:
        """An event changed an item that is not loaded: it is the `rev` of the turn all the same."""
        if not namespace:
            self.turn["rev"] = max(self.turn["rev"], entry.seq)

    # -- calls: what is known of one is in the turn, because its item may be among those that a page has left out ---

    def call(self, graph: Namespace, call_id: str) -> OpenCall | None:
        """The call that frames of this id are about now."""
        return self.turn["calls"].get(part_key(graph, call_id))

    def item_of_call(self, graph: Namespace, call_id: str) -> Item | None:
        """The item of that call, if it is loaded."""
        call = self.call(graph, call_id)
        return None if call is None else self.by_id.get(call["item"])

    def set_call(self, item: Item) -> None:
        """The item is what frames of its call are about from now on."""
        call: OpenCall = {"item": item["id"], "namespace": item["namespace"], "closed": item["state"] in CLOSED}
        self.turn["calls"][part_key(item["namespace"], item["callId"])] = call

    def close_call(self, item_id: str) -> None:
        for call in self.turn["calls"].values():
            if call["item"] == item_id:
                call["closed"] = True

    def forget_calls(self, graphs: Collection[Namespace]) -> None:
        """The graphs' models speak anew, or never again: what they called and has ended is heard of no more."""
        calls = self.turn["calls"].items() if graphs else ()
        over = [key for key, one in calls if one["closed"] and tuple(one["namespace"]) in graphs]
        for key in over:
            del self.turn["calls"][key]


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(member) for key, member in value.items()}
    return list(value) if isinstance(value, list) else value


class Draft:
    """What the parts of the fold write to. Text that is being said is kept in pieces until `finish`."""

    def __init__(self, state: State) -> None:
        self.state: State = cast("State", dict(state))
        self.scope = None if state["scope"] is None else {tuple(namespace) for namespace in state["scope"]}
        self._owned: dict[str, OpenTurn] = {}
        self._maps: set[str] = set()
        self._texts: dict[tuple[int, str], tuple[Item, list[str]]] = {}
        self._asked: dict[str, list[str]] | None = None

    def finish(self) -> State:
        for (_, field), (item, pieces) in self._texts.items():
            item[field] = "".join(pieces)
        self._texts.clear()
        cursor = self.state["cursor"]
        if any(upto <= cursor for upto in self.state["ahead"].values()):
            self.state["ahead"] = {key: upto for key, upto in self.state["ahead"].items() if upto > cursor}
        return self.state

    # -- turns ------------------------------------------------------------------------------------------------------

    def open_turn(self, turn_id: str) -> OpenTurn | None:
        """The turn, to be changed; None when it is not loaded."""
        owned = self._owned.get(turn_id)
        if owned is None:
            turn = self.state["turns"].get(turn_id)
            if turn is None:
                return None
            owned = self._owned[turn_id] = OpenTurn(turn)
            self._turns()[turn_id] = owned.turn
        return owned

    def turn_for(self, entry: Entry, namespace: Namespace = ()) -> OpenTurn | None:
        """The turn that an event of a run belongs to; None when it is not loaded, or has this event already.

        A run that no fact has told of (spec/12 §0: logs that are older than the facts) gets a turn of its own.
        """
        if entry.run_id is None:
            return None
        turn_id = self.turn_id_of(entry, entry.run_id)
        return None if self.is_ahead(entry, turn_id, namespace) else self.open_turn(turn_id)

    def turn_id_of(self, entry: Entry, run_id: str) -> str:
        run = self.state["runs"].get(run_id)
        if run is None:
            self.synthetic_turn(entry, f"run:{run_id}")
            run = self.begin_run(entry, run_id, f"run:{run_id}")
        elif self.state["ahead"] and (turn := self.state["turns"].get(run["turnId"])) and turn["seq"] == entry.seq:
            self.set_head(entry, turn["id"])  # a page has brought the turn that this event made
        return run["turnId"]

    def is_ahead(self, entry: Entry, turn_id: str, namespace: Namespace = ()) -> bool:
        """Whether a page has brought this part of the turn as it was after the event."""
        ahead = self.state["ahead"]
        return bool(ahead) and ahead.get(part_key(namespace, turn_id), 0) >= entry.seq

    def add_turn(self, turn: Turn) -> None:
        self._turns()[turn["id"]] = turn
        self.add_branch(turn["parentId"], turn["id"])

    def add_branch(self, parent: str | None, turn_id: str) -> None:
        known = self.state["branches"].get(parent or "", [])
        if turn_id not in known:
            self._map("branches")[parent or ""] = [*known, turn_id]

    def synthetic_turn(
        self, entry: Entry, turn_id: str, message: Mapping[str, Any] | None = None, *, status: str = "running"
    ) -> None:
        """A turn behind the head, for what happened without one. A page may have brought it already."""
        if turn_id in self.state["turns"]:
            self.set_head(entry, turn_id)
            return
        turn = new_turn(turn_id, entry.seq, parent=self.state["head"])
        turn["message"], turn["status"] = None if message is None else dict(message), status
        self.add_turn(turn)
        self.set_head(entry, turn_id)

    def set_head(self, entry: Entry, turn_id: str) -> None:
        if entry.seq > self.state["headSeq"]:
            self.state["head"], self.state["headSeq"] = turn_id, entry.seq

    # -- runs and requests ------------------------------------------------------------------------------------------

    def begin_run(self, entry: Entry, run_id: str, turn_id: str) -> RunRecord:
        """A new record of a run, known to its turn if that is loaded."""
        run: RunRecord = {
            "runId": run_id,
            "turnId": turn_id,
            "seq": entry.seq,
            "rev": entry.seq,
            "status": "running",
            "attempts": 0,
            "startedAt": entry.timestamp,
        }
        self._map("runs")[run_id] = run
        if not self.is_ahead(entry, turn_id) and (opened := self.open_turn(turn_id)) is not None:
            turn = opened.turn
            if run_id not in turn["runs"]:
                turn["runs"].append(run_id)
            turn["rev"], turn["status"] = max(turn["rev"], entry.seq), "running"
            turn.pop("code", None)
            turn.pop("error", None)
        return run

    def run(self, run_id: str) -> RunRecord | None:
        """The run's record, to be changed."""
        run = self.state["runs"].get(run_id)
        if run is None:
            return None
        run = cast("RunRecord", dict(run))
        self._map("runs")[run_id] = run
        return run

    def request(self, interrupt_id: str) -> Request | None:
        """The request, to be changed."""
        request = self.state["requests"].get(interrupt_id)
        if request is None:
            return None
        request = cast("Request", dict(request))
        self._map("requests")[interrupt_id] = request
        return request

    def add_request(self, request: Request) -> None:
        self._map("requests")[request["interruptId"]] = request
        if self._asked is not None:
            self._asked.setdefault(request["turnId"], []).append(request["interruptId"])

    def requests_of(self, turn_id: str) -> list[Request]:
        """What a turn has asked, as it is now. All are looked through once in a fold, not at the end of each run."""
        requests = self.state["requests"]
        if self._asked is None:
            self._asked = {}
            for interrupt_id, request in requests.items():
                self._asked.setdefault(request["turnId"], []).append(interrupt_id)
        return [requests[interrupt_id] for interrupt_id in self._asked.get(turn_id, ())]

    # -- items ------------------------------------------------------------------------------------------------------

    def in_scope(self, namespace: Namespace) -> bool:
        return self.scope is None or namespace in self.scope

    def append(self, item: Item, field: str, text: str) -> None:
        """Add to a text of an item. Of one that a page has cut, only the length is known to grow."""
        if isinstance(item.get(field), dict):
            item[field] = {**item[field], "chars": item[field]["chars"] + len(text)}
        else:
            self.pieces(item, field).append(text)

    def pieces(self, item: Item, field: str) -> list[str]:
        """The pieces of a text that grows, to be appended to."""
        found = self._texts.get((id(item), field))
        if found is None:
            text = item.get(field)
            found = self._texts[id(item), field] = (item, [text] if text else [])
        return found[1]

    def set_text(self, item: Item, field: str, text: str) -> None:
        item[field] = text
        self._texts.pop((id(item), field), None)

    def drop_text(self, item: Item, field: str) -> None:
        item.pop(field, None)
        self._texts.pop((id(item), field), None)

    def text_of(self, item: Item, field: str) -> str:
        found = self._texts.get((id(item), field))
        return str(item[field]) if found is None else "".join(found[1])

    def _turns(self) -> dict[str, Turn]:
        return cast("dict[str, Turn]", self._map("turns"))

    def _map(self, name: str) -> dict[str, Any]:
        if name not in self._maps:
            self._maps.add(name)
            self.state[name] = dict(self.state[name])  # type: ignore[literal-required]
        return cast("dict[str, Any]", self.state[name])  # type: ignore[literal-required]


def new_turn(turn_id: str, seq: int, *, parent: str | None) -> Turn:
    return {
        "id": turn_id,
        "seq": seq,
        "rev": seq,
        "parentId": parent,
        "source": None,
        "message": None,
        "base": None,
        "runs": [],
        "status": "running",
        "items": [],
        "open": {},
        "calls": {},
        "graphs": {},
    }


def changed(opened: OpenTurn, item: Item, entry: Entry) -> bool:
    """Whether `entry` is news for the item; then it is the item's `rev`, and that of the turn that shows it."""
    if entry.seq <= item["rev"]:
        return False
    item["rev"] = entry.seq
    if not item["namespace"]:
        opened.turn["rev"] = entry.seq
    return True


def new_item(
    entry: Entry, item_id: str, kind: str, namespace: Namespace, *, seq: int | None = None, agent: str | None = None
) -> Item:
    """The part that all items have."""
    item: Item = {
        "id": item_id,
        "kind": kind,
        "seq": entry.seq if seq is None else seq,
        "rev": entry.seq,
        "namespace": list(namespace),
    }
    return item if agent is None else {**item, "agent": agent}
