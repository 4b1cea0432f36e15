"""What a person answers to a question: every spelling becomes one checked form, and then what the model reads.

    {"kind": "text", "value"}     a text; to a form it is a message
    {"kind": "option", "id"}      one of the options
    {"kind": "form", "values"}    by field name
    {"kind": "message", "value"}  a plain message instead of any of these; a bare string is one

A client that knows none of this sends a string or `{"value": …}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from typing import Any

from pizzabot_hookspecs.errors import InvalidRequest
from pizzabot_hookspecs.support.question_values import (
    Field,
    FieldType,
    Misfit,
    Mode,
    Question,
    explained,
    fitting,
    text_of,
    well_formed,
)
from pizzabot_hookspecs.wire import JsonValue

MAX_UNKNOWN_NAMED = 16
"""Names that no field has and that one refusal names."""
_NAME_SHOWN = 64


class ReplyKind(StrEnum):
    """How a person answered."""

    TEXT = "text"
    OPTION = "option"
    FORM = "form"
    MESSAGE = "message"


_TAKEN = {
    Mode.FREE_TEXT: (ReplyKind.TEXT, ReplyKind.MESSAGE),
    Mode.CHOICE_WITH_OTHER: (ReplyKind.OPTION, ReplyKind.TEXT, ReplyKind.MESSAGE),
    Mode.FORM: (ReplyKind.FORM, ReplyKind.TEXT, ReplyKind.MESSAGE),
}


class _Faulty(Exception):
    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__()
        self.fields = dict(fields)


def checked_reply(question: Question, response: object) -> dict[str, JsonValue]:
    """The canonical answer to a `checked_question`.

    Raises `InvalidRequest` `invalid_decision` with all faults at once: `fields` has a code (`question_values`,
    unknown_field) by the name of the form's field; or, for what is wrong with the answer as such, by `kind`, `id`,
    `value`, `values` or `response`. The values of a form are those that were given, and every checkbox.
    """
    try:
        return _read(question, response)
    except _Faulty as faulty:
        faults = faulty.fields
    known = {field["name"]: field for field in question.get("fields", ())}
    says = "; ".join(f"{name} {explained(code, known.get(name))}" for name, code in faults.items())
    detail = f"the answer does not fit, and the question stays open: {says}"
    raise InvalidRequest("invalid_decision", " ".join(detail.split()), fields=faults)


def answer_faults(question: Question, response: object) -> dict[str, str]:
    """What `checked_reply` would refuse: codes by field; empty where the answer fits."""
    try:
        _read(question, response)
    except _Faulty as faulty:
        return faulty.fields
    return {}


def _read(question: Question, response: object) -> dict[str, JsonValue]:
    if isinstance(response, str):
        response = {"kind": ReplyKind.MESSAGE.value, "value": response}
    if not isinstance(response, Mapping):
        raise _Faulty({"response": "required" if response is None else "not_an_answer"})
    mode = Mode(question["mode"])
    kind, given = _kind(mode, response)
    if kind == ReplyKind.FORM:
        return {"kind": kind.value, "values": _values(question.get("fields", []), given)}
    if kind == ReplyKind.OPTION:
        if not isinstance(given, str) or all(option["id"] != given for option in question.get("options", ())):
            raise _Faulty({"id": "required" if given is None else "not_an_option"})
        return {"kind": kind.value, "id": given}
    try:
        return {"kind": kind.value, "value": text_of(given)}
    except Misfit as misfit:
        raise _Faulty({"value": misfit.code}) from None


def _kind(mode: Mode, response: Mapping[str, Any]) -> tuple[ReplyKind, object]:
    """The kind of an answer, and what is in it; without a `kind` it is told by its keys."""
    kind = response.get("kind")
    if kind is None:
        if mode is Mode.FORM and ("values" in response or isinstance(response.get("value"), Mapping)):
            return ReplyKind.FORM, response.get("values", response.get("value"))
        if mode is Mode.CHOICE_WITH_OTHER and "id" in response:
            return ReplyKind.OPTION, response["id"]
        if "value" in response:
            return ReplyKind.MESSAGE, response["value"]
    if not isinstance(kind, str) or kind not in _TAKEN[mode]:
        raise _Faulty({"kind": "required" if kind is None else "unknown_kind"})
    if kind == ReplyKind.FORM:
        return ReplyKind.FORM, response.get("values")
    if kind == ReplyKind.OPTION:
        return ReplyKind.OPTION, response.get("id")
    is_text = kind == ReplyKind.TEXT and mode is not Mode.FORM
    return ReplyKind.TEXT if is_text else ReplyKind.MESSAGE, response.get("value")


def _values(fields: list[Field], given: object) -> dict[str, JsonValue]:
    if not isinstance(given, Mapping):
        raise _Faulty({"values": "required" if given is None else "not_an_object"})
    values: dict[str, JsonValue] = {}
    faults: dict[str, str] = {}
    for field in fields:
        try:
            value = fitting(field, given.get(field["name"]))
        except Misfit as misfit:
            faults[field["name"]] = misfit.code
            continue
        if value is not None:
            values[field["name"]] = value
    known = {field["name"] for field in fields}
    unknown = (well_formed(str(name))[:_NAME_SHOWN] for name in given if name not in known)
    faults |= {name: "unknown_field" for name in islice(unknown, MAX_UNKNOWN_NAMED) if name not in faults}
    if faults:
        raise _Faulty(faults)
    return values


def reply_text(question: Question, answer: object) -> str:
    """A canonical answer as the model reads it: lines for people, and for a form one JSON block by field name.

    An answer that came past the check is shown as it is.
    """
    found = answer if isinstance(answer, Mapping) else {"kind": ReplyKind.MESSAGE.value, "value": answer}
    match found.get("kind"):
        case ReplyKind.FORM if isinstance(values := found.get("values"), Mapping):
            return _form_text(question, values)
        case ReplyKind.OPTION:
            labels = {option["id"]: option["label"] for option in question.get("options", ())}
            return str(labels.get(str(found.get("id")), found.get("id")))
        case ReplyKind.TEXT | ReplyKind.MESSAGE if isinstance(value := found.get("value"), str):
            if question["mode"] != Mode.FORM:
                return value
            return f"The form was not filled in; the person answered in words:\n{value}"
    return _json(answer)


def _form_text(question: Question, values: Mapping[str, Any]) -> str:
    lines = [f"{field['label']}: {_shown(field, values.get(field['name']))}" for field in question.get("fields", ())]
    return "\n".join([*lines, "", "```json", _json(values), "```"])


def _shown(field: Field, value: object) -> str:
    """A value in words; the lines of a text are set in, so that none of them reads as another field."""
    if field["type"] == FieldType.CHECKBOX:
        return "yes" if value is True else "no"
    if value is None:
        return "(no answer)"
    labels = {option["id"]: option["label"] for option in field.get("options", ())}
    if isinstance(value, list):
        return ", ".join(labels.get(str(item), str(item)) for item in value)
    lines = labels.get(str(value), str(value)).splitlines()
    return lines[0] if len(lines) == 1 else "".join(f"\n  {line}" for line in lines)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
