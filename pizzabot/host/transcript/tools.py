"""Tool calls: one item from the first character of its arguments to its result; a `task` call is a subagent's card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pizzabot.host.transcript.draft import Draft, OpenTurn, changed, new_item
from pizzabot.host.transcript.entries import Entry, text_of_member
from pizzabot.host.transcript.shapes import Item, part_key, scope_key
from pizzabot_hookspecs.wire import Namespace

SUBAGENT_TOOL = "task"
ABORTED = "aborted"
"""The code of a closing frame that the host wrote for a call that was stopped."""
MAX_TITLE = 200
_ENDS = ("tool-finished", "tool-error")
_EVENTS = frozenset({"tool-started", "tool-output-delta", *_ENDS})


def see_tool(draft: Draft, entry: Entry) -> None:
    """A `tools` frame. Its last segment is the call's own, except where the runtime knew only the graph's."""
    call_id, event = entry.data.get("tool_call_id"), entry.data.get("event")
    if not isinstance(call_id, str) or event not in _EVENTS or entry.run_id is None:
        return
    turn = draft.open_turn(draft.turn_id_of(entry, entry.run_id))
    if turn is None:
        return
    graph = _graph(turn, entry, call_id)
    if event in _ENDS and graph:
        _count_step(draft, entry, graph)
    if not draft.in_scope(graph) or (opened := draft.turn_for(entry, graph)) is None:
        return
    item = _heard_of(opened, entry, call_id, graph)
    if item is None:
        return
    if event == "tool-started":
        _started(draft, opened, item, entry)
    elif event == "tool-output-delta" and isinstance(entry.data.get("delta"), str):
        draft.append(item, "output", entry.data["delta"])
    elif event == "tool-finished":
        _finished(draft, item, entry)
    elif event == "tool-error":
        draft.drop_text(item, "output")
        item["error"] = str(entry.data.get("message") or "")
        item["state"] = "cut" if entry.data.get("code") == ABORTED else "failed"


def begin_call(
    opened: OpenTurn,
    entry: Entry,
    call_id: str,
    name: str,
    graph: Namespace,
    *,
    seq: int | None = None,
    agent: str | None = None,
) -> Item | None:
    """The item of a call; its place makes its id, because an id of a call may come again in a later message.

    None when a page has brought it before this event.
    """
    kind = "subagent" if name == SUBAGENT_TOOL else "tool"
    item = new_item(entry, f"tool:{call_id}@{entry.seq if seq is None else seq}", kind, graph, seq=seq, agent=agent)
    item |= {"callId": call_id, "name": name, "state": "open"}
    opened.set_call(item)
    if item["id"] in opened.by_id:
        return None
    if kind == "subagent":
        item |= {"name": "", "title": "", "steps": 0}
    opened.add(item)
    return item


def call_is_written(
    draft: Draft, opened: OpenTurn, item: Item, entry: Entry, content: Mapping[str, Any], args: str | None
) -> None:
    """The message has the whole call; `args` is its arguments as they were written."""
    if item["rev"] != entry.seq and not changed(opened, item, entry):
        return
    if args is not None:
        draft.set_text(item, "input", args)
    _describe(item, content.get("args"))
    if item["state"] == "writing":
        item["state"] = "open"


def see_child(draft: Draft, entry: Entry) -> None:
    """A subagent's `started`: what it does is in this namespace."""
    cause = entry.data.get("cause")
    call_id = cause.get("tool_call_id") if isinstance(cause, dict) else None
    graph = entry.namespace[:-1]
    run = draft.state["runs"].get(entry.run_id or "")
    if entry.data.get("event") != "started" or not isinstance(call_id, str) or run is None:
        return
    if (turn := draft.open_turn(run["turnId"])) is not None:
        _claim(turn, entry.namespace, call_id)
    if not draft.in_scope(graph) or (opened := draft.turn_for(entry, graph)) is None:
        return
    item = opened.item_of_call(graph, call_id)
    if item is None or item.get("child") == list(entry.namespace):
        return
    if item["kind"] == "subagent" and changed(opened, item, entry):
        _set_child(opened, item, entry)


def forget_graphs(draft: Draft, opened: OpenTurn, entry: Entry) -> None:
    """A graph's model speaks anew: subagents that it had called and that have ended do nothing more."""
    graphs, above = opened.turn["graphs"], list(entry.namespace[:-1])
    over = [key for key, one in graphs.items() if one["ended"] and one["namespace"][:-1] == above]
    below = [tuple(graphs.pop(key)["namespace"]) for key in over]
    opened.forget_calls({graph for graph in below if not draft.is_ahead(entry, opened.turn["id"], graph)})


def _graph(opened: OpenTurn, entry: Entry, call_id: str) -> Namespace:
    """The graph that a call is of: the namespace without the call's own segment, if it has one.

    Whose work a namespace is comes from the turn, not from items: a page may have none of them.
    """
    known = opened.turn["graphs"].get(scope_key(entry.namespace))
    if known is not None and known["callId"] != call_id:
        return entry.namespace
    if known is not None and entry.data["event"] in _ENDS:
        known["ended"] = True
    elif entry.data["event"] == "tool-started" and entry.data.get("tool_name") == SUBAGENT_TOOL:
        _claim(opened, entry.namespace, call_id)
    return entry.namespace[:-1]


def _claim(opened: OpenTurn, namespace: Namespace, call_id: str) -> None:
    known = opened.turn["graphs"].get(scope_key(namespace))
    if namespace and (known is None or known["ended"] or known["callId"] == call_id):
        opened.turn["graphs"][scope_key(namespace)] = {
            "namespace": list(namespace),
            "callId": call_id,
            "ended": False,
        }


def _heard_of(opened: OpenTurn, entry: Entry, call_id: str, graph: Namespace) -> Item | None:
    """The item of the call that this event is about, to be changed by it; None if it has the event or is not loaded."""
    ends = entry.data["event"] in _ENDS
    call = opened.call(graph, call_id)
    if call is None:
        item = begin_call(opened, entry, call_id, str(entry.data.get("tool_name") or ""), graph)
        opened.turn["calls"][part_key(graph, call_id)]["closed"] = ends
        return item
    call["closed"] = ends
    known = opened.by_id.get(call["item"])
    if known is None:
        opened.touch(graph, entry)
    return known if known is not None and changed(opened, known, entry) else None


def _set_child(opened: OpenTurn, item: Item, entry: Entry) -> None:
    item["child"] = list(entry.namespace)
    opened.cards[entry.namespace] = item


def _count_step(draft: Draft, entry: Entry, graph: Namespace) -> None:
    above = graph[:-1]
    if not draft.in_scope(above) or (opened := draft.turn_for(entry, above)) is None:
        return
    item = opened.cards.get(graph)
    if item is None and scope_key(graph) in opened.turn["graphs"]:
        opened.touch(above, entry)
    if item is not None and changed(opened, item, entry):
        item["steps"] += 1


def _started(draft: Draft, opened: OpenTurn, item: Item, entry: Entry) -> None:
    name = entry.data.get("tool_name")
    if isinstance(name, str) and item["kind"] == "tool":
        item["name"] = name
    text = text_of_member(entry, "input")
    if text is not None:
        draft.set_text(item, "input", text)
    _describe(item, entry.data.get("input"))
    if item["kind"] == "subagent" and entry.namespace:
        _set_child(opened, item, entry)
    draft.drop_text(item, "output")
    item.pop("error", None)
    item.pop("sources", None)
    item["state"] = "open"


def _finished(draft: Draft, item: Item, entry: Entry) -> None:
    text, failed = _output(entry, item["callId"])
    item.pop("error", None)
    if text is None:
        draft.drop_text(item, "output")
    else:
        draft.set_text(item, "output", text)
    item["state"] = "failed" if failed else "done"


def _describe(item: Item, args: Any) -> None:
    if item["kind"] != "subagent" or not isinstance(args, dict):
        return
    name, description = args.get("subagent_type"), args.get("description")
    if isinstance(name, str):
        item["name"] = name
    if isinstance(description, str):
        lines = (line.strip() for line in description.split("\n"))
        item["title"] = next((line for line in lines if line), "")[:MAX_TITLE]


def _output(entry: Entry, call_id: str) -> tuple[str | None, bool]:
    """The result as text, and whether it is that of a failure: a plain value, a tool message, or a Command with one."""
    output = entry.data.get("output")
    if "output" not in entry.data:
        return None, False
    if not isinstance(output, dict):
        return ("" if output is None else text_of_member(entry, "output")), False
    if output.get("type") == "tool" and "content" in output:
        text = _content(output["content"])
        return (text_of_member(entry, "output", "content") if text is None else text), output.get("status") == "error"
    if output.get("lg_name") == "Command":
        message = _told_by(output, call_id)
        if message is not None:
            text = _content(message.get("content"))
            return (_written(message.get("content")) if text is None else text), message.get("status") == "error"
    return text_of_member(entry, "output"), False


def _told_by(command: Mapping[str, Any], call_id: str) -> Mapping[str, Any] | None:
    update = command.get("update")
    messages = update.get("messages") if isinstance(update, dict) else None
    found = [one for one in messages or () if isinstance(one, dict) and one.get("tool_call_id") == call_id]
    return found[-1] if found else None


def _content(content: Any) -> str | None:
    """The text of a message's content; None when there is more to it than text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    kept = [text for text in texts if isinstance(text, str)]
    return "\n".join(kept) if len(kept) == len(content) else None


def _written(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
