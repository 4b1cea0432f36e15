"""The forms one secret travels in (plain, JSON, URL-encoded, base64 at any offset) and one pattern for all of them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

MIN_SECRET_CHARS = 4
"""Shorter values are not hidden: they would hide half of every text (spec/09 §5)."""

_MIN_CORE_CHARS = 8  # a shorter piece of base64 meets ordinary text by chance
_MIN_LINE_CHARS = 16
_TREE_DEPTH = 3  # below MIN_SECRET_CHARS, so that no text ends inside the tree
_MAX_LINES = 200  # a private key has some 30


def forms(secret: str) -> set[str]:
    """Every text in which `secret` is to be found."""
    found = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    encoded = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    found |= encoded | {re.sub(r"%[0-9A-F]{2}", lambda hexes: hexes[0].lower(), text) for text in encoded}
    found |= set(_base64_forms(secret.encode(errors="surrogatepass")))
    found |= set(_lines(secret))
    return {text for text in found if len(text) >= MIN_SECRET_CHARS}


def _base64_forms(raw: bytes) -> Iterator[str]:
    """The secret alone, and the characters that stay the same wherever it lies in a longer value (`user:secret`)."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode().rstrip("=")
        for offset in range(3):
            text = encode(b"\0" * offset + raw).decode().rstrip("=")
            # The first and the last character also carry bits of what stands beside the secret.
            head = (0, 2, 3)[offset]
            tail = 0 if (offset + len(raw)) % 3 == 0 else 1
            core = text[head : len(text) - tail]
            if len(core) >= _MIN_CORE_CHARS:
                yield core


def _lines(secret: str) -> Iterator[str]:
    """The lines of a private key: a traceback or a terminal may show them one by one."""
    lines = secret.splitlines()
    if len(lines) > 1:
        yield from (
            line.strip() for line in lines[:_MAX_LINES] if len(line.strip()) >= _MIN_LINE_CHARS and "-----" not in line
        )


def pattern_of(texts: Iterable[str]) -> re.Pattern[str]:
    """One pattern that finds each of `texts` (at least 4 characters each), the longest first."""
    return re.compile(_branches(sorted(texts, key=lambda text: (-len(text), text)), _TREE_DEPTH))


def _branches(texts: list[str], depth: int) -> str:
    """An alternation as a tree of first characters: a flat one tries each of 1,000 branches at each character."""
    if depth == 0 or len(texts) == 1:
        return "|".join(map(re.escape, texts))
    groups: dict[str, list[str]] = {}
    for text in texts:
        groups.setdefault(text[0], []).append(text[1:])
    return "|".join(f"{re.escape(first)}(?:{_branches(rest, depth - 1)})" for first, rest in sorted(groups.items()))
