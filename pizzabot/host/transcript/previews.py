"""Previews of long tool texts: a piece of the JSON that was written, itself valid JSON; of other text, its beginning.

Works on the text, never on parsed values: a number keeps its digits, keys their order and their doubles (spec/12
statements 47 and 48). Characters are Unicode code points. What is left
out at the end of a list or an object is not marked: the page says `truncated` and how long the whole is.
"""

from __future__ import annotations

import re
from typing import Any

MAX_CHARACTERS = 12_000
"""A text that is longer is shown as a preview of at most so many characters."""
MAX_VALUES = 12_000
MAX_DEPTH = 6
MAX_STRING = 4_000
"""Of one string in a structure, so that a long one leaves room for what stands behind it."""
ELLIPSIS = "…"

_TOKEN = re.compile(
    r'[ \t\n\r]*(?:([{}\[\],:])|"((?:[^"\\\x00-\x1f]+|\\.)*)"|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null))',
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)


def previewed(text: str, *, call_id: str, part: str, growing: bool = False) -> str | dict[str, Any]:
    """`text`, or `{preview, chars, truncated, ref}` when it is too long; `growing` is text that is still coming."""
    if len(text) <= MAX_CHARACTERS:
        return text
    return {
        "preview": text[:MAX_CHARACTERS] if growing else preview(text),
        "chars": len(text),
        "truncated": True,
        "ref": {"callId": call_id, "part": part},
    }


def preview(text: str) -> str:
    """At most `MAX_CHARACTERS` of `text`; a structure is cut to one that can be parsed."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return _Cutter(text).cut()
        except _NotJsonError:
            pass
    return text[:MAX_CHARACTERS]


class _NotJsonError(Exception):
    """The text begins like a structure and is none, or goes on behind it."""


class _Cutter:
    """Copies tokens until the room is used up, then closes what is open."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out: list[str] = []
        self._room = MAX_CHARACTERS
        self._values = 0
        self._full = False

    def cut(self) -> str:
        self._value(0)
        if not self._full and self._text[self._at :].strip():
            raise _NotJsonError
        return "".join(self._out)

    def _next(self) -> tuple[str, str]:
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise _NotJsonError
        self._at = match.end()
        sign, string, scalar = match.groups()
        if sign is not None:
            return "sign", sign
        return ("string", string) if string is not None else ("scalar", scalar)

    def _write(self, text: str) -> None:
        self._out.append(text)
        self._room -= len(text)

    def _value(self, depth: int, prefix: str = "") -> bool:
        """Copy one value behind `prefix` (a comma, a key); False when there is no room for it."""
        kind, told = self._next()
        if self._values >= MAX_VALUES or self._room < len(prefix) + 2 + depth:
            return self._stop()
        self._values += 1
        if kind == "sign":
            if told not in "{[":
                raise _NotJsonError
            self._write(prefix)
            return self._structure(told, depth + 1)
        if kind == "string":
            told = _shortened(told, min(MAX_STRING, self._room - len(prefix) - 2 - depth))
            self._write(f'{prefix}"{told}"')
            return True
        if len(prefix) + len(told) + depth > self._room:
            return self._stop()
        self._write(prefix + told)
        return True

    def _stop(self) -> bool:
        self._full = True
        return False

    def _structure(self, opener: str, depth: int) -> bool:
        closer = "}" if opener == "{" else "]"
        if depth > MAX_DEPTH:
            self._write(opener + closer)
            self._skip()
            return True
        self._write(opener)
        comma = ""
        while not self._full:
            before = self._at
            kind, told = self._next()
            if (kind, told) == ("sign", closer) and not comma:
                break
            self._at = before
            if not self._value(depth, comma + self._key(opener)):
                break
            kind, told = self._next() if not self._full else ("sign", closer)
            if kind != "sign" or told not in (",", closer):
                raise _NotJsonError
            if told == closer:
                break
            comma = ","
        self._write(closer)
        return True

    def _key(self, opener: str) -> str:
        if opener == "[":
            return ""
        kind, told = self._next()
        if kind != "string" or self._next() != ("sign", ":"):
            raise _NotJsonError
        return f'"{told}":'

    def _skip(self) -> None:
        """Pass over the rest of a structure that is too deep."""
        depth = 1
        while depth:
            kind, told = self._next()
            if kind == "sign":
                depth += (told in "{[") - (told in "}]")


def _shortened(raw: str, room: int) -> str:
    """The inside of a JSON string in at most `room` characters, escapes and the two halves of a pair whole."""
    if len(raw) <= room:
        return raw
    end = max(room - 1, 0)
    at = raw.find("\\")
    while 0 <= at < end:
        match = _ESCAPE.match(raw, at)
        after = at + 1 if match is None else match.end()
        if after > end:
            end = at
            break
        at = raw.find("\\", after)
    return raw[:end] + ELLIPSIS if room > 0 else ""
