"""The chat model that the host is handed: a langchain model over a llama.cpp child, streaming and cancellable.

Imported when the first model is built: langchain is heavy.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from langchain_core.callbacks import (  # noqa: TID253  this module is imported in a thread, on first need
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput  # noqa: TID253
from langchain_core.language_models.base import LangSmithParams  # noqa: TID253
from langchain_core.language_models.chat_models import agenerate_from_stream  # noqa: TID253
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage  # noqa: TID253
from langchain_core.messages.ai import UsageMetadata  # noqa: TID253
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk  # noqa: TID253
from langchain_core.outputs import ChatGenerationChunk, ChatResult  # noqa: TID253
from langchain_core.runnables import Runnable  # noqa: TID253
from langchain_core.tools import BaseTool  # noqa: TID253
from langchain_core.utils.function_calling import convert_to_openai_tool  # noqa: TID253
from pydantic import PrivateAttr

from pizzabot_builtin_plugins.local.answers import answer
from pizzabot_builtin_plugins.local.messages import to_openai
from pizzabot_builtin_plugins.local.pool import Pool
from pizzabot_builtin_plugins.local.process import Launch
from pizzabot_hookspecs import InvalidRequest

SYNC_SECONDS = 3600.0
"""The longest that a call from another thread waits for the loop of the host."""


class LocalChat(BaseChatModel):
    """One model of the pool. Raises the classes of `errors`.

    `astream` and `ainvoke` belong to the loop it was built on; `invoke` and `stream` are for other threads.
    """

    model: str
    max_tokens: int
    temperature: float | None = None
    top_p: float | None = None
    repeat_penalty: float | None = None
    supports_tools: bool = False
    read_seconds: float = 300.0

    _pool: Pool = PrivateAttr()
    _launch: Launch = PrivateAttr()
    _loop: asyncio.AbstractEventLoop = PrivateAttr()

    @classmethod
    def over(cls, pool: Pool, launch: Launch, loop: asyncio.AbstractEventLoop, **fields: Any) -> LocalChat:
        chat = cls(model=launch.name, profile={"max_input_tokens": launch.context_size}, **fields)
        chat._pool, chat._launch, chat._loop = pool, launch, loop
        return chat

    @property
    def _llm_type(self) -> str:
        return "local"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model, "max_tokens": self.max_tokens, "temperature": self.temperature}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"], params["ls_model_name"] = "local", self.model
        return params

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Raises `InvalidRequest` `tools_unsupported` where the model's template does not lay out tools."""
        if tools and not self.supports_tools:
            raise InvalidRequest(
                "tools_unsupported",
                f"the local model {self.model!r} has no tool calling; use one whose template has it",
            )
        if not tools:
            return self.bind(**kwargs)
        if tool_choice is not None:
            kwargs["tool_choice"] = "required" if tool_choice == "any" else tool_choice
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        body = self._body(messages, stop, kwargs)
        chunks = answer(self._pool, self._launch, body, read_seconds=self.read_seconds)
        async with aclosing(chunks) as events:
            async for event in events:
                chunk = _generation(event, self.model)
                if chunk is None:
                    continue
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return await agenerate_from_stream(self._astream(messages, stop, run_manager, **kwargs))

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  its events belong to the other thread
        **kwargs: Any,
    ) -> ChatResult:
        future = asyncio.run_coroutine_threadsafe(self._agenerate(messages, stop, None, **kwargs), self._loop)
        return future.result(SYNC_SECONDS)

    def _body(self, messages: list[BaseMessage], stop: list[str] | None, options: dict[str, Any]) -> dict[str, Any]:
        body: dict[str, Any] = {
            "messages": to_openai(messages),
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": self.max_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "repeat_penalty": self.repeat_penalty,
            "stop": stop,
            **{key: options[key] for key in _OPTIONS if key in options},
        }
        return {key: value for key, value in body.items() if value is not None}


_OPTIONS = ("max_tokens", "temperature", "top_p", "seed", "tools", "tool_choice", "response_format", "ignore_eos")


def _generation(event: dict[str, Any], model: str) -> ChatGenerationChunk | None:
    """One chunk of the stream, or None for an event without content."""
    usage = _usage(event.get("usage"))
    choices = event.get("choices") or [{}]
    delta, reason = choices[0].get("delta") or {}, choices[0].get("finish_reason")
    text, reasoning = delta.get("content") or "", delta.get("reasoning_content")
    calls = [_call(call) for call in delta.get("tool_calls") or ()]
    if not (text or reasoning or calls or reason or usage):
        return None
    message = AIMessageChunk(
        content=text,
        id=event.get("id"),
        additional_kwargs={"reasoning_content": reasoning} if reasoning else {},
        tool_call_chunks=calls,
        usage_metadata=usage,
        response_metadata={"finish_reason": reason, "model_name": model, "model_provider": "local"} if reason else {},
    )
    return ChatGenerationChunk(message=message, generation_info={"finish_reason": reason} if reason else None)


def _call(call: dict[str, Any]) -> ToolCallChunk:
    function = call.get("function") or {}
    return tool_call_chunk(
        name=function.get("name"), args=function.get("arguments"), id=call.get("id"), index=call.get("index", 0)
    )


def _usage(usage: Any) -> UsageMetadata | None:
    if not isinstance(usage, dict):
        return None
    read, written = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
    cached = int((usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0))
    return UsageMetadata(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        input_token_details={"cache_read": cached},
    )
