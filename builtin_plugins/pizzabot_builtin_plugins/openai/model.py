"""`ChatOpenAI` with what compatible endpoints need. Imported when a model is built, never before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.exceptions import ContextOverflowError  # noqa: TID253
from langchain_core.language_models import LanguageModelInput  # noqa: TID253
from langchain_core.messages import AIMessageChunk  # noqa: TID253
from langchain_core.outputs import ChatGenerationChunk, ChatResult  # noqa: TID253
from langchain_openai import ChatOpenAI  # noqa: TID253
from langchain_openai.chat_models.base import OpenAIContextOverflowError  # noqa: TID253
from openai import BadRequestError  # noqa: TID253
from pydantic import PrivateAttr

from pizzabot_builtin_plugins.openai.failures import explain
from pizzabot_builtin_plugins.openai.output_cap import learned_cap
from pizzabot_builtin_plugins.openai.settings import Endpoint
from pizzabot_hookspecs.errors import RunErrorCode, classify


class OpenAIModel(ChatOpenAI):
    """Asks again once with a smaller output budget, reads reasoning of compatible servers, and explains its errors.

    `caps` remembers the output budget by model for the life of the provider.
    """

    _endpoint: Endpoint = PrivateAttr()
    _caps: dict[str, int] = PrivateAttr()

    def attach(self, endpoint: Endpoint, caps: dict[str, int]) -> None:
        """Where it talks to and what was learned; both are the provider's and no fields that could be serialised."""
        self._endpoint, self._caps = endpoint, caps

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        emitted = False
        for may_learn in (True, False):
            try:
                async for chunk in super()._astream(*args, **kwargs):
                    emitted = True
                    yield chunk
                return
            except Exception as error:
                if emitted or not (may_learn and self._learn(error)):
                    self._explain(error, emitted=emitted)
                    raise

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        try:
            return await super()._agenerate(*args, **kwargs)
        except Exception as error:
            if not self._learn(error):
                self._explain(error, emitted=False)
                raise
        try:
            return await super()._agenerate(*args, **kwargs)
        except Exception as error:
            self._explain(error, emitted=False)
            raise

    def _learn(self, error: Exception) -> bool:
        cap = learned_cap(str(error), self.max_tokens or 0)
        if cap is None:
            return False
        self.max_tokens = self._caps[self.model_name] = cap
        return True

    def _explain(self, error: Exception, *, emitted: bool) -> None:
        """Say in `error` what happened; raises LangChain's overflow error where the endpoint said it in its own way."""
        if isinstance(error, BadRequestError) and not isinstance(error, ContextOverflowError) and _overflows(error):
            overflow = OpenAIContextOverflowError(message=error.message, response=error.response, body=error.body)
            self._explain(overflow, emitted=emitted)
            raise overflow from error
        place, secret = self._endpoint.place, self._endpoint.api_key
        explain(error, place=place, model=self.model_name, secret=secret, emitted=emitted)

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        # The name that OpenAI deprecated is the only one that every compatible server knows.
        if not self._endpoint.official and "max_completion_tokens" in payload:
            payload["max_tokens"] = payload.pop("max_completion_tokens")
        return payload

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        if made is None or self._endpoint.official or not isinstance(made.message, AIMessageChunk):
            return made
        # LangChain's reading of OpenAI's own messages knows no reasoning in them; without the mark it looks for it.
        made.message.response_metadata.pop("model_provider", None)
        if thought := _reasoning(chunk):
            made.message.additional_kwargs["reasoning_content"] = thought
        return made


def _overflows(error: BadRequestError) -> bool:
    return error.code == "context_length_exceeded" or classify(error.message) == RunErrorCode.CONTEXT_LENGTH


def _reasoning(chunk: dict[str, Any]) -> str | None:
    """vLLM, llama.cpp and DeepSeek say `reasoning_content`, OpenRouter and newer vLLM `reasoning`."""
    for choice in chunk.get("choices") or ():
        delta = choice.get("delta") or {}
        for name in ("reasoning_content", "reasoning"):
            if isinstance(text := delta.get(name), str) and text:
                return text
    return None
