# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""The tool `task`, and compiled subagents that are kept: one more skill is one more graph to build, not all of them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from deepagents.backends import StateBackend
from deepagents.graph import DeepAgentState
from deepagents.middleware.subagents import (
    CompiledSubAgent,
    SubAgent,
    SubAgentMiddleware,
    TaskToolSchema,
    create_sub_agent,
)
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field

from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ROSTER, Subagent

MAX_SUBAGENTS_KEPT = 512
"""Compiled subagents in memory, of all models together; the one that was used longest ago goes first."""

Parts: TypeAlias = "tuple[list[BaseTool], list[AgentMiddleware[Any, Any, Any]]]"


class TaskArguments(TaskToolSchema):
    """What `task` is called with. DeepAgents' own words for it ask for briefings and output formats."""

    description: str = Field(description=prompts.TASK_ARGUMENTS["description"])
    subagent_type: str = Field(description=prompts.TASK_ARGUMENTS["subagent_type"])


class Delegation(SubAgentMiddleware):
    """DeepAgents' middleware with subagents that are compiled already, and with words of our own."""

    # The prompt is our own: nothing is appended to it, and no call of the model goes through here.
    wrap_model_call = AgentMiddleware.wrap_model_call  # type: ignore[assignment]
    awrap_model_call = AgentMiddleware.awrap_model_call  # type: ignore[assignment]

    def __init__(self, subagents: Sequence[Subagent], runnables: Mapping[str, Runnable[Any, Any]]) -> None:
        specs = [
            CompiledSubAgent(name=each.name, description=each.description, runnable=runnables[each.name])
            for each in subagents
        ]
        super().__init__(backend=StateBackend(), subagents=specs, task_description=_as_is(specs))
        self._describe()

    @property
    def name(self) -> str:
        return "SubAgentMiddleware"

    @property
    def private_state_keys(self) -> frozenset[str]:
        """Channels that no subagent is handed; `create_deep_agent` says which."""
        return self._private_state_keys

    @private_state_keys.setter
    def private_state_keys(self, value: frozenset[str]) -> None:
        before = self.tools[0]
        cast("Any", SubAgentMiddleware.private_state_keys).fset(self, value)
        self._describe()
        # Whoever was handed the tool already (the sandbox) goes on with the one that knows the channels.
        cast("Any", before).coroutine, cast("Any", before).func = (
            cast("Any", self.tools[0]).coroutine,
            cast("Any", self.tools[0]).func,
        )

    def _describe(self) -> None:
        self.tools[0].args_schema = TaskArguments
        self.tools[0].metadata = {ROSTER: self.subagent_names}


def _as_is(specs: Sequence[CompiledSubAgent]) -> str:
    """The description with the roster in it: descriptions may hold braces, and DeepAgents formats what it is given."""
    listed = "\n".join(f"- {spec['name']}: {' '.join(spec['description'].split())}" for spec in specs)
    return prompts.TASK.replace("{available_agents}", listed).replace("{available_agents", "{ available_agents")


class SubagentShelf:
    """Compiled subagents by what they are made of. Used in the builder's thread alone."""

    def __init__(self, kept: int = MAX_SUBAGENTS_KEPT) -> None:
        self._limit = kept
        self._kept: OrderedDict[tuple[Any, ...], tuple[Runnable[Any, Any], object]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def runnable(self, chat: BaseChatModel, subagent: Subagent, parts: Callable[[], Parts]) -> Runnable[Any, Any]:
        """The subagent's graph; `parts` makes its tools and middleware where it has to be built."""
        key = (
            id(chat),
            subagent.name,
            subagent.prompt,
            subagent.builtins,
            tuple((id(tool.tool), tool.approval, tool.repeatable) for tool in subagent.tools.values()),
            _digest(subagent.files),
        )
        known = self._kept.get(key)
        if known is None:
            tools, middleware = parts()
            spec = SubAgent(
                name=subagent.name,
                description=subagent.description,
                system_prompt=subagent.prompt,
                model=chat,
                tools=tools,
                middleware=middleware,
            )
            # With the model and the tools, so that their ids stay their own.
            held = (chat, tuple(tool.tool for tool in subagent.tools.values()))
            known = self._kept[key] = (create_sub_agent(spec, state_schema=DeepAgentState), held)
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return known[0]


def _digest(files: Mapping[str, bytes]) -> str:
    made = hashlib.sha256()
    for path, content in sorted(files.items()):
        made.update(f"{len(path)} {path} {len(content)} ".encode() + content)
    return made.hexdigest()
