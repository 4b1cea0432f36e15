"""`ChatOllama` with repaired tool calls, messages in Ollama's forms and errors that say what to do.

Imported when a model is built, never before.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, BaseMessage  # noqa: TID253
from langchain_core.messages.tool import tool_call  # noqa: TID253
from langchain_core.outputs import ChatGenerationChunk  # noqa: TID253
from langchain_ollama import ChatOllama  # noqa: TID253
from ollama import AsyncClient, Message  # noqa: TID253
from pydantic import PrivateAttr

from pizzabot_builtin_plugins.ollama.failures import explain
from pizzabot_builtin_plugins.ollama.messages import for_ollama
from pizzabot_builtin_plugins.ollama.repair import parsed_arguments, repaired_keys


class LenientClient(AsyncClient):
    """Ollama's client, which refuses arguments that are text before anybody could repair them."""

    async def _request(self, cls: Any, *args: Any, **kwargs: Any) -> Any:
        def lenient(**part: Any) -> Any:
            return cls(**parsed_arguments(part))

        request = cast("Callable[..., Any]", super()._request)
        return await request(lenient, *args, **kwargs)


class OllamaModel(ChatOllama):
    """`_vision`: whether images that a tool returned may be shown to the model."""

    _vision: bool = PrivateAttr(default=False)
    _host: str = PrivateAttr(default="")

    def attach(self, host: str, *, vision: bool, **client: Any) -> None:
        """The server's address, what the model can see, and the options of the HTTP client."""
        self._host, self._vision = host, vision
        self._async_client = LenientClient(host=host, **client)

    async def aclose(self) -> None:
        await cast("Callable[[], Awaitable[None]]", self._async_client.close)()

    def _convert_messages_to_ollama_messages(self, messages: list[BaseMessage]) -> Sequence[Message]:
        return super()._convert_messages_to_ollama_messages(for_ollama(messages, vision=self._vision))

    async def _acreate_chat_stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncIterator[Mapping[str, Any] | str]:
        """As the parent's, but the answer is closed with this generator: an aborted run ends the request at once."""
        parameters = self._chat_params(messages, stop, **kwargs)
        if not parameters["stream"]:
            yield await self._async_client.chat(**parameters)
            return
        async with aclosing(await self._async_client.chat(**parameters)) as parts:
            async for part in parts:
                yield part

    async def _aiterate_over_stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        tools = kwargs.get("tools") or ()
        try:
            made = cast(
                "AsyncGenerator[ChatGenerationChunk, None]", super()._aiterate_over_stream(messages, stop, **kwargs)
            )
            async with aclosing(made) as chunks:
                async for chunk in chunks:
                    yield _repaired(chunk, tools)
        except Exception as error:
            explain(error, host=self._host, model=self.model)
            raise

    def _iterate_over_stream(
        self, messages: list[BaseMessage], stop: list[str] | None = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        tools = kwargs.get("tools") or ()
        try:
            for chunk in super()._iterate_over_stream(messages, stop, **kwargs):
                yield _repaired(chunk, tools)
        except Exception as error:
            explain(error, host=self._host, model=self.model)
            raise


def _repaired(chunk: ChatGenerationChunk, tools: Sequence[Mapping[str, Any]]) -> ChatGenerationChunk:
    message = chunk.message
    if not isinstance(message, AIMessageChunk) or not message.tool_calls:
        return chunk
    calls = [
        tool_call(name=call["name"], id=call["id"], args=repaired_keys(call["name"], call["args"], tools))
        for call in message.tool_calls
    ]
    made = AIMessageChunk(
        content=message.content,
        additional_kwargs=message.additional_kwargs,
        usage_metadata=message.usage_metadata,
        tool_calls=calls,
    )
    return ChatGenerationChunk(message=made, generation_info=chunk.generation_info)
