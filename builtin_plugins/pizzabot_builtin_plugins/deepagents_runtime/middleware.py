# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""What stands around a model call, as lists in order: this is where tools, limits and memory are added.

A middleware with the name of one of DeepAgents' own takes its place; the others come after DeepAgents' core.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from deepagents.middleware.filesystem import FilesystemState
from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, SystemMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_hookspecs.errors import PizzabotError, classify

WITHHELD: tuple[tuple[str, type[AgentState[Any]]], ...] = (
    ("FilesystemMiddleware", FilesystemState),
    ("SubAgentMiddleware", AgentState),
    ("TodoListMiddleware", AgentState),
)
"""What `create_deep_agent` adds by itself and a turn without tools must not have, with the state that stays in place.

The to-do list comes with the profiles of some models only; no planning tool is ever offered (spec/05 §2).
"""

HISTORY_SHARE = 0.7
"""Part of the context window for prompt and messages of a plain conversation; the rest is for the answer."""

CHARACTERS_PER_TOKEN = 3.0
"""A cautious guess: the vocabularies of small models are small, and not every language is English."""


def agent_middleware() -> Sequence[AgentMiddleware[Any, Any, Any]]:
    """For a model with tool calling (spec/05 §3)."""
    return [*(Withheld(name, state) for name, state in WITHHELD), OwnPrompt(prompts.AGENT)]


def conversation_middleware(chat: BaseChatModel) -> Sequence[AgentMiddleware[Any, Any, Any]]:
    """For a model without: nothing but keeping the conversation within the model's window, where that is known."""
    window = (chat.profile or {}).get("max_input_tokens")
    return [RecentMessages(int(window * HISTORY_SHARE))] if window else []


class Withheld(AgentMiddleware[Any, Any, Any]):
    """Takes the place of a middleware by its name and does nothing: no tools, no prompt, only the state's channels.

    Excluding tools by a harness profile instead would leave them runnable for a model that guesses their names, and
    profiles are global to the process and cannot be taken back.
    """

    def __init__(self, name: str, state_schema: type[AgentState[Any]]) -> None:
        super().__init__()
        self._name = name
        self.state_schema = state_schema

    @property
    def name(self) -> str:
        return self._name


class OwnPrompt(AgentMiddleware[Any, Any, Any]):
    """The model is handed `text` and nothing else: profiles of some models append advice about tools of their own."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._message = SystemMessage(text)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(request.override(system_message=self._message))


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
