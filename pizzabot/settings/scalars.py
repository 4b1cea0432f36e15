"""A variable's text as a value: what looks like JSON or a TOML scalar is parsed, everything else stays text."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:0|[1-9](?:_?[0-9]){0,17})(?:\.[0-9]{1,17})?(?:[eE][+-]?[0-9]{1,3})?")
_MAX_CHARS = 64 * 1024


def parse_scalar(text: str, *, secret: bool = False) -> Any:
    """`8080`, `true`, `["a"]`, `{env = "NAME"}`, `"quoted"` are parsed, `eu-west-1` is a text.

    A `secret` is a text or a table: a token of digits only stays one, a reference is still read.
    """
    text = text.strip()
    if len(text) > _MAX_CHARS or not text:
        return text
    if text[0] in "[{" or (text[0] in "\"'" and not secret):
        return _structure(text)
    if secret:
        return text
    if text in {"true", "false"} or _NUMBER.fullmatch(text):
        return _toml(text)
    return text


def _structure(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _toml(text)


def _toml(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    return parsed["value"] if len(parsed) == 1 else text
