# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Tool calls whose arguments are not JSON (cut off by the output limit, or badly written) are told to the model.

LangChain sets them aside, and a turn whose last answer holds nothing else ends there, without a word. Here they are
calls again, without arguments and marked: `ToolCalls` answers them with what was wrong and never runs or asks about
them, and the model has its say.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, ToolCall

from pizzabot_builtin_plugins.deepagents_runtime.big_numbers import with_storable_calls

MALFORMED = "pizzabot_malformed"
"""Key in an answer's `additional_kwargs`: what was written, by the id of the call."""
MAX_TOLD = 500
"""Characters of what was written that the model is shown again, of its beginning and of its end."""


class MalformedCalls(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        response = await handler(request)
        last = response.result[-1] if response.result else None
        if not isinstance(last, AIMessage):
            return response
        mended = with_storable_calls(last)
        if any(call["id"] for call in last.invalid_tool_calls):
            mended = as_calls(mended)
        if mended is last:
            return response
        return ModelResponse(result=[*response.result[:-1], mended], structured_response=response.structured_response)


def as_calls(message: AIMessage) -> AIMessage:
    """A copy whose malformed calls are calls without arguments; one without an id cannot be answered and goes."""
    malformed = {call["id"]: call for call in message.invalid_tool_calls if call["id"]}
    calls = [
        ToolCall(name=call["name"] or "unknown", args={}, id=call_id, type="tool_call")
        for call_id, call in malformed.items()
    ]
    content = message.content
    if isinstance(content, list):
        content = [block for block in content if not _is_malformed(block)]
        content += [dict(call) for call in calls] if len(content) < len(message.content) else []
    return message.model_copy(
        update={
            "content": content,
            "tool_calls": [*message.tool_calls, *calls],
            "invalid_tool_calls": [],
            "additional_kwargs": {
                **message.additional_kwargs,
                MALFORMED: {call_id: shortened(call["args"] or "") for call_id, call in malformed.items()},
            },
        }
    )


def fault_of(messages: Sequence[BaseMessage], call_id: str) -> str | None:
    """What the model is told of a call of its last answer, where that was malformed."""
    answer = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    written = (answer.additional_kwargs.get(MALFORMED) or {}).get(call_id) if answer is not None else None
    if written is None:
        return None
    return (
        "The arguments of this call are not valid JSON, so it was not run. Perhaps they were cut off: call again, "
        f"with less at once. They were:\n{written}"
    )


def shortened(text: str) -> str:
    left_out = len(text) - 2 * MAX_TOLD
    return text if left_out <= 0 else f"{text[:MAX_TOLD]}\n[{left_out} characters]\n{text[-MAX_TOLD:]}"


def _is_malformed(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "invalid_tool_call"
