"""A record as one short line for a person at a terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_MAX_CHARS = 400
# A log line must not move the cursor, change the title or pretend to be another line.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")


_BAR_CHARS = 24


def is_progress(record: Mapping[str, Any]) -> bool:
    """Whether the record says how far something is (`fraction`, 0 to 1): the next one takes its place on the screen."""
    fraction = record.get("context", {}).get("fraction")
    return isinstance(fraction, float | int) and 0 <= fraction <= 1


def _bar(fraction: float) -> str:
    full = round(fraction * _BAR_CHARS)
    return f"[{'#' * full}{'.' * (_BAR_CHARS - full)}]"


def to_text(record: Mapping[str, Any]) -> str:
    """`12:03:44 warning storage disk.full: message key=value`, the time in UTC."""
    event, message = record.get("event"), str(record["message"])
    said = str(message) if event in (None, message) else f"{event}: {message}"
    context = record.get("context", {})
    facts = [f"{key}={value}" for key, value in context.items() if key != "fraction"]
    if is_progress(record):
        facts.insert(0, _bar(context["fraction"]))
    error = record.get("error")
    if isinstance(error, Mapping):
        facts.append(f"error={error.get('name')}: {error.get('message')}")
    text = " ".join([record["timestamp"][11:19], record["level"], record["component"], said, *facts])
    text = _CONTROL.sub(" ", text)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
