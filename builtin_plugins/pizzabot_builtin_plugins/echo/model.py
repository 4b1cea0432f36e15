"""The echo chat model: plays a step of the script as LangChain chunks. Imported when a model is built, never before."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun  # noqa: TID253
from langchain_core.language_models import BaseChatModel, LanguageModelInput  # noqa: TID253
from langchain_core.language_models.chat_models import generate_from_stream  # noqa: TID253
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage  # noqa: TID253
from langchain_core.messages.ai import UsageMetadata  # noqa: TID253
from langchain_core.messages.tool import ToolCallChunk  # noqa: TID253
from langchain_core.outputs import ChatGenerationChunk, ChatResult  # noqa: TID253
from langchain_core.runnables import Runnable  # noqa: TID253

from pizzabot_builtin_plugins.echo.script import ScriptedError, Step, chunks, parse
from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.support.surroundings import without_surroundings


class ScriptedModelError(Exception):
    """What `[[error CODE message]]` raises; `code` is the script's."""

    def __init__(self, error: ScriptedError) -> None:
        super().__init__(error.message)
        self.code = error.code


class EchoModel(BaseChatModel):
    """Answers with the last human message as `script` describes it. `pace` and `delay` are seconds."""

    model_name: str = "echo"
    pace: float = 0.0
    delay: float = 0.0
    calls_tools: bool = True

    @property
    def _llm_type(self) -> str:
        return "echo"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {**super()._get_ls_params(stop=stop, **kwargs), "ls_provider": "echo", "ls_model_name": self.model_name}

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        if not self.calls_tools:
            raise InvalidRequest("tools_unsupported", f"{self.model_name} calls no tools; the model that does is echo")
        return self.bind(tools=list(tools), tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager, **kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(iter([part async for part in self._astream(messages, stop, run_manager, **kwargs)]))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for wait, chunk in self._play(messages, stop):
            time.sleep(wait)
            if chunk is None:
                continue
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for wait, chunk in self._play(messages, stop):
            # Also without a pace: a long answer must leave the loop to others, and be stoppable, between two words.
            await asyncio.sleep(wait)
            if chunk is None:
                continue
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _play(
        self, messages: list[BaseMessage], stop: list[str] | None
    ) -> Iterator[tuple[float, ChatGenerationChunk | None]]:
        """Each chunk with the seconds to wait before it (no chunk: only wait); raises where the script says so."""
        step, key = _current_step(messages)
        if step.tools and not self.calls_tools:
            raise InvalidRequest("bad_directive", f"the echo directive [[tool]] does not work with {self.model_name}")
        pace = self.pace if step.pace is None else step.pace
        wait = self.delay if step.delay is None else step.delay
        sent = 0
        for message in _messages(step, key, stop, given=sum(len(part.text.split()) for part in messages)):
            if step.error is not None and sent == step.error.after:
                break
            yield wait, ChatGenerationChunk(message=message)
            sent, wait = sent + 1, pace
        if step.error is not None:
            if sent == 0:
                yield wait, None
            raise ScriptedModelError(step.error)


def _current_step(messages: list[BaseMessage]) -> tuple[Step, str]:
    """What is to be said now: tool rounds since the last human message count the steps. And a key for call ids."""
    last = max((place for place, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    asked = without_surroundings(str(messages[last].text)) if last >= 0 else ""
    since = messages[last + 1 :]
    rounds = sum(1 for message in since if isinstance(message, AIMessage) and message.tool_calls)
    identity = messages[last].id if last >= 0 else None
    key = hashlib.blake2s(f"{identity or last}:{rounds}".encode(), digest_size=6).hexdigest()
    steps = parse(asked)
    if rounds < len(steps):
        return steps[rounds], key
    return Step(text=_results(since), pace=steps[-1].pace, unit=steps[-1].unit, size=steps[-1].size), key


def _results(messages: list[BaseMessage]) -> str:
    """The results of the newest round of tools, a line each."""
    results: list[str] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        results.insert(0, str(message.text))
    return "\n".join(results)


def _messages(step: Step, key: str, stop: list[str] | None, *, given: int) -> Iterator[AIMessageChunk]:
    answer = _stopped(step.answer, stop)
    for piece in chunks(step.reasoning, step.unit, step.size):
        yield AIMessageChunk(content=[{"type": "reasoning", "reasoning": piece, "index": 0}])
    for piece in chunks(answer, step.unit, step.size):
        # Blocks only beside reasoning: most of what reads messages is simpler, and quicker, with plain text.
        yield AIMessageChunk(content=[{"type": "text", "text": piece, "index": 1}] if step.reasoning else piece)
    for place, tool in enumerate(step.tools):
        call = ToolCallChunk(
            type="tool_call_chunk",
            name=tool.name,
            args=json.dumps(tool.args),
            id=f"call-{key}-{place}",
            index=place + 2,
        )
        yield AIMessageChunk(content="", tool_call_chunks=[call])
    asked, made = step.usage or (given, len(answer.split()) + len(step.reasoning.split()))
    yield AIMessageChunk(
        content="",
        usage_metadata=UsageMetadata(input_tokens=asked, output_tokens=made, total_tokens=asked + made),
        response_metadata={"finish_reason": "tool_calls" if step.tools else "stop"},
        chunk_position="last",
    )


def _stopped(text: str, stop: list[str] | None) -> str:
    cuts = [place for word in stop or () if word and (place := text.find(word)) >= 0]
    return text[: min(cuts)] if cuts else text
