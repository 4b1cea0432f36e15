"""The product's own facts: `custom` frames `pizzabot.<name>` at the root, version 1 (spec/12 §0).

An unknown name or version, and a payload that is not what it should be, is passed over: it hides no neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pizzabot.host.transcript.draft import Draft, changed, new_item, new_turn
from pizzabot.host.transcript.entries import Entry
from pizzabot.host.transcript.requests import see_request_fact
from pizzabot.host.transcript.runs import set_run_status

VERSION = 1
_PREFIX = "pizzabot."


def see_fact(draft: Draft, entry: Entry) -> None:
    """A `custom` frame."""
    name, payload = entry.data.get("name"), entry.data.get("payload")
    if entry.namespace or not isinstance(name, str) or not name.startswith(_PREFIX) or not isinstance(payload, dict):
        return
    read = _FACTS.get(name[len(_PREFIX) :])
    version = payload.get("v")
    if read is not None and version == VERSION and not isinstance(version, bool):
        read(draft, entry, payload)


def _turn(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    turn_id, run_id = payload.get("turn_id"), payload.get("run_id")
    if not isinstance(turn_id, str) or not turn_id:
        return
    if turn_id in draft.state["turns"]:
        opened = None if draft.is_ahead(entry, turn_id) else draft.open_turn(turn_id)
        if opened is not None and entry.seq > opened.turn["rev"]:
            opened.turn["rev"] = entry.seq
            opened.turn["message"] = _object(payload.get("message")) or opened.turn["message"]
    elif turn_id not in draft.state.get("unloaded", {}):
        parent = payload.get("parent_id")
        turn = new_turn(turn_id, entry.seq, parent=parent if isinstance(parent, str) and parent else None)
        turn["source"], turn["base"] = _text(payload.get("source")), _text(payload.get("base"))
        turn["message"] = _object(payload.get("message"))
        if not isinstance(run_id, str):
            turn["status"] = "done"  # it was written, and nobody answers it
        draft.add_turn(turn)
    draft.set_head(entry, turn_id)
    if isinstance(run_id, str) and run_id not in draft.state["runs"]:
        draft.begin_run(entry, run_id, turn_id)


def _run(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    run_id, turn_id, status = payload.get("run_id"), payload.get("turn_id"), payload.get("status")
    if not isinstance(run_id, str) or not isinstance(status, str):
        return
    begins = run_id not in draft.state["runs"]
    if begins:
        if not isinstance(turn_id, str):
            return
        draft.begin_run(entry, run_id, turn_id)
    run = draft.run(run_id)
    if run is None or (entry.seq <= run["rev"] and not begins):
        return
    for key, name in (("model", "model"), ("end", "end")):
        if isinstance(payload.get(name), str):
            run[key] = payload[name]  # type: ignore[literal-required]
    if status == "running":
        run["attempts"] += 1
        if _is_time(payload.get("started_at")):
            run["startedAt"] = payload["started_at"]
    if _is_time(payload.get("ended_at")):
        run["endedAt"] = payload["ended_at"]
    set_run_status(draft, entry, run, status, _text(payload.get("code")))
    _set_ends(draft, entry, run["turnId"], payload)
    if status == "running" and run["attempts"] > 1:
        _notice(draft, entry, run["turnId"], {"code": "restarted", "text": "The server was restarted."})


def _set_ends(draft: Draft, entry: Entry, turn_id: str, payload: Mapping[str, Any]) -> None:
    """What the turn began on, which its first run knows, and what it has left by now: checkpoints."""
    opened = None if draft.is_ahead(entry, turn_id) else draft.open_turn(turn_id)
    if opened is None:
        return
    base, end = _text(payload.get("base")), _text(payload.get("end"))
    if base is not None and opened.turn["base"] is None:
        opened.turn["base"], opened.turn["rev"] = base, max(opened.turn["rev"], entry.seq)
    if end is not None:
        opened.turn["end"], opened.turn["rev"] = end, max(opened.turn["rev"], entry.seq)


def _head(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    """The branch that was chosen, or where it goes on from now."""
    if isinstance(payload.get("turn_id"), str):
        draft.set_head(entry, payload["turn_id"])
        _set_ends(draft, entry, payload["turn_id"], {"end": payload.get("end")})


def _usage(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    run = draft.run(payload["run_id"]) if isinstance(payload.get("run_id"), str) else None
    if run is None or entry.seq <= run["rev"]:
        return
    run["rev"] = entry.seq
    run["usage"] = {
        "model": _text(payload.get("model")),
        "inputTokens": payload.get("input_tokens", 0),
        "outputTokens": payload.get("output_tokens", 0),
        "totalTokens": payload.get("total_tokens", 0),
        "namespaces": _object(payload.get("namespaces")) or {},
        "context": _object(payload.get("context")),
    }
    opened = None if draft.is_ahead(entry, run["turnId"]) else draft.open_turn(run["turnId"])
    if opened is not None:
        opened.turn["rev"] = max(opened.turn["rev"], entry.seq)


def _context(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    run = None if entry.run_id is None else draft.state["runs"].get(entry.run_id)
    turn_id = _text(payload.get("turn_id")) or (draft.state["head"] if run is None else run["turnId"])
    before, after = payload.get("tokens_before"), payload.get("tokens_after")
    notice = {
        "code": "context_compacted",
        "text": f"The model's context was shortened from {before} to {after} tokens.",
        "reason": _text(payload.get("reason")),
        "tokensBefore": before,
        "tokensAfter": after,
    }
    if turn_id is not None and _is_time(before) and _is_time(after):
        _notice(draft, entry, turn_id, notice)


def _message(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    message = _object(payload.get("message"))
    if message is None or not isinstance(message.get("id"), str):
        return
    turn_id = payload.get("turn_id")
    if not isinstance(turn_id, str):
        turn_id = draft.state["head"]
    if turn_id is None:
        turn_id = f"message:{message['id']}"
        mine = message if message.get("role") == "user" else None
        draft.synthetic_turn(entry, turn_id, mine, status="done")
        if mine is not None:
            return
    opened = None if draft.is_ahead(entry, turn_id) else draft.open_turn(turn_id)
    if opened is None:
        return
    if (opened.turn["message"] or {}).get("id") == message["id"]:
        if entry.seq > opened.turn["rev"]:
            opened.turn["message"], opened.turn["rev"] = message, entry.seq
        return
    for index, text in enumerate(_texts(message.get("content"))):
        item = opened.by_id.get(f"{message['id']}:{index}")
        if item is None:
            item = new_item(entry, f"{message['id']}:{index}", "text", ())
            item |= {"text": text, "state": "done"}
            if message.get("role") == "user":
                item["role"] = "user"
            opened.add(item)
        elif changed(opened, item, entry):
            draft.set_text(item, "text", text)
            item["state"] = "done"


def _sources(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    """What a call's result was taken from; `namespace` is that of the graph that made the call."""
    call_id, namespace, sources = payload.get("call_id"), payload.get("namespace"), payload.get("sources")
    if not (isinstance(call_id, str) and isinstance(namespace, list) and isinstance(sources, list)):
        return
    graph = tuple(segment for segment in namespace if isinstance(segment, str))
    if entry.run_id not in draft.state["runs"] or not draft.in_scope(graph):
        return
    opened = draft.turn_for(entry, graph)
    item = None if opened is None else opened.item_of_call(graph, call_id)
    if opened is not None and item is not None and changed(opened, item, entry):
        item["sources"] = [source for source in sources if isinstance(source, dict)]


def _changes(draft: Draft, entry: Entry, payload: Mapping[str, Any]) -> None:
    """What a run did to files: an item of its turn, one for each run."""
    run_id, files = payload.get("run_id"), payload.get("files")
    run = draft.state["runs"].get(run_id) if isinstance(run_id, str) else None
    if run is None or not isinstance(files, list):
        return
    opened = None if draft.is_ahead(entry, run["turnId"]) else draft.open_turn(run["turnId"])
    if opened is None:
        return
    item = opened.by_id.get(f"changes:{run_id}")
    if item is None:
        item = new_item(entry, f"changes:{run_id}", "changes", ())
        opened.add(item)
    elif not changed(opened, item, entry):
        return
    item["runId"], item["truncated"] = run_id, payload.get("truncated") is True
    item["files"] = [file for file in files if isinstance(file, dict)]


def _notice(draft: Draft, entry: Entry, turn_id: str, notice: Mapping[str, Any]) -> None:
    opened = None if draft.is_ahead(entry, turn_id) else draft.open_turn(turn_id)
    if opened is not None and f"notice:{entry.seq}" not in opened.by_id:
        opened.add(new_item(entry, f"notice:{entry.seq}", "notice", ()) | dict(notice))


_FACTS: Mapping[str, Callable[[Draft, Entry, Mapping[str, Any]], None]] = {
    "turn": _turn,
    "run": _run,
    "head": _head,
    "usage": _usage,
    "context": _context,
    "message": _message,
    "request": see_request_fact,
    "sources": _sources,
    "changes": _changes,
}


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content] if content else []
    parts = content if isinstance(content, list) else ()
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return [text for text in texts if isinstance(text, str) and text]


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _is_time(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
