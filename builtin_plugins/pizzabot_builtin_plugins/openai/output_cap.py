"""Learns how many output tokens an endpoint allows from the error it gives when asked for more (spec/06 §6)."""

from __future__ import annotations

import re

SAFE_MAX_TOKENS = 8192

_MENTION = re.compile(r"max_(?:completion_|output_)?tokens", re.IGNORECASE)
_HINTS = (
    re.compile(r"max_total_tokens\D{0,20}(\d{1,9})", re.IGNORECASE),
    re.compile(r"supports at most (\d{1,9}) (?:completion|output) tokens", re.IGNORECASE),
)


def learned_cap(message: str, current: int) -> int | None:
    """What to ask for instead of `current` tokens, or None when `message` gives no smaller number."""
    if not _MENTION.search(message):
        return None
    for hint in _HINTS:
        if (found := hint.search(message)) and 0 < int(found[1]) < current:
            return min(SAFE_MAX_TOKENS, int(found[1]))
    return None
