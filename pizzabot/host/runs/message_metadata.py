"""What a client attaches to a message beside its parts: mentions, quotes, references (spec/12 §1.1).

    additional_kwargs.pizzabot = {
        "mentions":   [{"provider": "skills", "id": "invoices", "label"?: "Invoices"}, …]     ≤ 16
        "quotes":     ["what the person selected", …]                                         ≤ 8
        "references": ["<thread id>", …]                                                      ≤ 5
    }

In the form with `parts` the same object may stand as the message's `metadata`. Other keys are dropped: the place of a
message, its run and its turn (`seq`, `rev`, `run_id`, `turn_id`, …) are the server's to say. What is kept is shown and
grants nothing; a reference is checked, and becomes a right to read, where a run is admitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pizzabot.host.ids import ID, RESERVED
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.wire import JsonValue

MAX_MENTIONS = 16
MAX_QUOTES = 8
MAX_QUOTE = 2_000
MAX_REFERENCES = 5
MAX_MENTION_ID = 256
MAX_LABEL = 120
"""Characters, as what a mention provider answers."""
_PROVIDER = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def metadata_of(item: Mapping[str, Any], field: str) -> dict[str, JsonValue]:
    """The metadata of a client's message; `field` is where the message stands in the request.

    Only what is not empty is there. Raises `InvalidRequest` `invalid_argument` with the field that is wrong.
    """
    kwargs = _object(item.get("additional_kwargs"), f"{field}.additional_kwargs")
    if kwargs.get("pizzabot") is not None or "parts" not in item:
        field = f"{field}.additional_kwargs.pizzabot"
        given = _object(kwargs.get("pizzabot"), field)
    else:
        field = f"{field}.metadata"
        given = _object(item.get("metadata"), field)
    kept: dict[str, list[JsonValue]] = {
        "mentions": _mentions(given.get("mentions"), f"{field}.mentions"),
        "quotes": _quotes(given.get("quotes"), f"{field}.quotes"),
        "references": _references(given.get("references"), f"{field}.references"),
    }
    return {key: value for key, value in kept.items() if value}


def _mentions(value: object, field: str) -> list[JsonValue]:
    return [_mention(entry, f"{field}.{position}") for position, entry in enumerate(_list(value, field, MAX_MENTIONS))]


def _mention(entry: object, field: str) -> JsonValue:
    if not isinstance(entry, Mapping):
        raise _wrong(field, "an object {provider, id, label}")
    provider = entry.get("provider")
    if not isinstance(provider, str) or not _PROVIDER.fullmatch(provider):
        raise _wrong(f"{field}.provider", "the name of a mention provider: a-z, then a-z 0-9 _ -, at most 64")
    mention: dict[str, JsonValue] = {
        "provider": provider,
        "id": _text(entry.get("id"), f"{field}.id", MAX_MENTION_ID),
    }
    if entry.get("label") is not None:
        mention["label"] = _text(entry["label"], f"{field}.label", MAX_LABEL)
    return mention


def _quotes(value: object, field: str) -> list[JsonValue]:
    quotes = enumerate(_list(value, field, MAX_QUOTES))
    return [_text(entry, f"{field}.{position}", MAX_QUOTE) for position, entry in quotes]


def _references(value: object, field: str) -> list[JsonValue]:
    references: dict[str, None] = {}
    for position, entry in enumerate(_list(value, field, MAX_REFERENCES)):
        if not isinstance(entry, str) or not ID.fullmatch(entry) or entry in RESERVED:
            raise _wrong(f"{field}.{position}", "the id of a thread")
        references[entry] = None
    return list(references)


def _object(value: object, field: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(field, "an object")
    return value


def _list(value: object, field: str, limit: int) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > limit:
        raise _wrong(field, f"a list of at most {limit}")
    return value


def _text(value: object, field: str, limit: int) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > limit:
        raise _wrong(field, f"text of 1 to {limit:,} characters")
    return value


def _wrong(field: str, expected: str) -> InvalidRequest:
    return InvalidRequest("invalid_argument", f"{field} must be {expected}", fields={field: f"must be {expected}"})
