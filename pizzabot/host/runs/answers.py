"""Answers to interrupts: every spelling that clients use becomes one canonical, checked form.

One malformed resume wedges a LangGraph thread for good (cases R1), so nothing unchecked reaches the graph. What is
wrong is refused with the field, and the question stays open (durable-runs rules 9 and 10, spec/02 §3.2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pizzabot.host.text import clean, to_json
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind
from pizzabot_hookspecs.wire import JsonValue

MAX_ANSWER_BYTES = 256 * 1024
MAX_TEXT = 32_000
RECOVERY_CHOICES = ("retry", "skip", "stop")


def checked_answer(interrupt: Interrupt, response: object, *, field: str = "response") -> JsonValue:
    """The canonical answer; raises `InvalidRequest` `invalid_decision` with the dotted fields that are wrong.

    approval   `{"decisions": [{"type": "approve"} | {"type": "edit", "edited_action": {"name", "args"}}
               | {"type": "reject", "message"?} | {"type": "respond", "message"}]}`, one for each action, in order
    input      the value itself, valid under the question's `answer_schema`
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
    actions: Sequence[Mapping[str, Any]] = interrupt.payload.get("action_requests") or ()
    configs: Sequence[Mapping[str, Any]] = interrupt.payload.get("review_configs") or ()
    given = _decisions(response, field)
    if len(given) != len(actions):
        raise _wrong(f"{field}.decisions", f"{len(actions)} decision(s), one for each action; {len(given)} came")
    allowed = {config.get("action_name"): config.get("allowed_decisions") or () for config in configs}
    decisions: list[JsonValue] = [
        _decision(action, allowed.get(action.get("name"), ()), one, f"{field}.decisions.{number}")
        for number, (action, one) in enumerate(zip(actions, given, strict=True))
    ]
    return {"decisions": decisions}


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
    _check_schema(arguments, action.get("args_schema"), f"{field}.edited_action.args")
    return {"name": name, "args": dict(arguments)}


def _input(interrupt: Interrupt, response: object, field: str) -> JsonValue:
    if response is None:
        raise _wrong(field, "an answer")
    _check_schema(response, interrupt.payload.get("answer_schema"), field)
    return response  # type: ignore[return-value]  # JSON: it came from JSON


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


def _check_schema(value: object, schema: object, field: str) -> None:
    """Every violation by its own field. A schema that is itself broken refuses: permissions fail closed."""
    if not isinstance(schema, Mapping):
        return
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(dict(schema))
        errors = list(Draft202012Validator(dict(schema)).iter_errors(value))
    except SchemaError as error:
        raise _wrong(field, f"checked against a schema that is itself invalid ({error.message}): reject it") from error
    if errors:
        fields = {".".join([field, *map(str, error.absolute_path)]): error.message[:300] for error in errors[:20]}
        detail = "; ".join(f"{where}: {what}" for where, what in fields.items())
        raise InvalidRequest("invalid_decision", detail, fields=fields)


def accepts_text(interrupt: Interrupt) -> bool:
    """Whether a plain message may answer: the question is an input without a schema, or with one that takes text."""
    if interrupt.kind is not InterruptKind.INPUT:
        return False
    schema = interrupt.payload.get("answer_schema")
    return not isinstance(schema, Mapping) or schema.get("type") in (None, "string")
