"""The model's messages: their blocks become items; a delta is appended, a merged one takes the place of its deltas.

A block whose text is still empty has no item: signatures and empty blocks show nothing. What a block needs to go on
stands in its turn's `open` until its message ends, and travels with a page.
"""

from __future__ import annotations

from typing import Any

from pizzabot.host.transcript.draft import Draft, OpenTurn, changed, new_item
from pizzabot.host.transcript.entries import Entry, text_of_member
from pizzabot.host.transcript.shapes import CLOSED, Item, part_key
from pizzabot.host.transcript.tools import begin_call, call_is_written, forget_graphs
from pizzabot_hookspecs.wire import ASSISTANT_ID, Namespace

_KINDS = {
    "text": "text",
    "reasoning": "reasoning",
    "tool_call_chunk": "tool",
    "tool_call": "tool",
    "invalid_tool_call": "tool",
}
_DELTA_KEY = {"text": "text", "reasoning": "reasoning", "tool": "args"}


class _Slot:
    """Where the deltas of one block go."""

    __slots__ = ("block", "item", "message", "opened", "pieces")

    def __init__(self, opened: OpenTurn, message: dict[str, Any], block: dict[str, Any]) -> None:
        self.opened = opened
        self.message = message
        self.block = block
        self.item: Item | None = opened.by_id.get(block["item"]) if block["item"] is not None else None
        self.pieces: list[str] | None = None


class Messages:
    """The `messages` frames of one fold. `_slots` saves a delta the way to its block."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._slots: dict[tuple[Any, ...], _Slot] = {}

    def see(self, entry: Entry) -> None:
        data = entry.data
        event = data.get("event")
        if event == "content-block-delta":
            self._delta(entry)
            return
        self._slots.clear()
        graph = entry.namespace[:-1]
        run = self._draft.state["runs"].get(entry.run_id or "")
        if event != "message-start" and run is None:
            return
        if event == "message-start" and run is not None and (turn := self._draft.open_turn(run["turnId"])) is not None:
            forget_graphs(self._draft, turn, entry)
        if not self._draft.in_scope(graph) or (opened := self._draft.turn_for(entry, graph)) is None:
            return
        key = _key(entry)
        if event == "message-start":
            opened.forget_calls({graph})
            opened.turn["open"][key] = _message(data, graph)
            return
        message = opened.turn["open"].get(key)
        if message is None:
            return
        if event == "content-block-start":
            self._start(opened, message, entry)
        elif event == "content-block-finish":
            self._finish(opened, message, entry)
        elif event in ("message-finish", "error"):
            del opened.turn["open"][key]
            close_message(opened, message, entry, "done" if event == "message-finish" else "cut")
            if _never_ended(data) and f"notice:{entry.seq}" not in opened.by_id:
                notice = {"code": "unclosed_reasoning", "text": "The model did not say where its reasoning ends."}
                opened.add(new_item(entry, f"notice:{entry.seq}", "notice", graph) | notice)

    # -- blocks -----------------------------------------------------------------------------------------------------

    def _start(self, opened: OpenTurn, message: dict[str, Any], entry: Entry) -> None:
        content = entry.data.get("content")
        kind = _KINDS.get(str(content.get("type"))) if isinstance(content, dict) else None
        index = str(entry.data.get("index"))
        if kind is None or not isinstance(content, dict):
            return
        block = message["blocks"][index] = _block(message, index, kind, entry)
        if kind == "tool":
            block["item"] = _called(self._draft, opened, message, block, content, entry)
            return
        item = opened.by_id.get(block["item"])
        block["shown"] = item is not None
        if item is not None and changed(opened, item, entry):  # said once more: it begins anew in its place
            self._draft.set_text(item, "text", "")
            item["state"] = "open"

    def _finish(self, opened: OpenTurn, message: dict[str, Any], entry: Entry) -> None:
        content, index = entry.data.get("content"), str(entry.data.get("index"))
        kind = _KINDS.get(str(content.get("type"))) if isinstance(content, dict) else None
        block = message["blocks"].get(index)
        if kind is None or not isinstance(content, dict):
            return
        if block is None:
            block = message["blocks"][index] = _block(message, index, kind, entry)
        if kind == "tool":
            block["item"] = block["item"] or _called(self._draft, opened, message, block, content, entry)
            item = opened.by_id.get(block["item"])
            if item is not None:
                call_is_written(self._draft, opened, item, entry, content, text_of_member(entry, "content", "args"))
            elif block["item"] is not None:
                opened.touch(tuple(message["namespace"]), entry)
            return
        del message["blocks"][index]
        text = content.get("text", content.get("reasoning"))
        item = opened.by_id.get(block["item"])
        if item is None and block["shown"]:
            opened.touch(tuple(message["namespace"]), entry)
        elif item is None and isinstance(text, str) and text:
            item = self._show(opened, message, block, entry)
        if item is not None and (item["rev"] == entry.seq or changed(opened, item, entry)):
            if isinstance(text, str):
                self._draft.set_text(item, "text", text)
            item["state"] = "done"

    def _show(self, opened: OpenTurn, message: dict[str, Any], block: dict[str, Any], entry: Entry) -> Item:
        item = new_item(
            entry,
            block["item"],
            block["kind"],
            tuple(message["namespace"]),
            seq=block["seq"],
            agent=message.get("agent"),
        )
        item |= {"text": "", "state": "open"}
        if block["kind"] == "reasoning":
            item |= {"startedAt": block["startedAt"], "endedAt": entry.timestamp}
        block["shown"] = True
        opened.add(item)
        return item

    # -- deltas: the hot path -----------------------------------------------------------------------------------------

    def _delta(self, entry: Entry) -> None:
        data = entry.data
        key = (entry.run_id, entry.namespace, entry.node, data.get("run_id"), data.get("index"))
        slot = self._slots.get(key)
        if slot is None:
            slot = self._find(entry)
            if slot is None:
                return
            self._slots[key] = slot
        item, kind = slot.item, slot.block["kind"]
        if item is not None and entry.seq <= item["rev"]:
            return
        change = data.get("delta") or data.get("content")
        piece = change.get(_DELTA_KEY[kind]) if isinstance(change, dict) else None
        if not isinstance(piece, str):
            return
        if item is None:
            item = slot.item = self._first(slot, kind, piece, entry)
            if item is None:
                return
        self._append(slot, item, piece, entry)

    def _first(self, slot: _Slot, kind: str, piece: str, entry: Entry) -> Item | None:
        """The item of a block that begins to be seen; None where there is nothing to see, or a page has left it out."""
        if slot.block["item"] is not None and (kind == "tool" or slot.block["shown"]):
            slot.opened.touch(tuple(slot.message["namespace"]), entry)
        elif kind != "tool" and piece:
            return self._show(slot.opened, slot.message, slot.block, entry)
        elif kind != "tool":
            _note(slot.block, entry.seq, entry.data.get("from_seq"), 0)
        return None

    def _append(self, slot: _Slot, item: Item, piece: str, entry: Entry) -> None:
        item["rev"] = entry.seq
        if not item["namespace"]:
            slot.opened.turn["rev"] = entry.seq
        if slot.block["kind"] == "tool":
            self._draft.append(item, "input", piece)
            return
        if item["kind"] == "reasoning":
            item["endedAt"] = entry.timestamp
        kept = _note(slot.block, entry.seq, entry.data.get("from_seq"), len(piece))
        if kept is not None:
            self._draft.set_text(item, "text", self._draft.text_of(item, "text")[:kept] + piece)
            slot.pieces = None
            return
        if slot.pieces is None:
            slot.pieces = self._draft.pieces(item, "text")
        slot.pieces.append(piece)

    def _find(self, entry: Entry) -> _Slot | None:
        graph = entry.namespace[:-1]
        if entry.run_id not in self._draft.state["runs"] or not self._draft.in_scope(graph):
            return None
        if (opened := self._draft.turn_for(entry, graph)) is None:
            return None
        message = opened.turn["open"].get(_key(entry))
        block = None if message is None else message["blocks"].get(str(entry.data.get("index")))
        return None if message is None or block is None else _Slot(opened, message, block)


def close_message(opened: OpenTurn, message: dict[str, Any], entry: Entry, state: str) -> None:
    """End what is left of a message. A call that it was making can no more be carried out when it was cut off."""
    for block in message["blocks"].values():
        if block["item"] is None:
            continue
        if block["kind"] == "tool" and state != "done":
            opened.close_call(block["item"])
        item = opened.by_id.get(block["item"])
        if item is None and block.get("shown"):
            opened.touch(tuple(message["namespace"]), entry)
        if item is None or item["state"] in CLOSED:
            continue
        if block["kind"] == "tool" and state == "done":
            if item["state"] == "writing" and changed(opened, item, entry):
                item["state"] = "open"
        elif changed(opened, item, entry):
            if item["state"] == "writing":
                item["partial"] = True
            item["state"] = state


def _key(entry: Entry) -> str:
    return " ".join((*entry.namespace, entry.node or "", str(entry.data.get("run_id") or "")))


def _message(data: Any, graph: Namespace) -> dict[str, Any]:
    message: dict[str, Any] = {
        "messageId": str(data.get("id") or data.get("run_id")),
        "namespace": list(graph),
        "blocks": {},
    }
    name = data.get("name")
    return {**message, "agent": name} if isinstance(name, str) and name != ASSISTANT_ID else message


def _block(message: dict[str, Any], index: str, kind: str, entry: Entry) -> dict[str, Any]:
    if kind == "tool":
        return {"kind": kind, "item": None, "seq": entry.seq}
    return {
        "kind": kind,
        "item": f"{message['messageId']}:{index}",
        "seq": entry.seq,
        "startedAt": entry.timestamp,
        "shown": False,
        "from": 0,
        "at": 0,
        "lengths": [],
    }


def _called(
    draft: Draft,
    opened: OpenTurn,
    message: dict[str, Any],
    block: dict[str, Any],
    content: dict[str, Any],
    entry: Entry,
) -> str | None:
    call_id, name = content.get("id"), content.get("name")
    if not isinstance(call_id, str) or not isinstance(name, str):
        return None
    graph = tuple(message["namespace"])
    known = opened.call(graph, call_id)
    if known is not None and not known["closed"]:
        return known["item"]
    item = begin_call(opened, entry, call_id, name, graph, seq=block["seq"], agent=message.get("agent"))
    if item is not None:
        item["state"] = "writing"
        args = content.get("args")
        if isinstance(args, str) and args:
            draft.set_text(item, "input", args)
    return opened.turn["calls"][part_key(graph, call_id)]["item"]


def _note(block: dict[str, Any], seq: int, from_seq: Any, length: int) -> int | None:
    """Note a delta of `length` characters; for a merged one that holds text we have, how much before it is to be kept.

    Retention merges neighbours in the log only, and in stretches (`host/runs/merging.py`): one merged delta is not
    always the whole block. So a block remembers how long each delta of its last unbroken stretch was: `lengths`, one
    for each seq beginning with `from`, behind `at` characters.
    """
    lengths: list[int] = block["lengths"]
    start = from_seq if isinstance(from_seq, int) else seq
    behind = start - block["from"]
    if behind == len(lengths) and lengths and start == seq:
        lengths.append(length)
        return None
    kept = None
    if not lengths or behind > len(lengths):
        block["at"] += sum(lengths)
        block["from"] = start
        lengths.clear()
    elif behind < len(lengths):
        kept = block["at"] + sum(lengths[: max(behind, 0)])
        block["from"] = min(start, block["from"])
        del lengths[max(behind, 0) :]
    lengths.extend([0] * (seq - start))
    lengths.append(length)
    return kept


def _never_ended(data: Any) -> bool:
    """Whether inline reasoning was still open at the end of its message (`host/models/cutting_model.py`)."""
    metadata = data.get("metadata")
    told = metadata.get("pizzabot") if isinstance(metadata, dict) else None
    return isinstance(told, dict) and told.get("unclosed_reasoning") is True
