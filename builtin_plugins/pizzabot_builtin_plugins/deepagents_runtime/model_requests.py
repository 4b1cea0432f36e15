# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""What a model is handed with a call, besides what it was said: prompt, tools, how much of the history, no names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, SystemMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import turn_in
from pizzabot_hookspecs.errors import PizzabotError, classify

CHARACTERS_PER_TOKEN = 3.0
"""A cautious guess: the vocabularies of small models are small, and not every language is English."""


def prompt_of(request: ModelRequest[Any], text: str | None, *, otherwise: str = prompts.AGENT) -> SystemMessage:
    """`text`, or the turn's own prompt for the orchestrator, which has none of its own; `otherwise` without a turn."""
    if text is not None:
        return SystemMessage(text)
    turn = turn_in(request.runtime.context)
    return SystemMessage((turn.prompt if turn is not None else "") or otherwise)


class OwnPrompt(AgentMiddleware[Any, Any, Any]):
    """The model is handed `text` and nothing else, None for the turn's prompt.

    Profiles of some models, and DeepAgents' own middleware, append advice about tools.
    """

    def __init__(self, text: str | None, *, otherwise: str = prompts.AGENT) -> None:
        super().__init__()
        self._text = text
        self._otherwise = otherwise

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(request.override(system_message=prompt_of(request, self._text, otherwise=self._otherwise)))


class NoTools(AgentMiddleware[Any, Any, Any]):
    """The model is offered no tools and the prompt of a plain conversation; the graph can still finish calls."""

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(
            request.override(tools=[], system_message=prompt_of(request, None, otherwise=prompts.CONVERSATION))
        )


class Nameless(AgentMiddleware[Any, Any, Any]):
    """The model is handed no names of speakers; a tool's result keeps that of its tool.

    LangChain writes a subagent's name into each of its answers, and the OpenAI adapter sends names on: that API refuses
    one with a space. The names are for clients (`plain.ORCHESTRATOR`).
    """

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        if not any(_is_named(message) for message in request.messages):
            return await handler(request)
        messages = [
            message.model_copy(update={"name": None}) if _is_named(message) else message for message in request.messages
        ]
        return await handler(request.override(messages=messages))


def _is_named(message: AnyMessage) -> bool:
    return bool(message.name) and message.type in ("ai", "human", "AIMessageChunk")


class RecentMessages(AgentMiddleware[Any, Any, Any]):
    """The model is handed the newest messages that fit in `tokens`; the thread keeps them all.

    A small model cannot summarise, and one call over its window fails, as would every later one of the thread.
    """

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self._tokens = tokens

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        recent = trim_messages(
            request.messages,
            max_tokens=self._tokens,
            token_counter=partial(count_tokens_approximately, chars_per_token=CHARACTERS_PER_TOKEN),
            start_on="human",
        )
        return await handler(request.override(messages=cast("list[AnyMessage]", recent or request.messages[-1:])))


class Discreet(AgentMiddleware[Any, Any, Any]):
    """Hides secrets in what a model raises: LangGraph writes a failed step's error into the checkpoint as it is."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        try:
            return await handler(request)
        except Exception as error:
            told = self._redact(repr(error))
            if told == repr(error):
                raise
            # The class and its facts (a status) decide the code of the run's end: kept where the text can be changed.
            error.args = tuple(self._redact(part) if isinstance(part, str) else part for part in error.args)
            if self._redact(repr(error)) == repr(error):
                raise
            raise PizzabotError(classify(error), self._redact(str(error))) from None
