# ruff: noqa: TID253 - imported when a model is built, never before
"""The chat model: LangChain's `BaseChatModel` with two methods, one for each way to be called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from pizzabot_parrot.speech import spoken, words


class ParrotChat(BaseChatModel):
    """Says the last human message again, a word at a time."""

    model_name: str
    loud: bool = False
    sentence_case: bool = False
    word_delay: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_kwargs: Any,
    ) -> ChatResult:
        return generate_from_stream(self._stream(messages, stop, run_manager))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - a parrot cannot be told when to stop
        run_manager: CallbackManagerForLLMRun | None = None,
        **_kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
            time.sleep(self.word_delay)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks(messages):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
            # Also without a delay: a long answer leaves the loop to others, and can be stopped, between two words.
            await asyncio.sleep(self.word_delay)

    def _chunks(self, messages: Sequence[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        heard = next((str(message.text) for message in reversed(messages) if isinstance(message, HumanMessage)), "")
        said = words(spoken(heard, loud=self.loud, sentence_case=self.sentence_case))
        for word in said:
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))
        yield ChatGenerationChunk(message=_last_chunk(heard=len(words(heard)), said=len(said)))


def _last_chunk(*, heard: int, said: int) -> AIMessageChunk:
    """No text, but what the answer cost (here: words) and why it ended."""
    return AIMessageChunk(
        content="",
        usage_metadata=UsageMetadata(input_tokens=heard, output_tokens=said, total_tokens=heard + said),
        response_metadata={"finish_reason": "stop"},
        chunk_position="last",
    )
