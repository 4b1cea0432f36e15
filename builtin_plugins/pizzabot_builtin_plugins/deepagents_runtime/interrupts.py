"""What an interrupt asks, as clients see it: its kind, and its payload in both spellings (design/wire.md §0, §5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pizzabot_hookspecs.interrupts import InterruptKind
from pizzabot_hookspecs.support.questions import checked_question, is_question

APPROVAL_TYPE = "tool_approval"
"""`type` of the value of an approval that this runtime asked for (`approvals.py`)."""


def kind_of(value: Any) -> InterruptKind:
    """The kind of an interrupt by its value: `action_requests` make an approval, everything else is a question."""
    is_approval = isinstance(value, Mapping) and isinstance(value.get("action_requests"), list)
    return InterruptKind.APPROVAL if is_approval else InterruptKind.INPUT


def shown(value: Any) -> dict[str, Any]:
    """The payload of an interrupt whose value is `value` (plain JSON).

    An approval also gets the camelCase names that JavaScript clients read. A question is an object with `question`,
    whatever the tool said; one with `version` and `mode` is of the form that clients know, or degraded to it.
    """
    if not isinstance(value, Mapping):
        return {"question": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}
    if kind_of(value) is InterruptKind.INPUT:
        if is_question(value):
            return {**checked_question(value)}
        return {"question": "", **value}
    actions = [_both_spellings(action, argsSchema="args_schema") for action in value["action_requests"]]
    configs = [
        _both_spellings(config, actionName="action_name", allowedDecisions="allowed_decisions")
        for config in value.get("review_configs") or []
    ]
    payload = _both_spellings(value, toolCallId="tool_call_id")
    return {
        **payload,
        "action_requests": actions,
        "review_configs": configs,
        "actionRequests": actions,
        "reviewConfigs": configs,
    }


def _both_spellings(item: Any, **twins: str) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {**item, **{twin: item[name] for twin, name in twins.items() if name in item}}
