"""The digest of a request, by which one that is sent again is told from another one under the same id or key."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import orjson

from pizzabot.host.text import clean


def fingerprint(**facts: Any) -> str:
    """SHA-256 of `facts` as JSON. The order of keys does not count: it says nothing."""
    try:
        text = orjson.dumps(facts, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # what orjson refuses, as `to_json` has it
        text = json.dumps(clean(facts), sort_keys=True, ensure_ascii=False).encode()
    return hashlib.sha256(text).hexdigest()
