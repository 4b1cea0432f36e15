"""Text hygiene at the edge: what a client or a model sent becomes text that every store and wire can carry.

Unpaired surrogates are replaced before checkpoint, log and search index see them (durable-runs rule 13): they change
LangGraph's serializer silently, and JSON in UTF-8 cannot carry them.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """`text` with each unpaired surrogate replaced by U+FFFD; pairs that were split into two characters are joined."""
    if _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(value: Any) -> Any:
    """`value` (JSON) with `clean_text` applied to every string and key."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    return value


def to_json(value: Any) -> bytes:
    """JSON in UTF-8. orjson first; what it refuses (lone surrogates, integers over 64 bits) takes the slow way."""
    try:
        return orjson.dumps(value)
    except TypeError:
        text = json.dumps(clean(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()
