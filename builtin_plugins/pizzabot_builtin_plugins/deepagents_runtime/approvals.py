# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Asking a person about one tool call, and what a decision makes of it (durable-runs rule 9, hard cases 19).

Not LangChain's middleware: its per-call mode shows no argument schema, checks a rejected call nowhere else, and asks
as often as a model repeats itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from langchain.agents.middleware.human_in_the_loop import ApproveDecision, EditDecision, RejectDecision, RespondDecision
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.types import interrupt
from pydantic import BaseModel, Discriminator, ValidationError

from pizzabot_builtin_plugins.deepagents_runtime.decisions import Decision
from pizzabot_builtin_plugins.deepagents_runtime.interrupts import APPROVAL_TYPE
from pizzabot_builtin_plugins.deepagents_runtime.tool_errors import error_message
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.wire import Namespace

REFUSALS_LIMIT = 2
"""How often in one turn a person is asked about exactly the same call after refusing it is answered without asking."""

DESCRIPTION_LIMIT = 1_000

# What the graph itself checks before it stores an answer, for one that came past `decisions.decision_of`.
_Decision: TypeAlias = Annotated[
    ApproveDecision | EditDecision | RejectDecision | RespondDecision, Discriminator("type")
]


def ask(call: ToolCall, rule: AgentTool, namespace: Namespace) -> Decision:
    """A person's decision on `call`. The first time it raises LangGraph's interrupt instead of returning."""
    decision: Decision = interrupt(approval_value(call, rule, namespace), response_schema=_Decision)  # type: ignore[call-overload]
    return decision


def approval_value(call: ToolCall, rule: AgentTool, namespace: Namespace) -> dict[str, Any]:
    """The value of the interrupt: a batch of one action, and which call it is about."""
    action = {
        "name": call["name"],
        "args": call["args"],
        "description": rule.tool.description[:DESCRIPTION_LIMIT],
        "args_schema": args_schema(rule.tool),
    }
    review = {"action_name": call["name"], "allowed_decisions": sorted(rule.approval or ())}
    return {
        "type": APPROVAL_TYPE,
        "tool_call_id": call["id"],
        "namespace": list(namespace),
        "action_requests": [action],
        "review_configs": [review],
    }


def args_schema(tool: BaseTool) -> dict[str, Any]:
    """JSON Schema of the arguments that a model or a person gives; what the graph injects is not among them."""
    schema: Any = tool.tool_call_schema
    return dict(schema) if isinstance(schema, dict) else dict(schema.model_json_schema())


def arguments_fault(tool: BaseTool, args: Mapping[str, Any]) -> str | None:
    """What is wrong with arguments, where the tool has a model that says so: nobody is asked about such a call."""
    schema = tool.tool_call_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return None
    try:
        schema.model_validate(dict(args))
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}" for fault in error.errors())
        return "; ".join(faults)
    return None


def refusal(call: ToolCall, decision: Decision) -> ToolMessage:
    """The result of a call that was rejected, or answered in the tool's place."""
    if decision["type"] == "respond":
        return ToolMessage(content=decision["message"], tool_call_id=call["id"] or "", name=call["name"])
    reason = decision.get("message") or ""
    because = f", and says: {reason}" if reason else ""
    text = (
        f"The person refused this call of {call['name']}{because}\n\nIt was not run. "
        "Do not call it again with these arguments unless the person asks for it."
    )
    message = error_message(text, call)
    message.artifact = {"refused": True, "reason": reason}
    return message


def repeated_refusal(call: ToolCall, messages: Sequence[BaseMessage]) -> ToolMessage | None:
    """The result of a call that was refused so often in this turn, arguments and all, that nobody is asked again."""
    reasons = list(_reasons(call, messages))
    if len(reasons) < REFUSALS_LIMIT:
        return None
    because = next((f", and said: {reason}" for reason in reversed(reasons) if reason), "")
    text = (
        f"The person refused exactly this call of {call['name']} {len(reasons)} times{because}\n\n"
        "It was not run, and the person is not asked again. Go on without it."
    )
    return error_message(text, call)


def with_notice(result: ToolMessage, args: Mapping[str, Any]) -> ToolMessage:
    """The result of a call whose arguments a person changed, for a model that remembers its own."""
    notice = (
        "Note: the person changed the arguments before this ran; that was intended. It ran with "
        f"{json.dumps(args, ensure_ascii=False, default=str)}."
    )
    content = result.content
    changed = f"{notice}\n\n{content}" if isinstance(content, str) else [{"type": "text", "text": notice}, *content]
    return result.model_copy(update={"content": changed})


def _reasons(call: ToolCall, messages: Sequence[BaseMessage]) -> Iterator[str]:
    """Why exactly this call was refused, once for each time since the person last said something."""
    begin = max((index for index, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    same: set[str | None] = set()
    for message in messages[begin + 1 :]:
        if isinstance(message, AIMessage):
            same |= {
                said["id"]
                for said in message.tool_calls
                if said["name"] == call["name"] and said["args"] == call["args"] and said["id"] != call["id"]
            }
        elif isinstance(message, ToolMessage) and message.tool_call_id in same:
            artifact = message.artifact
            if isinstance(artifact, dict) and artifact.get("refused"):
                yield str(artifact.get("reason") or "")
