# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""A subagent's report that the model's output limit has cut says so, for whoever relays it (spec/05 §3.4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage

NOTICE = "[OUTPUT_TRUNCATED: the answer was cut off here by the model's output limit; it is incomplete.]"
_KEYS = ("finish_reason", "stop_reason", "finishReason", "stopReason")
_CUT = frozenset({"length", "max_token", "max_tokens", "max_output_token", "max_output_tokens", "token_limit"})


class CutReports(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        response = await handler(request)
        last = response.result[-1] if response.result else None
        if not isinstance(last, AIMessage) or last.tool_calls or not was_cut(last):
            return response
        return ModelResponse(
            result=[*response.result[:-1], with_notice(last)], structured_response=response.structured_response
        )


def was_cut(message: AIMessage) -> bool:
    reasons = (message.response_metadata.get(key) for key in _KEYS)
    return any(isinstance(reason, str) and reason.lower().replace("-", "_") in _CUT for reason in reasons)


def with_notice(message: AIMessage) -> AIMessage:
    content: Any = message.content
    if isinstance(content, str):
        return message.model_copy(update={"content": f"{content}\n\n{NOTICE}"})
    return message.model_copy(update={"content": [*content, {"type": "text", "text": f"\n\n{NOTICE}"}]})
