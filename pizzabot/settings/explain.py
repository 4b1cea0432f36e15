"""pydantic's errors as `InvalidRequest` `invalid_settings`: the dotted path, the value's source, what is wrong."""

from __future__ import annotations

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
        fields[dotted(path)] = fault["msg"]
        value = "" if names_a_secret(path[-1]) else f", not {fault['input']!r:.60}"
        first = first or f"{dotted(path)} ({merged.source(path)}): {_lowered(fault['msg'])}{value}"
    return InvalidRequest("invalid_settings", first + _more(len(fields)), fields=fields)


def with_sources(error: InvalidRequest, prefix: Path, merged: Merged) -> InvalidRequest:
    """A plugin's own complaint about its section, with the place where each of its fields was written."""
    if not error.fields:
        return error
    fields = {dotted((*prefix, *name.split("."))): reason for name, reason in error.fields.items()}
    name, reason = next(iter(error.fields.items()))
    path = (*prefix, *name.split("."))
    detail = f"{dotted(path)} ({merged.source(path)}): {_lowered(reason)}{_more(len(fields))}"
    return InvalidRequest(error.code, detail, fields=fields)


def _without_indices(location: tuple[int | str, ...]) -> Path:
    return tuple(part for part in location if isinstance(part, str)) or ("settings",)


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]


def _more(count: int) -> str:
    return f" (and {count - 1} more)" if count > 1 else ""
