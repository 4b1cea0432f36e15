# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""The tool `ask_user`: it stops the turn with a question to the person, and its result is what they answered.

It does nothing before it asks: when one of several questions is answered, all tools that wait run again from the top
(durable-runs rule 10). So it is repeatable, and nobody has to allow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import interrupt

from pizzabot_hookspecs.support.questions import (
    MAX_FIELDS,
    MAX_OPTIONS,
    FieldType,
    Mode,
    Question,
    checked_question,
    reply_text,
)

ASK_USER = "ask_user"
DESCRIPTION = (
    "Ask the person one question and wait for the answer. Use it only when you cannot go on without something that "
    "nobody but the person knows or may decide, and that neither the conversation, the files nor your other tools "
    "tell you; otherwise choose sensibly, say what you assumed, and go on. Ask one question at a time. Give `options` "
    "when there are few likely answers (the person may always answer in other words), or `fields` when you need "
    "several values at once, as a form; never both. The question must be clear on its own. The person may answer in "
    "their own words instead of choosing or filling in. Never ask for passwords or other secrets."
)
"""At most 900 characters: it is in every request to the model."""

_OPTION = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"id": {"type": "string"}, "label": {"type": "string"}},
            "required": ["id", "label"],
        },
    ]
}
_OPTIONS = {"type": "array", "items": _OPTION, "maxItems": MAX_OPTIONS}
_FIELD = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z][a-z0-9_]{0,63}$"},
        "label": {"type": "string"},
        "type": {"type": "string", "enum": [kind.value for kind in FieldType]},
        "required": {"type": "boolean"},
        "help": {"type": "string"},
        "min": {"description": "smallest number, earliest date, or least characters or choices"},
        "max": {"description": "the same at the other end"},
        "options": {**_OPTIONS, "description": "of select and multi_select"},
        "default": {"description": "what is filled in beforehand"},
    },
    "required": ["name", "label", "type"],
}
_ARGUMENTS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "options": _OPTIONS,
        "fields": {"type": "array", "items": _FIELD, "maxItems": MAX_FIELDS},
    },
    "required": ["question"],
}


def ask_user_tool() -> BaseTool:
    """A new `ask_user`. Its arguments are not refused: a question of no known form is asked in words."""
    return StructuredTool(name=ASK_USER, description=DESCRIPTION, args_schema=_ARGUMENTS, coroutine=_ask)


async def _ask(**arguments: Any) -> str:
    question = _question(arguments)
    return reply_text(question, interrupt(question))


def _question(arguments: Mapping[str, Any]) -> Question:
    asked = {"question": arguments.get("question")}
    if fields := arguments.get("fields"):
        return checked_question({"version": 2, "mode": Mode.FORM.value, "fields": fields, **asked})
    if options := arguments.get("options"):
        return checked_question({"version": 1, "mode": Mode.CHOICE_WITH_OTHER.value, "options": options, **asked})
    return checked_question({"version": 1, "mode": Mode.FREE_TEXT.value, **asked})
