"""A turn as Markdown for an export: what was asked, the steps, the answer. Nothing in it can end its own fence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pizzabot.host.transcript import Item, State, Turn
from pizzabot_hookspecs.support.questions import checked_question, is_question, reply_text

_BACKTICKS = re.compile("`+")
_STATES = {
    "running": "is still being written",
    "waiting": "waits for an answer",
    "attention": "waits for a decision",
    "failed": "failed",
    "stopped": "was stopped",
    "superseded": "was replaced by the next message",
}


def markdown_of(state: State, turn_id: str, *, siblings: bool) -> str:
    """The turn, with what its subagents did below their cards; `siblings` says on which branch it is."""
    turn = state["turns"][turn_id]
    parts = [f"\n## {_title(turn)}\n", *_said(turn)]
    if siblings:
        parts.insert(1, _branch(state, turn))
    parts += _items(turn, [], depth=0)
    if turn["status"] in _STATES:
        why = f": {turn['error']}" if turn.get("error") else ""
        parts.append(f"*This turn {_STATES[turn['status']]}{why}.*\n")
    return "\n".join(parts)


def _title(turn: Turn) -> str:
    text = " ".join(_text(turn["message"]).split())
    short = text if len(text) <= 80 else f"{text[:79]}…"
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", short) or "(no words)"


def _branch(state: State, turn: Turn) -> str:
    family = state["branches"].get(turn["parentId"] or "", [turn["id"]])
    at = family.index(turn["id"]) + 1 if turn["id"] in family else 1
    behind = f", behind `{turn['parentId']}`" if turn["parentId"] else ""
    return f"*Turn `{turn['id']}`{behind}; version {at} of {len(family)}.*\n"


def _said(turn: Turn) -> Iterator[str]:
    text = _text(turn["message"])
    if text:
        yield "**You**\n"
        yield f"{_quoted(text)}\n"
    for part in (turn["message"] or {}).get("content") or ():
        if isinstance(part, dict) and part.get("type") == "file":
            yield f"- attachment: `{part.get('name') or part.get('attachmentId')}`\n"


def _items(turn: Turn, namespace: Sequence[str], *, depth: int) -> Iterator[str]:
    for item in turn["items"]:
        if item["namespace"] == list(namespace):
            yield from _item(turn, item, depth)


def _item(turn: Turn, item: Item, depth: int) -> Iterator[str]:
    kind = item["kind"]
    if kind == "text":
        who = "**You**\n\n" if item.get("role") == "user" else ""
        cut = "\n\n*(cut off)*" if item["state"] == "cut" else ""
        yield f"{who}{item['text']}{cut}\n"
    elif kind == "reasoning":
        yield f"<details><summary>Thought</summary>\n\n{_quoted(item['text'])}\n\n</details>\n"
    elif kind in ("tool", "subagent"):
        yield from _call(turn, item, depth)
    elif kind == "request":
        yield from _request(item)
    elif item.get("text"):
        yield f"*{item['text']}*\n"


def _call(turn: Turn, item: Item, depth: int) -> Iterator[str]:
    name = item.get("title") or item["name"] if item["kind"] == "subagent" else item["name"]
    label = "Delegated" if item["kind"] == "subagent" else "Tool"
    yield f"**{label}: {_code(str(name))}** ({item['state']})\n"
    for field in ("input", "output", "error"):
        if isinstance(item.get(field), str) and item[field]:
            yield f"{field}:\n\n{_fenced(item[field])}\n"
    for source in item.get("sources") or ():
        yield f"- source `{source['id']}`: {_code(source['title'])} {source.get('url', '')}\n"
    child = item.get("child")
    if child and depth < len(turn["items"]) and any(one["namespace"] == child for one in turn["items"]):
        yield "<details><summary>What it did</summary>\n"
        yield from _items(turn, child, depth=depth + 1)
        yield "</details>\n"


def _request(item: Item) -> Iterator[str]:
    by = f" by {item['by']}" if item.get("by") else ""
    yield f"**Asked: {item['requestKind']}** ({item['state']}{by})\n"
    payload, answer = item.get("payload"), item.get("answer")
    if item["requestKind"] == "input" and is_question(payload):
        question = checked_question(payload)
        yield f"question:\n\n{_quoted(question['text'])}\n"
        if answer is not None:
            yield f"answer:\n\n{_fenced(reply_text(question, answer))}\n"
        return
    for label, value in (("question", payload), ("answer", answer)):
        if value is not None:
            yield f"{label}:\n\n{_fenced(_json(value), 'json')}\n"


def _json(value: Any) -> str:
    from pizzabot.host.text import to_json

    return to_json(value).decode()


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.splitlines())


def _fenced(text: str, language: str = "") -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(text: str) -> str:
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    flat = " ".join(text.split())
    return f"{fence} {flat} {fence}" if longest else f"`{flat}`"


def _text(message: Any) -> str:
    parts = (message or {}).get("content") or ()
    texts = (part for part in parts if isinstance(part, dict) and part.get("type") == "text")
    return "\n\n".join(str(part.get("text", "")) for part in texts)
