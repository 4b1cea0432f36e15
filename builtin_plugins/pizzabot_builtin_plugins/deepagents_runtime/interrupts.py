"""How an interrupt is shown: both spellings of every key, one approval as a batch of one (design/wire.md §0, §5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DECISIONS = ("approve", "edit", "reject", "respond")
"""What a person may answer to a gated tool call when the interrupt itself does not say."""


def shown(value: Any) -> Any:
    """`value` (plain JSON) as clients of either language read it. A value that is no approval stays as it is.

    `tool_approval` (one call, LangChain's per-call mode) becomes `action_requests` of one, so that a client knows one
    form; `action_requests` and `review_configs` also get their camelCase names, which JavaScript clients read.
    """
    if not isinstance(value, Mapping):
        return value
    batch = _batch_of_one(value) if value.get("type") == "tool_approval" else value
    if not isinstance(batch.get("action_requests"), list):
        return value
    configs = [_both_spellings(config) for config in batch.get("review_configs") or []]
    return {
        **batch,
        "review_configs": configs,
        "actionRequests": batch["action_requests"],
        "reviewConfigs": configs,
    }


def _batch_of_one(value: Mapping[str, Any]) -> dict[str, Any]:
    action = {key: value[key] for key in ("name", "args", "description") if key in value}
    config = {
        "action_name": value.get("name"),
        "allowed_decisions": list(value.get("allowed_decisions") or DECISIONS),
    }
    return {**value, "action_requests": [action], "review_configs": [config]}


def _both_spellings(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **config,
        "actionName": config.get("action_name"),
        "allowedDecisions": config.get("allowed_decisions"),
    }
