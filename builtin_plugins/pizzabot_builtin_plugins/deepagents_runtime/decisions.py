"""A person's decision on one tool call, checked before the graph is resumed: a bad one must not reach a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pizzabot_hookspecs import InvalidRequest

Decision: TypeAlias = dict[str, Any]
"""`{"type": "approve"}`, `{"type": "edit", "edited_action": {name, args}}`, `{"type": "reject", "message"?}` or
`{"type": "respond", "message"}`."""

REFUSING = frozenset({"reject", "respond"})
"""The decisions after which the tool does not run."""


def decision_of(interrupt_id: str, answer: Any, value: Mapping[str, Any]) -> Decision:
    """The one decision in `answer` (`{"decisions": [one]}`) on the approval with this interrupt value, and no more.

    Raises `InvalidRequest` `invalid_decision`; its fields say what is wrong with which part of the answer.
    """
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, list) or len(decisions) != 1 or not isinstance(decisions[0], Mapping):
        raise _invalid(interrupt_id, "decisions", "must be a list of exactly one decision")
    given = decisions[0]
    allowed = list(value["review_configs"][0]["allowed_decisions"])
    if given.get("type") not in allowed:
        raise _invalid(interrupt_id, "decisions.0.type", f"must be one of {', '.join(allowed)}")
    if given["type"] == "edit":
        return {"type": "edit", "edited_action": _edited(interrupt_id, given, value["action_requests"][0]["name"])}
    return {"type": given["type"], **_message(interrupt_id, given)}


def _edited(interrupt_id: str, given: Mapping[str, Any], name: str) -> dict[str, Any]:
    action = given.get("edited_action")
    if not isinstance(action, Mapping):
        raise _invalid(interrupt_id, "decisions.0.edited_action", "must be an object with name and args")
    if action.get("name") != name:
        raise _invalid(interrupt_id, "decisions.0.edited_action.name", f"must be {name!r}: an edit changes arguments")
    if not isinstance(action.get("args"), Mapping):
        raise _invalid(interrupt_id, "decisions.0.edited_action.args", "must be an object")
    return {"name": name, "args": dict(action["args"])}


def _message(interrupt_id: str, given: Mapping[str, Any]) -> dict[str, str]:
    message = given.get("message")
    if isinstance(message, str) and given["type"] in REFUSING:
        return {"message": message}
    if given["type"] == "respond" or (given["type"] == "reject" and message is not None):
        raise _invalid(interrupt_id, "decisions.0.message", "must be a text")
    return {}


def _invalid(interrupt_id: str, field: str, fault: str) -> InvalidRequest:
    return InvalidRequest(
        "invalid_decision",
        f"the answer to interrupt {interrupt_id} cannot be used, and the question stays open: {field} {fault}",
        fields={field: fault},
    )
