"""A question to the person in its one form (spec/12 §4): what fits is made canonical, the rest is asked in words.

version 1   free_text, choice_with_other {options}
version 2   form {fields}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from pizzabot_hookspecs.support.question_values import (
    Field,
    FieldType,
    Misfit,
    Mode,
    Option,
    Question,
    date_of,
    fitting,
    number_of,
    well_formed,
)

MAX_FIELDS = 16
MAX_OPTIONS = 24
MAX_LABEL_CHARS = 200
"""Characters of a label, and of an option's id."""
MAX_QUESTION_BYTES = 16 * 1024
"""Bytes of a whole question as JSON."""

_MODES = {1: (Mode.FREE_TEXT, Mode.CHOICE_WITH_OTHER), 2: (Mode.FORM,)}
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PROTOTYPE = frozenset({"constructor"})
"""The members of JavaScript's Object.prototype that `_NAME` would let through."""
_WORDLESS = "The assistant asks for an answer."
_SHORT = 500
_TYPES = frozenset[str](FieldType)
_CHOOSING = frozenset({FieldType.SELECT, FieldType.MULTI_SELECT})


class _Unusable(Exception):
    """The question is none of the forms that there are."""


def checked_question(raw: object) -> Question:
    """The question that `raw` (JSON) is; always with `text`, and always the same for the same `raw`. Never raises.

    An option may be written as its label alone, and a field without a label has its name. An unknown version, mode or
    type, a name that cannot be one, a bound that makes no sense, a default that does not fit, or anything over a limit
    degrades the whole to `free_text`, whose `text` says as much of `raw` as fits.
    """
    try:
        question = _question(raw)
    except _Unusable:
        return _degraded(raw)
    return question if _bytes(question) <= MAX_QUESTION_BYTES else _degraded(raw)


def is_question(value: object) -> bool:
    """Whether the value of an interrupt claims to be a question of this form (it may still degrade).

    One that brings an `answer_schema` is checked by that instead, whatever else it has.
    """
    return isinstance(value, Mapping) and "version" in value and "mode" in value and "answer_schema" not in value


def _question(raw: object) -> Question:
    if isinstance(raw, str):
        raw = {"version": 1, "mode": Mode.FREE_TEXT.value, "question": raw}
    if not isinstance(raw, Mapping):
        raise _Unusable
    version, mode = raw.get("version"), raw.get("mode")
    if isinstance(version, bool) or not isinstance(version, int) or mode not in _MODES.get(version, ()):
        raise _Unusable
    question = _words(raw.get("question"))
    parts: dict[str, Any] = {}
    if mode == Mode.CHOICE_WITH_OTHER:
        parts["options"] = _options(raw.get("options"))
    elif mode == Mode.FORM:
        parts["fields"] = _fields(raw.get("fields"))
    text = _words(raw.get("text")) or "\n".join([question or _WORDLESS, *_lines(parts)])
    made = {"version": version, "mode": str(mode), "question": question or _first_line(text), "text": text, **parts}
    return cast("Question", made)


def _words(value: object) -> str:
    if value is not None and not isinstance(value, str):
        raise _Unusable
    return well_formed(value or "").strip()


def _label(value: object) -> str:
    if not isinstance(value, str):
        raise _Unusable
    label = " ".join(well_formed(value).split())
    if not label or len(label) > MAX_LABEL_CHARS:
        raise _Unusable
    return label


def _options(raw: object) -> list[Option]:
    if not isinstance(raw, list | tuple) or not 1 <= len(raw) <= MAX_OPTIONS:
        raise _Unusable
    options = [_option(item) for item in raw]
    if len({option["id"] for option in options}) != len(options):
        raise _Unusable
    return options


def _option(raw: object) -> Option:
    if isinstance(raw, str):
        raw = {"id": raw}
    if not isinstance(raw, Mapping):
        raise _Unusable
    name, label = raw.get("id"), raw.get("label")
    return {"id": _label(label if name is None else name), "label": _label(name if label is None else label)}


def _fields(raw: object) -> list[Field]:
    if not isinstance(raw, list | tuple) or not 1 <= len(raw) <= MAX_FIELDS:
        raise _Unusable
    fields = [_field(item) for item in raw]
    if len({field["name"] for field in fields}) != len(fields):
        raise _Unusable
    return fields


def _field(raw: object) -> Field:
    if not isinstance(raw, Mapping):
        raise _Unusable
    name, kind, label = raw.get("name"), raw.get("type"), raw.get("label")
    if not isinstance(name, str) or _NAME.fullmatch(name) is None or name in _PROTOTYPE:
        raise _Unusable
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _Unusable
    field: Field = {"name": name, "label": _label(name if label is None else label), "type": kind}
    required = raw.get("required")
    if required is not None and not isinstance(required, bool):
        raise _Unusable
    if required:
        field["required"] = True
    if help_text := _words(raw.get("help")):
        field["help"] = help_text
    if kind in _CHOOSING:
        field["options"] = _options(raw.get("options"))
    _add_bounds(field, raw)
    return _with_default(field, raw.get("default"))


def _add_bounds(field: Field, raw: Mapping[str, Any]) -> None:
    """`min` and `max` where the type has them. Counts are whole and not negative."""
    if field["type"] in (FieldType.CHECKBOX, FieldType.SELECT):
        return
    low, high = (_bound(field["type"], raw.get(side)) for side in ("min", "max"))
    if low is not None:
        field["min"] = low
    if high is not None:
        field["max"] = high
    if low is not None and high is not None and low > high:  # type: ignore[operator]  # both of one type
        raise _Unusable


def _bound(kind: str, value: object) -> int | float | str | None:
    if value is None:
        return None
    try:
        if kind == FieldType.DATE:
            return date_of(value)
        if isinstance(value, str):
            raise _Unusable
        number = number_of(value)
    except Misfit:
        raise _Unusable from None
    if kind != FieldType.NUMBER and (number < 0 or number != int(number)):
        raise _Unusable
    return number if kind == FieldType.NUMBER else int(number)


def _with_default(field: Field, value: object) -> Field:
    if value is None:
        return field
    try:
        default = fitting(cast("Field", {**field, "required": False}), value)
    except Misfit:
        raise _Unusable from None
    if default is not None:
        field["default"] = default
    return field


def _lines(parts: Mapping[str, Any]) -> list[str]:
    """The options or fields in words, one a line."""
    if "options" in parts:
        numbered = [f"{number}. {option['label']}" for number, option in enumerate(parts["options"], 1)]
        return [*numbered, "Or answer in your own words."]
    return [f"- {described(field)}" for field in parts.get("fields", ())]


def described(field: Field) -> str:
    """A field in one line: its label, and what it takes."""
    notes = [_TAKES[FieldType(field["type"])]]
    if field.get("required"):
        notes.append("required")
    low, high, unit = _BOUNDED.get(FieldType(field["type"]), ("at least", "at most", ""))
    notes += [f"{low} {field['min']}{unit}"] if "min" in field else []
    notes += [f"{high} {field['max']}{unit}"] if "max" in field else []
    taken = ", ".join(note for note in notes if note)
    options = " / ".join(option["label"] for option in field.get("options", ()))
    line = f"{field['label']} ({taken})" if taken else field["label"]
    line = f"{line}: {options}" if options else line
    return f"{line}. {' '.join(field['help'].split())}" if "help" in field else line


_TAKES = {
    FieldType.TEXT: "",
    FieldType.TEXTAREA: "",
    FieldType.NUMBER: "a number",
    FieldType.SELECT: "one of",
    FieldType.MULTI_SELECT: "any of",
    FieldType.CHECKBOX: "yes or no",
    FieldType.DATE: "a date, YYYY-MM-DD",
}
_BOUNDED = {
    FieldType.TEXT: ("at least", "at most", " characters"),
    FieldType.TEXTAREA: ("at least", "at most", " characters"),
    FieldType.DATE: ("from", "until", ""),
}


def _degraded(raw: object) -> Question:
    text = _all_words(raw).strip()[:MAX_QUESTION_BYTES].rstrip() or _WORDLESS
    room = len(text)
    while True:
        cut = text if room >= len(text) else f"{text[:room].rstrip()}…"
        question: Question = {
            "version": 1,
            "mode": Mode.FREE_TEXT.value,
            "question": _first_line(cut),
            "text": cut,
        }
        if (size := _bytes(question)) <= MAX_QUESTION_BYTES:
            return question
        room = min(room - 1, room * MAX_QUESTION_BYTES // size)


def _all_words(raw: object) -> str:
    """What can be read of a question that is none: its words, and a line for each option and field."""
    if isinstance(raw, str):
        return well_formed(raw)
    if not isinstance(raw, Mapping):
        try:
            return well_formed(json.dumps(raw, ensure_ascii=False))
        except (TypeError, ValueError, RecursionError):
            return ""
    said = [well_formed(value) for key in ("question", "text") if isinstance(value := raw.get(key), str)]
    said = [said[1]] if len(said) > 1 and said[1].startswith(said[0]) else said
    for key in ("options", "fields"):
        items = raw.get(key)
        said += [
            f"- {line}" for item in (items if isinstance(items, list | tuple) else ()) if (line := _readable(item))
        ]
    return "\n".join(line for line in said if line.strip())


def _readable(item: object) -> str:
    if not isinstance(item, Mapping):
        return _flat(item)
    options = item.get("options")
    inner = [_named(one) for one in options] if isinstance(options, list | tuple) else []
    return ": ".join(part for part in (_named(item), " / ".join(filter(None, inner))) if part)


def _named(item: object) -> str:
    if not isinstance(item, Mapping):
        return _flat(item)
    return next((name for key in ("label", "name", "id") if (name := _flat(item.get(key)))), "")


def _flat(value: object) -> str:
    return " ".join(well_formed(value).split()) if isinstance(value, str) else ""


def _first_line(text: str) -> str:
    line = text.split("\n", 1)[0].strip()
    return line if len(line) <= _SHORT else f"{line[: _SHORT - 1]}…"


def _bytes(question: Question) -> int:
    return len(json.dumps(question, ensure_ascii=False).encode())
