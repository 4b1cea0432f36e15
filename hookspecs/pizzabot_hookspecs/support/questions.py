"""Questions to the person (`ask_user`, elicitation; spec/12 §4): their one form, checked answers, and the result.

checked_question(raw) -> Question            never raises; what is no question is asked in words
checked_reply(question, response) -> answer  raises `InvalidRequest` `invalid_decision`, all faults at once
reply_text(question, answer) -> str          what the tool that asked returns
"""

from __future__ import annotations

from pizzabot_hookspecs.support.question_forms import (
    MAX_FIELDS,
    MAX_LABEL_CHARS,
    MAX_OPTIONS,
    MAX_QUESTION_BYTES,
    checked_question,
    described,
    is_question,
)
from pizzabot_hookspecs.support.question_replies import ReplyKind, answer_faults, checked_reply, reply_text
from pizzabot_hookspecs.support.question_values import (
    MAX_REPLY_CHARS,
    Field,
    FieldType,
    Misfit,
    Mode,
    Option,
    Question,
    explained,
    fitting,
)

__all__ = [
    "MAX_FIELDS",
    "MAX_LABEL_CHARS",
    "MAX_OPTIONS",
    "MAX_QUESTION_BYTES",
    "MAX_REPLY_CHARS",
    "Field",
    "FieldType",
    "Misfit",
    "Mode",
    "Option",
    "Question",
    "ReplyKind",
    "answer_faults",
    "checked_question",
    "checked_reply",
    "described",
    "explained",
    "fitting",
    "is_question",
    "reply_text",
]
