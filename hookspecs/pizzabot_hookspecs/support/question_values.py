"""The parts of a question to the person: its modes, options and typed fields, and whether a value fits a field.

Values are JSON. A value that fits comes back in its canonical form; one that does not raises `Misfit` with a code that
clients match on: required, not_text, too_short, too_long, not_a_number, too_small, too_large, not_an_option, too_few,
too_many, not_a_boolean, invalid_date.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from enum import StrEnum
from typing import Literal, TypedDict

from pizzabot_hookspecs.wire import JsonValue

MAX_REPLY_CHARS = 100_000
"""Characters of one text that a person answers with."""
MAX_NUMBER = 2**53 - 1
"""The largest whole number that every JSON reader takes as it is."""

_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,4})?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


class Mode(StrEnum):
    """How a question is answered; a plain text answers each of them."""

    FREE_TEXT = "free_text"
    CHOICE_WITH_OTHER = "choice_with_other"
    FORM = "form"


class FieldType(StrEnum):
    """What a field of a form takes."""

    TEXT = "text"
    TEXTAREA = "textarea"
    NUMBER = "number"
    SELECT = "select"
    MULTI_SELECT = "multi_select"
    CHECKBOX = "checkbox"
    DATE = "date"


class Option(TypedDict):
    """One of a choice: `id` is what an answer names, `label` what the person reads."""

    id: str
    label: str


class _FieldParts(TypedDict, total=False):
    required: bool
    help: str
    min: int | float | str
    max: int | float | str
    options: list[Option]
    default: JsonValue


class Field(_FieldParts):
    """A field of a form.

    `min` and `max` bound a number, a date (ISO text), the characters of a text, or how many are chosen. `options` have
    select and multi_select alone. `default` is what a client fills in beforehand; the server never does.
    """

    name: str
    label: str
    type: str


class _QuestionParts(TypedDict, total=False):
    options: list[Option]
    fields: list[Field]


class Question(_QuestionParts):
    """The value of an interrupt of kind `input` (spec/12 §4). `text` is the whole question in words."""

    version: Literal[1, 2]
    mode: str
    question: str
    text: str


class Misfit(Exception):
    """A value does not fit; `code` says how."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def fitting(field: Field, value: object) -> JsonValue:
    """`value` in its canonical form; None where it is nothing. Raises `Misfit`.

    An untouched checkbox is False, and one that is required has to be ticked.
    """
    if field["type"] == FieldType.CHECKBOX:
        return _ticked(field, value)
    if value is None or value == [] or (isinstance(value, str) and not value.strip()):
        if field.get("required"):
            raise Misfit("required")
        return None
    return _READ[FieldType(field["type"])](field, value)


def well_formed(text: str) -> str:
    """`text` as UTF-8 can carry it: unpaired surrogates are replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def text_of(value: object) -> str:
    """A text that a person said. Raises `Misfit`."""
    if value is None:
        raise Misfit("required")
    if not isinstance(value, str):
        raise Misfit("not_text")
    if not value.strip():
        raise Misfit("required")
    if len(value) > MAX_REPLY_CHARS:
        raise Misfit("too_long")
    return well_formed(value)


def number_of(value: object) -> int | float:
    """A finite number, also one that a form sent as text. Raises `Misfit`."""
    if isinstance(value, str):
        written = value.strip()
        if _NUMBER.fullmatch(written) is None:
            raise Misfit("not_a_number")
        value = int(written) if written.lstrip("+-").isdigit() else float(written)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Misfit("not_a_number")
    if isinstance(value, int):
        if abs(value) > MAX_NUMBER:
            raise Misfit("too_large" if value > 0 else "too_small")
    elif not math.isfinite(value):
        raise Misfit("not_a_number")
    return value


def date_of(value: object) -> str:
    """`YYYY-MM-DD` of a day that there is. Raises `Misfit`."""
    if not isinstance(value, str) or _DATE.fullmatch(value.strip()) is None:
        raise Misfit("invalid_date")
    try:
        return date.fromisoformat(value.strip()).isoformat()
    except ValueError:
        raise Misfit("invalid_date") from None


def explained(code: str, field: Field | None = None) -> str:
    """A code in words, for people."""
    options = field.get("options", []) if field else []
    low, high = (field.get("min"), field.get("max", MAX_REPLY_CHARS)) if field else (None, MAX_REPLY_CHARS)
    chosen = f"one of {', '.join(option['id'] for option in options)}" if options else "one of the options"
    return _WORDS[code].format(min=low, max=high, chosen=chosen)


_WORDS = {
    "required": "is required",
    "not_text": "must be text",
    "too_short": "must have at least {min} characters",
    "too_long": "must have at most {max} characters",
    "not_a_number": "must be a number",
    "too_small": "must be at least {min}",
    "too_large": "must be at most {max}",
    "not_an_option": "must be {chosen}",
    "too_few": "must be at least {min} of the options",
    "too_many": "must be at most {max} of the options",
    "not_a_boolean": "must be true or false",
    "invalid_date": "must be a date, as YYYY-MM-DD",
    "unknown_field": "is no field of this form",
    "unknown_kind": "must be a kind of answer that this question takes",
    "not_an_answer": "must be a text or an object with `kind`",
    "not_an_object": "must be an object by field name",
}


def _ticked(field: Field, value: object) -> bool:
    if value is not None and not isinstance(value, bool):
        raise Misfit("not_a_boolean")
    if field.get("required") and not value:
        raise Misfit("required")
    return bool(value)


def _text(field: Field, value: object) -> str:
    text = text_of(value)
    _bound(field, len(text), "too_short", "too_long")
    return text


def _number(field: Field, value: object) -> int | float:
    number = number_of(value)
    _bound(field, number, "too_small", "too_large")
    return number


def _date(field: Field, value: object) -> str:
    day = date_of(value)
    if day < str(field.get("min", day)):
        raise Misfit("too_small")
    if day > str(field.get("max", day)):
        raise Misfit("too_large")
    return day


def _select(field: Field, value: object) -> str:
    if not isinstance(value, str) or all(option["id"] != value for option in field.get("options", ())):
        raise Misfit("not_an_option")
    return value


def _multi_select(field: Field, value: object) -> list[JsonValue]:
    if not isinstance(value, list):
        raise Misfit("not_an_option")
    for item in value:
        _select(field, item)
    chosen: list[JsonValue] = [option["id"] for option in field.get("options", ()) if option["id"] in value]
    _bound(field, len(chosen), "too_few", "too_many")
    return chosen


def _bound(field: Field, size: float, under: str, over: str) -> None:
    low, high = field.get("min"), field.get("max")
    if isinstance(low, int | float) and size < low:
        raise Misfit(under)
    if isinstance(high, int | float) and size > high:
        raise Misfit(over)


_READ: Mapping[FieldType, Callable[[Field, object], JsonValue]] = {
    FieldType.TEXT: _text,
    FieldType.TEXTAREA: _text,
    FieldType.NUMBER: _number,
    FieldType.SELECT: _select,
    FieldType.MULTI_SELECT: _multi_select,
    FieldType.DATE: _date,
}
