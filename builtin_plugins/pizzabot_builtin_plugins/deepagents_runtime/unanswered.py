# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Tool calls of the history that never had a result are answered where the model reads them: a provider refuses them.

They come with a state that a client wrote, and with a branch from the middle of a turn; a stop and a crash leave none
(`open_calls.py`). On copies, for one call: a step of the graph that repairs the state, as DeepAgents', is a checkpoint
more in every turn, of every subagent too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

REPAIR = "PatchToolCallsMiddleware"
"""DeepAgents' own, by name."""

NO_RESULT = "This call has no result: it was cancelled or interrupted. Whether it took effect is not known."
MALFORMED = "This call was not run: its arguments are not valid JSON."


class Unanswered(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        messages = answered(request.messages)
        return await handler(request if messages is None else request.override(messages=messages))


def answered(messages: Sequence[AnyMessage]) -> list[AnyMessage] | None:
    """`messages` with a result behind each answer for every call that has none; None where nothing is missing."""
    known = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    whole: list[AnyMessage] = []
    for message in messages:
        whole.append(message)
        if isinstance(message, AIMessage):
            whole += [_result(call, NO_RESULT) for call in message.tool_calls if call["id"] not in known]
            whole += [_result(call, MALFORMED) for call in message.invalid_tool_calls if call["id"] not in known]
    return whole if len(whole) > len(messages) else None


def _result(call: Any, text: str) -> ToolMessage:
    return ToolMessage(text, name=call["name"] or "unknown", tool_call_id=call["id"] or "", status="error")
