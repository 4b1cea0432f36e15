# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""What stands around a model call and a tool call, as lists in order (spec/05 §3), for each kind of agent.

A middleware with the name of one of DeepAgents' own takes its place; the others come after DeepAgents' core. None has a
hook of its own between the steps: each would be one more checkpoint with every model call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from deepagents.middleware.filesystem import FsToolName
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_builtin_plugins.deepagents_runtime.ask_user import ask_user_tool
from pizzabot_builtin_plugins.deepagents_runtime.attachments import Inlined
from pizzabot_builtin_plugins.deepagents_runtime.bundles import Bundle
from pizzabot_builtin_plugins.deepagents_runtime.compaction import Summaries
from pizzabot_builtin_plugins.deepagents_runtime.delegation import Delegation, SubagentShelf
from pizzabot_builtin_plugins.deepagents_runtime.file_backend import TurnBackend
from pizzabot_builtin_plugins.deepagents_runtime.file_calls import FileCalls
from pizzabot_builtin_plugins.deepagents_runtime.interpreter import interpreter_middleware
from pizzabot_builtin_plugins.deepagents_runtime.joined import Joined
from pizzabot_builtin_plugins.deepagents_runtime.limits import LastReport, TurnLimits
from pizzabot_builtin_plugins.deepagents_runtime.malformed import MalformedCalls
from pizzabot_builtin_plugins.deepagents_runtime.model_requests import (
    Discreet,
    Nameless,
    NoTools,
    OwnPrompt,
    RecentMessages,
)
from pizzabot_builtin_plugins.deepagents_runtime.surroundings import Surroundings
from pizzabot_builtin_plugins.deepagents_runtime.tool_bodies import contained
from pizzabot_builtin_plugins.deepagents_runtime.tool_calls import ToolCalls
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import EVAL, FILE_TOOLS, Subagent, ToolSet
from pizzabot_builtin_plugins.deepagents_runtime.truncation import CutReports
from pizzabot_builtin_plugins.deepagents_runtime.unanswered import REPAIR, Unanswered
from pizzabot_hookspecs.agent_middleware import AgentMiddlewareSource
from pizzabot_hookspecs.agent_runtimes import BuiltinTool
from pizzabot_hookspecs.agent_tools import AgentTool

DELEGATION, PLANNING, PARENT = "SubAgentMiddleware", "TodoListMiddleware", "_ParentNotifierMiddleware"
"""What `create_deep_agent` adds by itself, by name: the tool `task` with a subagent of its own, a to-do list (with the
profiles of some models only; no planning tool is ever offered, spec/05 §2), and a step at the end of each turn that
reports to the remote agent which started it: nobody does."""

ASKED, TOLD = "asked", "told"
"""Our own parts, joined: those before the plugins' middleware, and those behind it."""

HISTORY_SHARE = 0.7
"""Part of the context window for prompt and messages of a plain conversation; the rest is for the answer."""

WRITING = ("write_file", "edit_file")
"""File tools that are announced before they run: after a crash a person is asked what became of them."""

Middleware = AgentMiddleware[Any, Any, Any]


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """What graphs are built with besides a model and a tool set. Used in the builder's thread alone.

    `subagents` keeps compiled ones; `sources` are the plugins' middleware; `cache` a folder for what the sandbox
    compiles.
    """

    subagents: SubagentShelf = field(default_factory=SubagentShelf)
    sources: Sequence[AgentMiddlewareSource] = ()
    cache: Path | None = None

    def added(self, agent: str | None) -> list[Middleware]:
        """What plugins add around the calls of an agent, None for the orchestrator."""
        return [middleware for source in self.sources for middleware in source.middleware(agent)]


def agent_middleware(
    chat: BaseChatModel, tools: ToolSet, workshop: Workshop, *, offered: bool = True
) -> Sequence[Middleware]:
    """For the orchestrator.

    Not `offered`: the model cannot call tools, and the thread may have calls of another model that must be finished.
    """
    files = file_tools()
    delegation = delegating(chat, tools, workshop) if tools.subagents else None
    sandbox = interpreter_middleware(
        bridges=files.tools,
        dispatch=None if delegation is None else delegation.tools[0],
        cache_folder=workshop.cache,
        redact=tools.redact,
    )
    return [
        files,
        delegation or Withheld(DELEGATION),
        Withheld(PLANNING),
        Withheld(PARENT),
        Withheld(REPAIR),
        Summaries(chat, None, told=True),
        ToolCalls(rules(tools.tools, files, sandbox), redact=tools.redact, unready=tools.unready),
        sandbox,  # before the limits: it ends with the turn, whoever ends it
        *joined(
            [
                TurnLimits(),
                Discreet(tools.redact),
                Nameless(),
                *([OwnPrompt(None)] if offered else [*conversation_middleware(chat), NoTools()]),
                Unanswered(),
                MalformedCalls(),
            ],
            workshop.added(None),
            [Inlined(), Surroundings()],
        ),
    ]


def joined(
    before: Sequence[Middleware], added: Sequence[Middleware], behind: Sequence[Middleware]
) -> Sequence[Middleware]:
    """Our parts as few as can be, with what plugins added between them."""
    if not added:
        return [Joined(ASKED, *before, *behind)]
    return [Joined(ASKED, *before), *added, Joined(TOLD, *behind)]


def agent_tools(tools: ToolSet) -> list[BaseTool]:
    """The orchestrator's tools that no middleware brings."""
    return [*(contained(tool.tool) for tool in tools.tools.values()), ask_user_tool()]


def delegating(chat: BaseChatModel, tools: ToolSet, workshop: Workshop) -> Delegation:
    """The tool `task`, which hands work to the subagents: with their own tools and nobody below them."""
    runnables = {
        subagent.name: workshop.subagents.runnable(
            chat, subagent, partial(_spec_parts, chat, subagent, tools, workshop)
        )
        for subagent in tools.subagents
    }
    return Delegation(tools.subagents, runnables)


def _spec_parts(
    chat: BaseChatModel, subagent: Subagent, tools: ToolSet, workshop: Workshop
) -> tuple[list[BaseTool], list[Middleware]]:
    own = [contained(tool.tool) for tool in subagent.tools.values()]
    if BuiltinTool.ASK_USER in subagent.builtins:
        own.append(ask_user_tool())
    return own, subagent_middleware(chat, subagent, tools, workshop)


def subagent_middleware(
    chat: BaseChatModel, subagent: Subagent, tools: ToolSet, workshop: Workshop
) -> list[Middleware]:
    """For one subagent: no delegation, no planning, its own bundle; the sandbox only where its skill declares it."""
    files = file_tools(Bundle(subagent.name, subagent.files))
    sandbox = []
    if BuiltinTool.EVAL in subagent.builtins:
        own = interpreter_middleware(
            bridges=files.tools, dispatch=None, cache_folder=workshop.cache, redact=tools.redact
        )
        sandbox = [own]
    return [
        files,
        Summaries(chat, subagent.prompt),
        ToolCalls(rules(subagent.tools, files, *sandbox), redact=tools.redact, subagent=True),
        *sandbox,
        *joined(
            [
                Discreet(tools.redact),
                Nameless(),
                OwnPrompt(subagent.prompt),
                LastReport(),
                CutReports(),
                Unanswered(),
                MalformedCalls(),
            ],
            workshop.added(subagent.name),
            [Surroundings()],
        ),
    ]


def file_tools(bundle: Bundle | None = None) -> FileCalls:
    """Exactly the six file tools, on the turn's files."""
    names: list[FsToolName] = [*FILE_TOOLS]  # type: ignore[list-item]  # a tuple of them
    return FileCalls(
        backend=TurnBackend(bundle),
        tools=names,
        custom_tool_descriptions=prompts.FILE_TOOLS,
        offload_binary_content=True,
    )


def rules(own: Mapping[str, AgentTool], files: Middleware, *more: Middleware) -> Mapping[str, AgentTool]:
    """The rules of an agent's tools by name: declared ones, and those of the runtime's own that must not run twice.

    Reading tools, `task` and `ask_user` have none: they change nothing, or ask before they do.
    """
    built_in = {tool.name: tool for middleware in (files, *more) for tool in getattr(middleware, "tools", ())}
    unrepeatable = {name: AgentTool(tool=built_in[name]) for name in (*WRITING, EVAL) if name in built_in}
    return {**own, **unrepeatable}


def conversation_middleware(chat: BaseChatModel) -> Sequence[Middleware]:
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
