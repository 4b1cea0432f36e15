# ruff: noqa: SLF001 - what LangChain has its models implement has underscores
"""A chat model around another one, whose inline reasoning comes out as blocks of reasoning (spec/12 §1.1).

Imported when a model needs it, never before: LangChain is heavy.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun  # noqa: TID253
from langchain_core.language_models import BaseChatModel, LanguageModelInput  # noqa: TID253
from langchain_core.messages import AIMessage, BaseMessage  # noqa: TID253
from langchain_core.outputs import ChatGenerationChunk, ChatResult  # noqa: TID253
from langchain_core.runnables import Runnable, RunnableBinding, RunnableParallel, RunnableSequence  # noqa: TID253
from langchain_core.tools import BaseTool  # noqa: TID253

from pizzabot.host.models.cut_messages import MessageCutter, chunk_of, cut_result
from pizzabot_hookspecs.model_providers import InlineReasoning

_SHARED = ("profile", "rate_limiter", "disable_streaming", "output_version", "callbacks", "tags", "metadata", "verbose")
"""Fields that LangChain reads of the model it calls, which is this one."""


class CuttingModel(BaseChatModel):
    """Everything but the text of the answers is `inner`'s: its name, profile, tools, tokens and errors."""

    inner: BaseChatModel
    inline_reasoning: InlineReasoning

    @classmethod
    def around(cls, inner: BaseChatModel, inline_reasoning: InlineReasoning) -> CuttingModel:
        shared = {name: getattr(inner, name) for name in _SHARED}
        return cls(inner=inner, inline_reasoning=inline_reasoning, **shared)

    def __getattr__(self, name: str) -> Any:
        """What is asked of a model besides, such as `model_name`: deepagents and tracing tell models by it."""
        if name.startswith("_") or name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def _llm_type(self) -> str:
        return self.inner._llm_type

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {**self.inner._identifying_params, "inline_reasoning": self.inline_reasoning.value}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return self.inner._get_ls_params(stop=stop, **kwargs)

    def get_token_ids(self, text: str) -> list[int]:
        return self.inner.get_token_ids(text)

    def get_num_tokens(self, text: str) -> int:
        return self.inner.get_num_tokens(text)

    def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Sequence[Any] | None = None) -> int:
        return self.inner.get_num_tokens_from_messages(messages, tools)

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Raises what `inner` raises, such as `tools_unsupported`."""
        return cast(
            "Runnable[LanguageModelInput, AIMessage]",
            self._around(self.inner.bind_tools(tools, tool_choice=tool_choice, **kwargs)),
        )

    def with_structured_output(
        self, schema: dict[str, Any] | type, *, include_raw: bool = False, **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        made = self.inner.with_structured_output(schema, include_raw=include_raw, **kwargs)
        return cast("Runnable[LanguageModelInput, Any]", self._around(made))

    def _around(self, made: Any) -> Any:
        """What `inner` made of itself, with this in its place."""
        if isinstance(made, CuttingModel):
            return made
        if isinstance(made, BaseChatModel):
            return self if made is self.inner else CuttingModel.around(made, self.inline_reasoning)
        if isinstance(made, RunnableBinding):
            return self._around(made.bound).bind(**made.kwargs).with_config(made.config)
        if isinstance(made, RunnableSequence):
            return RunnableSequence(*(self._around(step) for step in made.steps), name=made.name)
        if isinstance(made, RunnableParallel):
            return RunnableParallel({name: self._around(step) for name, step in made.steps__.items()})
        return made

    # -- answers ------------------------------------------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 - it tells of tokens, here are none
        **kwargs: Any,
    ) -> ChatResult:
        return cut_result(self.inner._generate(messages, stop, None, **kwargs), self.inline_reasoning)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        return cut_result(await self.inner._agenerate(messages, stop, None, **kwargs), self.inline_reasoning)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        cutter = MessageCutter(self.inline_reasoning)
        for chunk in self._chunks(messages, stop, **kwargs):
            for cut in cutter.feed(chunk):
                if run_manager:
                    run_manager.on_llm_new_token(cut.text, chunk=cut)
                yield cut
        for cut in cutter.close():
            if run_manager:
                run_manager.on_llm_new_token(cut.text, chunk=cut)
            yield cut

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        cutter = MessageCutter(self.inline_reasoning)
        # Closed with this one: a run that is stopped ends the request at once.
        async with aclosing(self._achunks(messages, stop, **kwargs)) as chunks:
            async for chunk in chunks:
                for cut in cutter.feed(chunk):
                    if run_manager:
                        await run_manager.on_llm_new_token(cut.text, chunk=cut)
                    yield cut
        for cut in cutter.close():
            if run_manager:
                await run_manager.on_llm_new_token(cut.text, chunk=cut)
            yield cut

    def _chunks(
        self, messages: list[BaseMessage], stop: list[str] | None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        if type(self.inner)._stream is not BaseChatModel._stream:
            yield from self.inner._stream(messages, stop, None, **kwargs)
        else:
            yield chunk_of(self.inner._generate(messages, stop, None, **kwargs))

    async def _achunks(
        self, messages: list[BaseMessage], stop: list[str] | None, **kwargs: Any
    ) -> AsyncGenerator[ChatGenerationChunk, None]:
        kind = type(self.inner)
        if kind._astream is BaseChatModel._astream and kind._stream is BaseChatModel._stream:
            yield chunk_of(await self.inner._agenerate(messages, stop, None, **kwargs))
            return
        made = cast("AsyncGenerator[ChatGenerationChunk, None]", self.inner._astream(messages, stop, None, **kwargs))
        async with aclosing(made) as chunks:
            async for chunk in chunks:
                yield chunk
