# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Building graphs: a plain conversation for models without tool calling, a deep agent for the rest.

Both keep messages in the same channel (`DeepAgentState`), so that a thread may change its model between turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deepagents import create_deep_agent
from deepagents.graph import DeepAgentState
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel

from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_builtin_plugins.deepagents_runtime.abilities import calls_tools
from pizzabot_builtin_plugins.deepagents_runtime.attachments import Inlined
from pizzabot_builtin_plugins.deepagents_runtime.compaction import Remembered
from pizzabot_builtin_plugins.deepagents_runtime.joined import Joined
from pizzabot_builtin_plugins.deepagents_runtime.middleware import (
    ASKED,
    Workshop,
    agent_middleware,
    agent_tools,
    conversation_middleware,
)
from pizzabot_builtin_plugins.deepagents_runtime.model_requests import Discreet, Nameless, OwnPrompt

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from pizzabot_builtin_plugins.deepagents_runtime.graphs import Graph
    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
    from pizzabot_hookspecs.agent_runtimes import ChosenModel
    from pizzabot_hookspecs.model_providers import ModelDescriptor


def build_graph(
    model: ChosenModel,
    *,
    going_on: bool = False,
    tools: ToolSet,
    workshop: Workshop,
    checkpointer: BaseCheckpointSaver[Any],
) -> Graph:
    """The graph that answers with `model`. Takes milliseconds to hundreds of them: call it in the builder's thread.

    A turn that is `going_on` may find open tool calls, whoever made them; a plain conversation could not finish them.
    """
    chat = with_known_window(model.chat, model.descriptor)
    if calls_tools(model):
        return build_agent(chat, tools, workshop, checkpointer)
    if going_on:
        return build_agent(chat, tools, workshop, checkpointer, offered=False)
    return build_conversation(chat, tools, checkpointer)


def build_conversation(chat: BaseChatModel, tools: ToolSet, checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Prompt, messages, answer. Nothing of a deep agent: what it adds is for tools that this model cannot call."""
    graph: Graph = create_agent(
        chat,
        middleware=[
            Remembered(),
            Joined(
                ASKED,
                OwnPrompt(None, otherwise=prompts.CONVERSATION),
                *conversation_middleware(chat),
                Discreet(tools.redact),
                Nameless(),
                Inlined(),
            ),
        ],
        state_schema=DeepAgentState,
        checkpointer=checkpointer,
    )
    return graph


def build_agent(
    chat: BaseChatModel,
    tools: ToolSet,
    workshop: Workshop,
    checkpointer: BaseCheckpointSaver[Any],
    *,
    offered: bool = True,
) -> Graph:
    """A deep agent. Without a name: LangChain would write it into every answer, and some providers refuse it there."""
    graph: Graph = create_deep_agent(
        chat,
        tools=agent_tools(tools),
        middleware=agent_middleware(chat, tools, workshop, offered=offered),
        checkpointer=checkpointer,
    )
    return graph


def with_known_window(chat: BaseChatModel, descriptor: ModelDescriptor) -> BaseChatModel:
    """`chat` with the context window that the provider's description knows and the model object does not.

    Summarisation begins at 85 % of it; without one it begins at 170,000 tokens, which a small model never survives.
    A window of 0 (in LangChain's own data for some models) counts as unknown: with it every call would fail.
    """
    profile = dict(chat.profile or {})
    if profile.get("max_input_tokens"):
        return chat
    profile.pop("max_input_tokens", None)
    if descriptor.context_window:
        profile["max_input_tokens"] = descriptor.context_window
    elif profile == (chat.profile or {}):
        return chat
    return chat.model_copy(update={"profile": profile})
