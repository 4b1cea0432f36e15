"""One log record: a snapshot that costs its caller microseconds, and what the writing thread makes of it (spec/09)."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from pizzabot_hookspecs.support.redaction import Redactor
from pizzabot_hookspecs.support.structures import MAX_DEPTH, MAX_ITEMS, MAX_KEYS

MAX_LINE_BYTES = 256 * 1024
"""A record that is longer keeps its event and message only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What was logged, as it was at that moment. `facts` hold plain values and copies of containers."""

    time: float
    level: str
    component: str
    event: str | None
    message: str
    facts: Mapping[str, Any]
    error: BaseException | None = None


def snapshot(value: Any, depth: int = 0) -> Any:
    """Containers copied within the bounds, since their owner may change them; the rest as is."""
    if isinstance(value, str | int | float | bytes | BaseException) or value is None:
        return value
    if depth < MAX_DEPTH and isinstance(value, Mapping):
        return {key: snapshot(inner, depth + 1) for key, inner in islice(value.items(), MAX_KEYS + 1)}
    if depth < MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [snapshot(inner, depth + 1) for inner in islice(value, MAX_ITEMS + 1)]
    return value if isinstance(value, Mapping | list | tuple | set | frozenset) else str(value)


def to_record(entry: Entry, *, process: str, redactor: Redactor) -> dict[str, Any]:
    """`{id, timestamp, level, process, pid, component, event?, message, error?, context?}`, redacted."""
    record: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "timestamp": datetime.fromtimestamp(entry.time, UTC).isoformat(timespec="milliseconds"),
        "level": entry.level,
        "process": process,
        "pid": os.getpid(),
        "component": entry.component,
    }
    if entry.event is not None:
        record["event"] = redactor.cut(entry.event, 256)
    record["message"] = redactor.structure(entry.message)
    if entry.error is not None:
        record["error"] = redactor.structure(entry.error)
    if entry.facts:
        record["context"] = redactor.structure(entry.facts)
    return record


def to_line(record: Mapping[str, Any]) -> bytes:
    line = _encoded(record)
    if len(line) <= MAX_LINE_BYTES:
        return line
    short = {key: value for key, value in record.items() if key not in {"error", "context"}}
    short["message"] = str(record["message"])[:1000]
    return _encoded({**short, "context": {"left_out": f"a record of {len(line)} bytes"}})


def _encoded(record: Mapping[str, Any]) -> bytes:
    # "replace": half a surrogate pair in somebody's text is no reason to lose a record.
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", errors="replace") + b"\n"
