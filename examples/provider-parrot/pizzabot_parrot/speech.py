"""What a parrot makes of a text. Pure functions, tested without a host."""

from __future__ import annotations

import re

_SENTENCE_START = re.compile(r"(?:^|[.!?]\s+)[a-zà-öø-ÿ]")
_WORD = re.compile(r"\s*\S+\s*?(?=\s|$)|\s+")


def spoken(text: str, *, loud: bool, sentence_case: bool) -> str:
    """`text` as it is, in capitals (`loud`), or with every sentence begun by a capital letter."""
    if loud:
        return text.upper()
    if sentence_case:
        return _SENTENCE_START.sub(lambda start: start.group().upper(), text)
    return text


def words(text: str) -> list[str]:
    """`text` in pieces of one word, each with the whitespace before it; joined they are `text` again."""
    return _WORD.findall(text)
