# ruff: noqa: TID253 - imported by tests that talk to a model, never by the host
"""`ScriptedModel`: a chat model that says what a test wrote down, waits where the test says, notes what it was asked.

A gate holds an answer back at a piece, so that a test acts in the middle of it without sleeping::

    gate = Gate()
    model = ScriptedModel(script=[Reply("Hello there, friend", gate=gate, gate_before=2), Reply("Again")])
    ...
    await gate.reached.wait()  # two pieces are out, the third is held back
    gate.open.set()

`chosen` wraps a model as the host hands it to a runtime.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

from pizzabot_hookspecs.agent_runtimes import ChosenModel
from pizzabot_hookspecs.model_providers import ModelDescriptor


class Gate:
    """A point in an answer: `reached` is set when the model gets there; it goes on when `open` is."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.open = asyncio.Event()


@dataclass(frozen=True)
class Reply:
    """One answer. `pieces` is how it is streamed: word by word unless given. `error` is raised after the last piece.

    Arguments of a tool call that are a text and not a mapping are what the model wrote, JSON or not.
    """

    text: str = ""
    pieces: Sequence[str] | None = None
    gate: Gate | None = None
    gate_before: int = 0
    error: Exception | None = None
    tool_calls: Sequence[dict[str, Any]] = field(default_factory=tuple)

    def streamed(self) -> Sequence[str]:
        return re.findall(r"\S+\s*|\s+", self.text) if self.pieces is None else self.pieces

    def message(self) -> AIMessage:
        whole = [call for call in self.tool_calls if not isinstance(call["args"], str)]
        broken = [
            {**call, "type": "invalid_tool_call", "error": None}
            for call in self.tool_calls
            if isinstance(call["args"], str)
        ]
        return AIMessage(content="".join(self.streamed()), tool_calls=whole, invalid_tool_calls=broken)


@dataclass(frozen=True)
class Call:
    """What one call was handed: copies of the messages, and the names of the tools that were bound."""

    messages: tuple[BaseMessage, ...]
    tools: tuple[str, ...]


Script: TypeAlias = Sequence[Reply] | Callable[[Sequence[BaseMessage]], Reply]


class ScriptedModel(BaseChatModel):
    """`script` is a list, one reply per call, or a function of the messages (for calls whose order is not known)."""

    script: Any
    model_name: str = "scripted-1"
    provider: str = "scripted"
    _calls: list[Call] = PrivateAttr(default_factory=list)
    _bound: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def calls(self) -> Sequence[Call]:
        """Every call so far, oldest first."""
        return self._calls

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:  # noqa: ARG002 - LangChain's
        return {"ls_provider": self.provider, "ls_model_name": self.model_name, "ls_model_type": "chat"}

    @property
    def bound(self) -> Mapping[str, Any]:
        """The tools that the last call was bound to, by name."""
        return self._bound

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        return self.bind(tools=list(tools), **kwargs)

    def _next(self, messages: Sequence[BaseMessage], tools: Sequence[Any]) -> Reply:
        seen = tuple(message.model_copy(deep=True) for message in messages)
        self._bound = {_name(tool): tool for tool in tools}
        self._calls.append(Call(seen, tuple(_name(tool) for tool in tools)))
        if callable(self.script):
            reply: Reply = self.script(seen)
            return reply
        if len(self._calls) > len(self.script):
            raise AssertionError(f"the script has {len(self.script)} replies and the model was called once more")
        reply = self.script[len(self._calls) - 1]
        return reply

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._next(messages, kwargs.get("tools") or ())
        if reply.error is not None:
            raise reply.error
        return ChatResult(generations=[ChatGeneration(message=reply.message())])

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - LangChain's signature
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = self._next(messages, kwargs.get("tools") or ())
        for number, piece in enumerate([*reply.streamed(), None]):
            if reply.gate is not None and number == reply.gate_before:
                reply.gate.reached.set()
                await reply.gate.open.wait()
            if piece is not None:
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        if reply.error is not None:
            raise reply.error
        for chunk in _ending(reply):
            yield ChatGenerationChunk(message=chunk)


def chosen(
    model: BaseChatModel,
    *,
    supports_tools: bool | None = None,
    supports_vision: bool | None = None,
    context_window: int | None = None,
    model_id: str = "scripted:scripted-1",
) -> ChosenModel:
    """`model` as the host hands it to a runtime in a `Turn`."""
    name = model_id.partition(":")[2]
    descriptor = ModelDescriptor(
        id=name,
        display_name=name,
        supports_tools=supports_tools,
        supports_vision=supports_vision,
        context_window=context_window,
    )
    return ChosenModel(id=model_id, chat=model, descriptor=descriptor)


def _ending(reply: Reply) -> Iterator[AIMessageChunk]:
    for index, call in enumerate(reply.tool_calls):
        import json

        half = call["args"] if isinstance(call["args"], str) else json.dumps(call["args"])
        middle = len(half) // 2
        yield _tool_piece(index, half[:middle], name=call["name"], call_id=call["id"])
        yield _tool_piece(index, half[middle:])
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    yield AIMessageChunk(
        content="",
        usage_metadata=usage,  # type: ignore[arg-type]
        response_metadata={"finish_reason": "tool_calls" if reply.tool_calls else "stop"},
        chunk_position="last",
    )


def _tool_piece(index: int, args: str, *, name: str | None = None, call_id: str | None = None) -> AIMessageChunk:
    piece = {"type": "tool_call_chunk", "name": name, "id": call_id, "args": args, "index": index}
    return AIMessageChunk(content="", tool_call_chunks=[piece])  # type: ignore[list-item]


def _name(tool: Any) -> str:
    return str(tool.get("name", tool)) if isinstance(tool, dict) else str(getattr(tool, "name", tool))
