"""A question of the assistant, answered line by line: a text, a choice by number or words, a form field by field.

What does not fit is said and asked again here, by the same rules as on the server. A form may be answered by one text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pizzabot.cli.chat_screen import one_line, safe
from pizzabot_hookspecs.support.questions import (
    Field,
    FieldType,
    Misfit,
    Mode,
    Option,
    Question,
    ReplyKind,
    described,
    explained,
    fitting,
)

_YES = frozenset({"y", "yes", "true"})
_NO = frozenset({"n", "no", "false"})


class Lines(Protocol):
    """Reads a line of the person's; `prefilled` can be edited."""

    def __call__(self, prompt: str, prefilled: str = "") -> str: ...


class Person:
    """Whoever sits at the terminal: `tell` shows them a line, `read` takes one of theirs."""

    def __init__(self, *, tell: Callable[[str], None], read: Lines) -> None:
        self._tell = tell
        self._read = read

    def answer(self, question: Question) -> dict[str, Any]:
        """The whole question, then the answer to it, in one of the forms that `input.respond` takes."""
        self._show(question)
        match question["mode"]:
            case Mode.CHOICE_WITH_OTHER:
                return self._choice(question.get("options", []))
            case Mode.FORM:
                return self._form(question.get("fields", []))
        return {"kind": ReplyKind.TEXT.value, "value": self._words("answer: ")}

    def _show(self, question: Question) -> None:
        """Options get their numbers where the text has none of its own."""
        lines = question["text"].splitlines()
        if question["mode"] == Mode.CHOICE_WITH_OTHER:
            numbered = _numbered(question.get("options", []))
            lines += [] if set(numbered) <= set(lines) else numbered
        for number, line in enumerate(lines):
            self._tell(safe(f"  {line}" if number else f"· {line}"))

    def _words(self, prompt: str) -> str:
        while not (given := _unslashed(self._read(prompt))):
            pass
        return given

    def _choice(self, options: Sequence[Option]) -> dict[str, Any]:
        given = self._words("answer (a number, or your own words): ")
        if (chosen := _picked(options, given)) is None:
            return {"kind": ReplyKind.TEXT.value, "value": given}
        self._tell(safe(f"· {chosen['label']}"))
        return {"kind": ReplyKind.OPTION.value, "id": chosen["id"]}

    def _form(self, fields: Sequence[Field]) -> dict[str, Any]:
        if words := _unslashed(self._read("Enter fills in the form; or answer in your own words: ")):
            return {"kind": ReplyKind.MESSAGE.value, "value": words}
        values = {field["name"]: self._field(field) for field in fields}
        return {
            "kind": ReplyKind.FORM.value,
            "values": {name: value for name, value in values.items() if value is not None},
        }

    def _field(self, field: Field) -> Any:
        options = field.get("options", [])
        for line in _numbered(options):
            self._tell(safe(f"  {line}"))
        prompt, prefilled = _prompt(field), _prefilled(field)
        while True:
            given = _unslashed(self._read(prompt, prefilled))
            try:
                return fitting(field, _value(field, given))
            except Misfit as misfit:
                self._tell(one_line(f"· {field['label']} {_fault(misfit, field)}"))


def _unslashed(given: str) -> str:
    """What begins with a slash is written with two, as at the prompt."""
    given = given.strip()
    return given.removeprefix("/") if given.startswith("//") else given


def _numbered(options: Sequence[Option]) -> list[str]:
    return [f"{number}. {option['label']}" for number, option in enumerate(options, 1)]


def _picked(options: Sequence[Option], given: str) -> Option | None:
    """The option whose words or number were written: words first, for options that are numbers themselves."""
    said = " ".join(given.split()).casefold()
    for key in ("label", "id"):
        found = [
            option for option in options if said == (option["label"] if key == "label" else option["id"]).casefold()
        ]
        if len(found) == 1:
            return found[0]
    number = int(said) if said.isascii() and said.isdigit() and len(said) <= 3 else 0
    return options[number - 1] if 1 <= number <= len(options) else None


def _value(field: Field, given: str) -> Any:
    """A line as the value of a field; what cannot be one stays text, for `fitting` to refuse."""
    options = field.get("options", [])
    match field["type"]:
        case FieldType.CHECKBOX:
            said = given.casefold()
            return True if said in _YES else False if said in _NO or not said else given
        case FieldType.SELECT:
            return found["id"] if (found := _picked(options, given)) else given
        case FieldType.MULTI_SELECT:
            whole = _picked(options, given)
            parts = [whole["label"]] if whole else [part for part in given.split(",") if part.strip()]
            picked = [(_picked(options, part), part) for part in parts]
            return [found["id"] if found else part for found, part in picked]
    return given


def _prompt(field: Field) -> str:
    bare: Any = {key: value for key, value in field.items() if key not in ("options", "help")}
    how = " [y/N]" if field["type"] == FieldType.CHECKBOX else ""
    how = ", several with commas" if field["type"] == FieldType.MULTI_SELECT else how
    help_text = f" ({field['help']})" if "help" in field else ""
    return f"{one_line(f'{described(bare)}{help_text}{how}')}: "


def _prefilled(field: Field) -> str:
    default = field.get("default")
    labels = {option["id"]: option["label"] for option in field.get("options", [])}
    if isinstance(default, bool):
        return "yes" if default else ""
    if isinstance(default, list):
        return ", ".join(labels.get(str(item), str(item)) for item in default)
    return "" if default is None else one_line(labels.get(str(default), str(default)))


def _fault(misfit: Misfit, field: Field) -> str:
    if field["type"] == FieldType.CHECKBOX:
        return "has to be agreed to" if misfit.code == "required" else "must be yes or no"
    if misfit.code == "not_an_option":
        return "must be one of the options, by number or words"
    return explained(misfit.code, field)
