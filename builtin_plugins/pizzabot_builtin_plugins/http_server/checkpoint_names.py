"""How clients name a checkpoint and what they want of it: `checkpoint`, `before`, `select` (wire.md §8.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pizzabot_builtin_plugins.http_server.body_fields import mapping, refused, selection, text
from pizzabot_builtin_plugins.http_server.services import checked_id
from pizzabot_builtin_plugins.http_server.subscriptions import MAX_CHARACTERS, MAX_SEGMENTS
from pizzabot_hookspecs.wire import Namespace, ThreadState

MAX_SELECTED = 64
"""Fields in `select`."""

NAMESPACE_RULE = f"must have at most {MAX_SEGMENTS} segments of 1 to {MAX_CHARACTERS} characters, joined with | or NUL"

STATE_FIELDS = tuple(ThreadState.__annotations__)

CHECKPOINT_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "checkpoint_id": {"type": "string"},
        "checkpoint_ns": {"type": "string", "description": "a subagent's namespace; segments joined with | or NUL"},
        "thread_id": {"type": "string"},
    },
}
SELECT_SCHEMA: Mapping[str, Any] = {
    "type": "array",
    "maxItems": MAX_SELECTED,
    "items": {"type": "string", "examples": [*STATE_FIELDS, "values.messages"]},
}


@dataclass(frozen=True, kw_only=True)
class CheckpointName:
    """`checkpoint_id` None is the newest one of the namespace; `namespace` is empty for the thread itself."""

    checkpoint_id: str | None = None
    namespace: Namespace = ()


def read_checkpoint(body: Mapping[str, Any], thread_id: str) -> CheckpointName:
    """`checkpoint` of a body. Another thread's is refused."""
    given = mapping(body, "checkpoint") or {}
    if text(given, "thread_id", of="checkpoint") not in (None, "", thread_id):
        raise refused("checkpoint.thread_id", "must be the thread of the address")
    checkpoint_id = text(given, "checkpoint_id", of="checkpoint") or None
    return CheckpointName(
        checkpoint_id=None if checkpoint_id is None else checked_id(checkpoint_id, "checkpoint.checkpoint_id"),
        namespace=_namespace(text(given, "checkpoint_ns", of="checkpoint") or ""),
    )


def read_before(value: object) -> str | None:
    """A checkpoint's id, or `{configurable: {checkpoint_id}}`, or `{checkpoint_id}` as Python's `Checkpoint` has it."""
    if isinstance(value, dict):
        inner = value.get("configurable", value)
        value = inner.get("checkpoint_id") if isinstance(inner, dict) else None
        if value is None:
            raise refused("before", "must have `configurable.checkpoint_id`")
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise refused("before", "must be a checkpoint's id, or {configurable: {checkpoint_id}}")
    return checked_id(value, "before")


def read_selection(wanted: Sequence[str] | None) -> tuple[str, ...] | None:
    if wanted is not None and len(wanted) > MAX_SELECTED:
        raise refused("select", f"must have at most {MAX_SELECTED} fields")
    valid = f"{', '.join(STATE_FIELDS)} and values.<key>"
    return selection(wanted, lambda field: field in STATE_FIELDS or _value_key(field) is not None, valid=valid)


def selected(state: ThreadState, fields: Sequence[str] | None) -> Mapping[str, Any]:
    """The state with those fields alone."""
    if fields is None:
        return state
    whole: Mapping[str, Any] = state
    shown = {field: whole[field] for field in fields if field in whole}
    keys = [key for key in map(_value_key, fields) if key is not None]
    if keys and "values" not in shown:
        shown["values"] = {key: state["values"][key] for key in keys if key in state["values"]}
    return shown


def _value_key(field: str) -> str | None:
    return field.removeprefix("values.") if len(field) > len("values.") and field.startswith("values.") else None


def split_namespace(joined: str) -> Namespace | None:
    """None for what is none. The JS SDK joins segments with NUL, Python and LangGraph's own states with `|`."""
    if not joined:
        return ()
    segments = tuple(joined.replace("\0", "|").split("|"))
    is_one = len(segments) <= MAX_SEGMENTS and all(0 < len(segment) <= MAX_CHARACTERS for segment in segments)
    return segments if is_one else None


def _namespace(joined: str) -> Namespace:
    found = split_namespace(joined)
    if found is None:
        raise refused("checkpoint.checkpoint_ns", NAMESPACE_RULE)
    return found
