# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""A model that says one word: for the graph that only reads state, and for the turn that warms the code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import Runnable
from langgraph.checkpoint.memory import InMemorySaver

from pizzabot_builtin_plugins.deepagents_runtime.graph_building import build_agent
from pizzabot_builtin_plugins.deepagents_runtime.middleware import Workshop
from pizzabot_builtin_plugins.deepagents_runtime.normaliser import Normaliser
from pizzabot_builtin_plugins.deepagents_runtime.streaming import open_stream
from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import thread_config
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from pizzabot_builtin_plugins.deepagents_runtime.graphs import Graph


class Ready(FakeListChatModel):
    """Takes tools and calls none."""

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Runnable[Any, AIMessage]:
        del tools, more
        return self


def build_reader(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """A graph with every channel and node that a thread's checkpoints may name. Its model is never called."""
    return build_agent(Ready(responses=["ready"]), ToolSet(), Workshop(), checkpointer)


async def hold_a_turn() -> None:
    """One text turn through graph, stream and normaliser, kept nowhere."""
    graph = build_reader(InMemorySaver())
    said = {"messages": [HumanMessage("ready?", id="warm-up")]}
    stream, tasks = await open_stream(graph, said, thread_config("warm-up"))
    normaliser = Normaliser(tasks.by_call)
    async for event in stream:
        list(normaliser.feed(event))
    normaliser.close()
