"""Answers to interrupts: every spelling that clients use becomes one canonical, checked form.

One malformed resume wedges a LangGraph thread for good (cases R1), so nothing unchecked reaches the graph. What is
wrong is refused with the field, and the question stays open (durable-runs rules 9 and 10, spec/02 §3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pizzabot.host.runs.schemas import faults, unknown_properties
from pizzabot.host.text import clean, to_json
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind
from pizzabot_hookspecs.support.questions import checked_question, checked_reply, is_question
from pizzabot_hookspecs.wire import JsonValue

MAX_ANSWER_BYTES = 256 * 1024
MAX_TEXT = 32_000
ALONE = "response"
"""The field of an answer that is the only one of its command."""
RECOVERY_CHOICES = ("retry", "skip", "stop")


def checked_answer(interrupt: Interrupt, response: object, *, field: str = ALONE) -> JsonValue:
    """The canonical answer; raises `InvalidRequest` `invalid_decision` with the dotted fields that are wrong.

    approval   `{"decisions": [{"type": "approve"} | {"type": "edit", "edited_action": {"name", "args"}}
               | {"type": "reject", "message"?} | {"type": "respond", "message"}]}`, one for each action, in order
    input      to a question with `version` and `mode`, `{"kind": "text" | "message", "value"}`, `{"kind": "option",
               "id"}` or `{"kind": "form", "values"}` (spec/12 §4), where `fields` has codes by the form's own names;
               to any other, the value itself, valid under the question's `answer_schema`
    recovery   `{"choice": "retry" | "skip" | "stop"}`
    """
    response = clean(response)
    if len(to_json(response)) > MAX_ANSWER_BYTES:
        raise _wrong(field, f"at most {MAX_ANSWER_BYTES} bytes")
    match interrupt.kind:
        case InterruptKind.APPROVAL:
            return _approval(interrupt, response, field)
        case InterruptKind.INPUT:
            return _input(interrupt, response, field)
        case InterruptKind.RECOVERY:
            return _recovery(response, field)


def _wrong(field: str, expected: str) -> InvalidRequest:
    return InvalidRequest("invalid_decision", f"{field} must be {expected}", fields={field: f"must be {expected}"})


def _approval(interrupt: Interrupt, response: object, field: str) -> JsonValue:
    actions = _objects(interrupt.payload.get("action_requests"))
    configs = _objects(interrupt.payload.get("review_configs"))
    given = _decisions(response, field)
    if len(given) != len(actions):
        raise _wrong(f"{field}.decisions", f"{len(actions)} decision(s), one for each action; {len(given)} came")
    decisions: list[JsonValue] = [
        _decision(action, _allowed(action, configs), one, f"{field}.decisions.{number}")
        for number, (action, one) in enumerate(zip(actions, given, strict=True))
    ]
    return {"decisions": decisions}


def _objects(value: object) -> list[Mapping[str, Any]]:
    """The items of a list that a tool may have written: one that is no object is an empty one, which allows nothing."""
    return [item if isinstance(item, Mapping) else {} for item in value] if isinstance(value, list | tuple) else []


def _allowed(action: Mapping[str, Any], configs: Sequence[Mapping[str, Any]]) -> list[str]:
    found: object = ()
    for config in configs:
        if config.get("action_name") == action.get("name"):
            found = config.get("allowed_decisions")
    return [kind for kind in found if isinstance(kind, str)] if isinstance(found, list | tuple) else []


def _decisions(response: object, field: str) -> Sequence[object]:
    if isinstance(response, Mapping):
        if "decisions" not in response:
            return [response]
        response = response["decisions"]
    if isinstance(response, list):
        return response
    raise _wrong(f"{field}.decisions", "a list of decisions")


def _decision(action: Mapping[str, Any], allowed: Sequence[str], given: object, field: str) -> JsonValue:
    if not isinstance(given, Mapping):
        raise _wrong(field, "an object with `type`")
    kind = given.get("type", given.get("decision"))
    if kind not in allowed:
        raise _wrong(f"{field}.type", f"one of {', '.join(allowed) or 'nothing: this call cannot be allowed'}")
    if kind == "edit":
        return {"type": "edit", "edited_action": _edited(action, given, field)}
    decided: dict[str, JsonValue] = {"type": str(kind)}
    message = given.get("message")
    if kind == "respond" and not (isinstance(message, str) and message.strip()):
        raise _wrong(f"{field}.message", "text: it becomes the tool's result")
    if message is not None and kind in ("respond", "reject"):
        if not isinstance(message, str) or len(message) > MAX_TEXT:
            raise _wrong(f"{field}.message", f"text of at most {MAX_TEXT} characters")
        decided["message"] = message
    return decided


def _edited(action: Mapping[str, Any], given: Mapping[str, Any], field: str) -> JsonValue:
    name = str(action.get("name"))
    edited = given.get("edited_action", given.get("editedAction"))
    if edited is None and "editedArgs" in given:
        edited = {"name": given.get("editedName", name), "args": given["editedArgs"]}
    if not isinstance(edited, Mapping):
        raise _wrong(f"{field}.edited_action", "an object with `name` and `args`")
    if edited.get("name", name) != name:
        raise _wrong(f"{field}.edited_action.name", f"{name}: an edit changes arguments, not the tool")
    arguments = edited.get("args")
    if not isinstance(arguments, Mapping):
        raise _wrong(f"{field}.edited_action.args", "an object")
    _check_arguments(arguments, action.get("args_schema"), f"{field}.edited_action.args")
    return {"name": name, "args": dict(arguments)}


def _input(interrupt: Interrupt, response: object, field: str) -> JsonValue:
    if is_question(interrupt.payload):
        return _reply(interrupt, response, field)
    if response is None:
        raise _wrong(field, "an answer")
    schema = interrupt.payload.get("answer_schema")
    if isinstance(schema, Mapping):
        _refuse(faults(response, schema, field))
    return response  # type: ignore[return-value]  # JSON: it came from JSON


def _reply(interrupt: Interrupt, response: object, field: str) -> JsonValue:
    """One of several answers names its faults below its own place in the command."""
    try:
        return checked_reply(checked_question(interrupt.payload), response)
    except InvalidRequest as error:
        if field == ALONE:
            raise
        fields = {f"{field}.{name}": code for name, code in error.fields.items()}
        raise InvalidRequest(error.code, f"{field}: {error.detail}", fields=fields) from None


def _recovery(response: object, field: str) -> JsonValue:
    choice: object = response
    if isinstance(response, Mapping):
        choice = response.get("choice")
        if choice is None and isinstance(response.get("decisions"), list) and len(response["decisions"]) == 1:
            first = response["decisions"][0]
            choice = first.get("type", first.get("decision")) if isinstance(first, Mapping) else None
    if choice not in RECOVERY_CHOICES:
        raise _wrong(f"{field}.choice", f"one of {', '.join(RECOVERY_CHOICES)}")
    return {"choice": str(choice)}


def _check_arguments(arguments: Mapping[str, Any], schema: object, field: str) -> None:
    """An argument that the tool does not know is wrong too: the tool would drop it, and the model hear that it ran."""
    if isinstance(schema, Mapping):
        _refuse(faults(arguments, schema, field) | unknown_properties(arguments, schema, field))


def _refuse(fields: Mapping[str, str]) -> None:
    if fields:
        detail = " ".join("; ".join(f"{where}: {what}" for where, what in fields.items()).split())
        raise InvalidRequest("invalid_decision", detail, fields=fields)


def accepts_text(interrupt: Interrupt) -> bool:
    """Whether a plain message may answer: the question is an input without a schema, or with one that takes text."""
    if interrupt.kind is not InterruptKind.INPUT:
        return False
    if is_question(interrupt.payload):
        return True
    schema = interrupt.payload.get("answer_schema")
    return not isinstance(schema, Mapping) or schema.get("type") in (None, "string")
