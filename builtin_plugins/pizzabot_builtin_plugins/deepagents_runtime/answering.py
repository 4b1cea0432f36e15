"""A turn's answers, matched with the interrupts that a thread waits for and checked before any of them is used.

One malformed value wedges a LangGraph thread for good: it is stored as a pending write, and the correct one after it
fails like the first (cases/reproduced R1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pizzabot_builtin_plugins.deepagents_runtime.approvals import arguments_fault
from pizzabot_builtin_plugins.deepagents_runtime.decisions import Decision, decision_of
from pizzabot_builtin_plugins.deepagents_runtime.interrupts import APPROVAL_TYPE
from pizzabot_hookspecs import InvalidRequest, NotFound
from pizzabot_hookspecs.wire import JsonValue, Namespace

if TYPE_CHECKING:
    from langgraph.types import Interrupt

    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet


@dataclass(frozen=True, kw_only=True)
class Answers:
    """`resume` is what the graph is handed, by interrupt id; `decided` the decisions in it, by the call they are on."""

    resume: Mapping[str, Any] = field(default_factory=dict)
    decided: Mapping[tuple[Namespace, str], Decision] = field(default_factory=dict)


def answers_to(
    pending: Iterable[Interrupt], given: Mapping[str, JsonValue], *, tools: ToolSet, consumed: bool
) -> Answers:
    """What of `given` can be handed on; the rest of `pending` stays open.

    Raises `NotFound` `no_such_interrupt` for an id that is not pending, unless answers may have been `consumed` before
    a crash, and `InvalidRequest` `invalid_decision`. All answers are checked before any is used.
    """
    open_ones = {interrupt.id: interrupt.value for interrupt in pending}
    unknown = sorted(given.keys() - open_ones.keys())
    if unknown and not consumed:
        detail = f"nothing on this thread waits for an answer to {', '.join(unknown)}; open are: {', '.join(open_ones)}"
        raise NotFound("no_such_interrupt", detail)
    resume: dict[str, Any] = {}
    decided: dict[tuple[Namespace, str], Decision] = {}
    for interrupt_id, answer in given.items():
        if interrupt_id not in open_ones:
            continue
        value = open_ones[interrupt_id]
        if isinstance(value, Mapping) and value.get("type") == APPROVAL_TYPE:
            decision = _checked(interrupt_id, answer, value, tools)
            decided[tuple(value["namespace"]), value["tool_call_id"] or ""] = decision
            resume[interrupt_id] = decision
        else:
            resume[interrupt_id] = answer
    return Answers(resume=resume, decided=decided)


def _checked(interrupt_id: str, answer: JsonValue, value: Mapping[str, Any], tools: ToolSet) -> Decision:
    decision = decision_of(interrupt_id, answer, value)
    if decision["type"] == "edit":
        action = decision["edited_action"]
        sets = [tools.tools, *(subagent.tools for subagent in tools.subagents)]
        named = [own[action["name"]].tool for own in sets if action["name"] in own]
        faults = [arguments_fault(tool, action["args"]) for tool in named]
        if faults and None not in faults:
            raise InvalidRequest(
                "invalid_decision",
                f"the edited arguments of interrupt {interrupt_id} cannot be used, and the question stays open: "
                f"{faults[0]}",
                fields={"decisions.0.edited_action.args": str(faults[0])},
            )
    return decision
