# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""How much an agent may do in one turn, and how a turn ends that has done it all (spec/05 §3.1, §3.2).

A call of a tool beyond the limit gets an error for its result (`ToolCalls`). Then the orchestrator ends the turn with a
word about it; a subagent gets one more call, without tools, to report what it has. The limits of tool calls are the
turn's settings and hold for an approved turn as a whole; -1 is none. Model calls are limited always.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from pizzabot_builtin_plugins.deepagents_runtime.prompts import FINAL_CALL
from pizzabot_builtin_plugins.deepagents_runtime.turn_messages import model_calls, tool_calls
from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools, turn_in

MAX_MODEL_CALLS = 40
"""Of one agent in one turn (spec/05 §3.1)."""
UNLIMITED = -1

OVER_BUDGET = (
    "This turn may make {limit} tool calls, and they are used up. This call was not run, and no other will be: "
    "answer with what you have."
)

Handler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


def budget(turn: TurnTools | None, *, subagent: bool) -> int:
    """Tool calls that the agent may make in this turn; `UNLIMITED` for any number."""
    if turn is None:
        return UNLIMITED
    return turn.settings.max_subagent_tool_calls if subagent else turn.settings.max_tool_calls


def _exhausted(request: ModelRequest[Any], *, subagent: bool) -> int | None:
    """The limit of tool calls, where more were made than that."""
    limit = budget(turn_in(request.runtime.context), subagent=subagent)
    return limit if limit != UNLIMITED and tool_calls(request.state["messages"]) > limit else None


class TurnLimits(AgentMiddleware[Any, Any, Any]):
    """For the orchestrator: instead of a call beyond its limits, a word to the person, which ends the turn."""

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        if model_calls(request.state["messages"]) >= MAX_MODEL_CALLS:
            return _said(f"I stopped here: this turn has used its {MAX_MODEL_CALLS} steps. Say “go on” to continue.")
        limit = _exhausted(request, subagent=False)
        if limit is not None:
            return _said(f"I stopped here: this turn has used its {limit} tool calls. Say “go on” to continue.")
        return await handler(request)


def _said(text: str) -> ModelResponse[Any]:
    return ModelResponse(result=[AIMessage(text, id=f"limit-{uuid.uuid4()}")])


class LastReport(AgentMiddleware[Any, Any, Any]):
    """For a subagent: its last call has no tools, and a history without tool protocol, which some providers refuse
    where no tools are offered."""

    def __init__(self, calls: int = MAX_MODEL_CALLS) -> None:
        super().__init__()
        if calls < 1:
            raise ValueError(f"a subagent needs at least one model call, not {calls}")
        self._calls = calls

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        made = model_calls(request.state["messages"])
        if made < self._calls - 1 and _exhausted(request, subagent=True) is None:
            return await handler(request)
        prompt = request.system_message.text if request.system_message is not None else ""
        return await handler(
            request.override(
                tools=[],
                tool_choice=None,
                system_message=SystemMessage(prompt + FINAL_CALL),
                messages=without_tool_protocol(request.messages),
            )
        )


def without_tool_protocol(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The same history in words: what was called is in the text, results are one message of the person each time."""
    plain: list[AnyMessage] = []
    results: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            results.append(f"Tool result from {message.name or 'a tool'}:\n{message.text}")
            continue
        if results:
            plain.append(HumanMessage("\n\n".join(results)))
            results = []
        plain.append(_in_words(message) if isinstance(message, AIMessage) else message)
    if results:
        plain.append(HumanMessage("\n\n".join(results)))
    return plain


def _in_words(message: AIMessage) -> AIMessage:
    if not message.tool_calls and not message.invalid_tool_calls:
        return message
    calls = [
        f"{call['name']}({json.dumps(call['args'], ensure_ascii=False, default=str)})" for call in message.tool_calls
    ]
    said = "\n".join([*([message.text] if message.text.strip() else []), f"I called {', '.join(calls) or 'a tool'}."])
    return AIMessage(said, id=message.id)
