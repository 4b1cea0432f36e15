"""pydantic's errors as `InvalidRequest` `invalid_settings`: the dotted path, the value's source, what is wrong."""

from __future__ import annotations

import json
import re

from pydantic import ValidationError

from pizzabot.settings.layers import Merged
from pizzabot.settings.paths import Path, dotted
from pizzabot_hookspecs.errors import InvalidRequest
from pizzabot_hookspecs.support.redaction import names_a_secret


def from_validation(error: ValidationError, merged: Merged) -> InvalidRequest:
    """One error for all that is wrong; the line names the first and says how many more there are."""
    fields: dict[str, str] = {}
    first = ""
    for fault in error.errors(include_url=False, include_context=False):
        path = _without_indices(fault["loc"])
        fields[dotted(path)] = in_words(fault["msg"])
        told = fault["type"] in _TOLD or names_a_secret(path[-1])
        value = "" if told else f", not {_as_written(fault['input']):.60}"
        first = first or f"{dotted(path)} ({merged.source(path)}): {in_words(fault['msg'])}{value}"
    return InvalidRequest("invalid_settings", first + _more(len(fields)), fields=fields)


def with_sources(error: InvalidRequest, prefix: Path, merged: Merged) -> InvalidRequest:
    """A plugin's own complaint about its section, with the place where each of its fields was written."""
    if not error.fields:
        return error
    fields = {dotted((*prefix, *name.split("."))): in_words(reason) for name, reason in error.fields.items()}
    name, reason = next(iter(error.fields.items()))
    path = (*prefix, *name.split("."))
    detail = f"{dotted(path)} ({merged.source(path)}): {in_words(reason)}{_more(len(fields))}"
    return InvalidRequest(error.code, detail, fields=fields)


def _without_indices(location: tuple[int | str, ...]) -> Path:
    return tuple(part for part in location if isinstance(part, str)) or ("settings",)


_TOLD = frozenset({"value_error", "string_too_short", "missing"})
"""Errors whose text says the value already, or that there is none."""

_WORDS = (
    (r"^Value error, ", ""),
    (r"^Input is not a valid path.*", "a path is expected, as a text"),
    (r"^Input should be a valid dictionary or instance of \w+", "a table is expected"),
    (r"^Input should be a valid dictionary", "a table is expected"),
    (r"^Input should be a valid (?:tuple|list|set|frozenset)", "a list is expected"),
    (r"^String should have at least 1 character$", "it is empty"),
    (r"^(?:Tuple|List|Value) should have at most (\d+) items? after validation.*", r"it has more than \1 entries"),
    (r"^Input should be a valid string", "a text is expected"),
    (r"^Input should be a valid boolean.*", "true or false is expected"),
    (r"^Input should be a valid integer.*", "a whole number is expected"),
    (r"^Input should be a valid number.*", "a number is expected"),
    (r"^Input should be ", "it has to be "),
    (r"^Extra inputs are not permitted", "there is no such setting"),
    (r"^Field required", "it has to be set"),
)


def in_words(message: str) -> str:
    """pydantic's text without the names of Python's classes, and as the middle of a sentence."""
    for pattern, words in _WORDS:
        message = re.sub(pattern, words, message)
    return message[:1].lower() + message[1:]


def _as_written(value: object) -> str:
    """The value as a configuration has it, not as Python does."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # a date of TOML's
        return str(value)


def _more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
