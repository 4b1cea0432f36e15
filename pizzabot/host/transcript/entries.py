"""`Entry`: what the fold looks at of one event of the log, made from a stored event or from a frame of the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from pizzabot_hookspecs.storage_backends import StoredEvent
from pizzabot_hookspecs.wire import Namespace

READ = frozenset({"messages", "tools", "lifecycle", "custom", "input.requested", "input.answered"})
"""What a transcript is made of. State and checkpoints are large and are not even parsed."""
_SPACE = " \t\n\r"
_decode = json.JSONDecoder(strict=False, parse_int=str, parse_float=str)
_value_at = _decode.scan_once  # type: ignore[attr-defined]
_string_at = json.decoder.scanstring  # type: ignore[attr-defined]


class Entry(NamedTuple):
    """`data` is parsed JSON; `raw` is the same as text, where numbers and keys are as they were written.

    `run_id` is None for the thread's own facts. `timestamp` is milliseconds.
    """

    seq: int
    run_id: str | None
    method: str
    namespace: Namespace
    node: str | None
    timestamp: int
    data: Mapping[str, Any]
    raw: bytes | str | None = None


def entry_of_event(event: StoredEvent) -> Entry:
    """The entry of a stored event. Data that is no JSON object counts as empty: it hides no neighbour."""
    method = event.method
    data = _object(_parsed(method, event.data)) if method in READ else {}
    return Entry(event.seq, event.run_id, method, tuple(event.namespace), event.node, event.timestamp, data, event.data)


def entry_of_frame(frame: Mapping[str, Any] | str | bytes) -> Entry:
    """The entry of a frame `{"type":"event",…}`; given as text, its numbers and keys stay as they are written there."""
    raw: str | None = None
    parsed: Mapping[str, Any]
    if isinstance(frame, Mapping):
        parsed = frame
    else:
        text = frame if isinstance(frame, str) else frame.decode()
        parsed, raw = json.loads(text), raw_member(text, "params", "data")
    params = parsed["params"]
    return Entry(
        parsed["seq"],
        run_of_event_id(parsed["event_id"]),
        parsed["method"],
        tuple(params["namespace"]),
        params.get("node"),
        params["timestamp"],
        _object(params["data"]),
        raw,
    )


def run_of_event_id(event_id: str) -> str | None:
    """`synth:<run_id>:<seq>` gives the run, `synth:thread:<seq>` none."""
    run_id = event_id.split(":")[1]
    return None if run_id == "thread" else run_id


def text_of_member(entry: Entry, *path: str) -> str | None:
    """The member of `entry.data` at `path` as text: a string as it is, all else as the JSON it was written in.

    None where there is none. Parsed numbers would lose digits (spec/12 statement 47), so the text is cut out of the
    frame; only an entry that came as objects is written again.
    """
    value: Any = entry.data
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    if isinstance(value, str):
        return value
    found = None if entry.raw is None else raw_member(_text(entry.raw), *path)
    return found if found is not None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def raw_member(text: str, *path: str) -> str | None:
    """The member at `path` of the object that `text` is, exactly as it stands there; of equal keys the last."""
    found: str | None = text
    for key in path:
        if found is None:
            return None
        members = [value for name, value in _members(found) if name == key]
        found = members[-1] if members else None
    return found


def _members(text: str) -> Iterator[tuple[str, str]]:
    at = _skip(text, 0)
    if text[at : at + 1] != "{":
        return
    at = _skip(text, at + 1)
    while text[at : at + 1] == '"':
        name, at = _string_at(text, at + 1, False)  # noqa: FBT003 - json's own signature
        start = _skip(text, _skip(text, at) + 1)
        _, at = _value_at(text, start)
        yield name, text[start:at]
        at = _skip(text, at)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _parsed(method: str, data: bytes) -> Any:
    """Questions and facts are handed on as they are, with integers of any size; the rest is many and read at once."""
    return json.loads(data) if method in ("input.requested", "custom") else orjson.loads(data)


def _text(raw: bytes | str) -> str:
    return raw if isinstance(raw, str) else raw.decode()


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
