# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""What stands around a model call and a tool call, as lists in order: where limits and memory will be added.

A middleware with the name of one of DeepAgents' own takes its place; the others come after DeepAgents' core.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

from deepagents.backends import StateBackend
from deepagents.graph import DeepAgentState
from deepagents.middleware.filesystem import FilesystemState
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware
from deepagents.middleware.subagents import SubAgent, SubAgentMiddleware
from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, SystemMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_builtin_plugins.deepagents_runtime.compaction import Summaries
from pizzabot_builtin_plugins.deepagents_runtime.tool_bodies import contained
from pizzabot_builtin_plugins.deepagents_runtime.tool_calls import ToolCalls
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
from pizzabot_hookspecs.errors import PizzabotError, classify

FILES, DELEGATION, PLANNING = "FilesystemMiddleware", "SubAgentMiddleware", "TodoListMiddleware"
"""What `create_deep_agent` adds by itself, by name: file tools, the tool `task` with a subagent of its own, a to-do
list (with the profiles of some models only; no planning tool is ever offered, spec/05 §2)."""

HISTORY_SHARE = 0.7
"""Part of the context window for prompt and messages of a plain conversation; the rest is for the answer."""

CHARACTERS_PER_TOKEN = 3.0
"""A cautious guess: the vocabularies of small models are small, and not every language is English."""


def agent_middleware(
    chat: BaseChatModel, tools: ToolSet, *, offered: bool = True
) -> Sequence[AgentMiddleware[Any, Any, Any]]:
    """For the orchestrator (spec/05 §3): it has `tools` and nothing that the libraries bring.

    Not `offered`: the model cannot call tools, and the thread may have calls of another model that must be finished.
    """
    return [
        Withheld(FILES, FilesystemState),
        delegation(chat, tools) if tools.subagents else Withheld(DELEGATION),
        Withheld(PLANNING),
        Summaries(chat, prompts.AGENT if offered else prompts.CONVERSATION, told=True),
        ToolCalls(tools.tools, redact=tools.redact),
        Discreet(tools.redact),
        Nameless(),
        *([OwnPrompt(prompts.AGENT)] if offered else [*conversation_middleware(chat), NoTools()]),
    ]


def delegation(chat: BaseChatModel, tools: ToolSet) -> AgentMiddleware[Any, Any, Any]:
    """The tool `task`, which hands work to the subagents: with their own tools, no files, and nobody below them."""
    specs = [
        SubAgent(
            name=subagent.name,
            description=subagent.description,
            system_prompt=subagent.prompt,
            model=chat,
            tools=[contained(tool.tool) for tool in subagent.tools.values()],
            middleware=[
                Withheld(FILES, FilesystemState),
                Summaries(chat, subagent.prompt),
                PatchToolCallsMiddleware(),
                ToolCalls(subagent.tools, redact=tools.redact),
                Discreet(tools.redact),
                Nameless(),
                OwnPrompt(subagent.prompt),
            ],
        )
        for subagent in tools.subagents
    ]
    return SubAgentMiddleware(
        backend=StateBackend(), subagents=specs, task_description=prompts.TASK, state_schema=DeepAgentState
    )


def conversation_middleware(chat: BaseChatModel) -> Sequence[AgentMiddleware[Any, Any, Any]]:
    """For a model without tool calling: nothing but keeping within the model's window, where that is known."""
    window = (chat.profile or {}).get("max_input_tokens")
    return [RecentMessages(int(window * HISTORY_SHARE))] if window else []


class Withheld(AgentMiddleware[Any, Any, Any]):
    """Takes the place of a middleware by its name and does nothing: no tools, no prompt, only the state's channels.

    Excluding tools by a harness profile instead would leave them runnable for a model that guesses their names, and
    profiles are global to the process and cannot be taken back.
    """

    def __init__(self, name: str, state_schema: type[AgentState[Any]] = AgentState) -> None:
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


class NoTools(AgentMiddleware[Any, Any, Any]):
    """The model is offered no tools and the prompt of a plain conversation; the graph can still finish calls."""

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        return await handler(request.override(tools=[], system_message=SystemMessage(prompts.CONVERSATION)))


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
