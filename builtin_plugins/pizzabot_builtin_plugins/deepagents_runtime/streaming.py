# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Opening LangGraph's v3 event stream of a turn, with the transformers that the normaliser relies on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from langchain_core._api import suppress_langchain_beta_warning
from langchain_core.runnables import RunnableConfig
from langgraph.graph.state import CompiledStateGraph
from langgraph.stream import ProtocolEvent, StreamTransformer
from langgraph.stream.run_stream import AsyncGraphRunStream
from langgraph.stream.transformers import CheckpointsTransformer, CustomTransformer

from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools
from pizzabot_hookspecs.wire import Namespace


class TaskIndex(StreamTransformer):
    """Where each tool call runs: LangGraph's `tools` frames name the graph's namespace, clients need the task's own.

    Sees `tasks` events, which the built-in transformers keep to themselves; a task's input is a list of tool calls or
    `{"tool_call": …}` (wire.md §9 row 5). An entry lives until its call is finished.
    """

    required_stream_modes: ClassVar[tuple[str, ...]] = ("tasks",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self.by_call: dict[str, Namespace] = {}

    def init(self) -> dict[str, Any]:
        return {}

    def process(self, event: ProtocolEvent) -> bool:
        if event["method"] == "tasks" and not self.scope:
            params = event["params"]
            task = params["data"]
            for call in _tool_calls(task.get("input")):
                self.by_call[call] = (*params["namespace"], f"{task['name']}:{task['id']}")
        return True


def _tool_calls(task_input: object) -> list[str]:
    if isinstance(task_input, Mapping):
        task_input = [task_input.get("tool_call")]
    if not isinstance(task_input, list):
        return []
    calls = (call.get("id") for call in task_input if isinstance(call, Mapping) and call.get("type") == "tool_call")
    return [call for call in calls if isinstance(call, str)]


async def open_stream(
    graph: CompiledStateGraph[Any, Any, Any, Any],
    graph_input: Any,
    config: RunnableConfig,
    *,
    tools: TurnTools | None = None,
) -> tuple[AsyncGraphRunStream, TaskIndex]:
    """The events of one execution and the index of its tool calls. Nothing runs until the stream is iterated.

    A step begins when the last one is stored (`sync`): a tool must not run for a call that a crash would take back, for
    then nobody could say what the intent was about, and the model would make the call again.
    """
    index = TaskIndex()
    # v3 is marked beta; the version is pinned and tests/contract/runtime holds its shapes. Silenced here and only here.
    with suppress_langchain_beta_warning():
        stream = await graph.astream_events(
            graph_input,
            config,
            version="v3",
            context=tools,
            durability="sync",
            transformers=[
                CheckpointsTransformer,
                CustomTransformer,
                lambda scope: index if scope == () else TaskIndex(scope),
            ],
        )
    return stream, index
