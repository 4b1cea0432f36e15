"""The shelf of compiled graphs: built one at a time in one thread, a bounded number kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from pizzabot_builtin_plugins.deepagents_runtime.abilities import calls_tools
from pizzabot_builtin_plugins.deepagents_runtime.loading import quick_switching

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
    from pizzabot_hookspecs.agent_runtimes import ChosenModel

    Graph: TypeAlias = CompiledStateGraph[Any, Any, Any, Any]

Key: TypeAlias = tuple[str, bool, bool, int, str]


class Build(Protocol):
    def __call__(self, model: ChosenModel, /, *, going_on: bool, tools: ToolSet) -> Graph: ...


class GraphShelf:
    """One graph per model and tool set: the model's id, whether it calls tools, and the very object that the host built
    for it; the key of the tool set. A turn under way keeps its graph, whatever becomes of it here.

    A model without tools has a second one for turns that go on from a checkpoint (`build_graph`).

    Building in parallel made the loop wait 169 ms; one builder thread 2.5 ms (measured; architecture §6).
    """

    def __init__(self, build: Build, *, builder: Executor, kept: int) -> None:
        self._build = build
        self._builder = builder
        self._limit = kept
        self._kept: OrderedDict[Key, Graph] = OrderedDict()
        self._building: dict[Key, asyncio.Future[Graph]] = {}
        self._latest: ChosenModel | None = None
        self._ahead: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._kept)

    async def graph(self, model: ChosenModel, tools: ToolSet, *, going_on: bool = False) -> Graph:
        """The graph for `model`, built when it is not there. Whoever stops waiting does not stop the others' wait."""
        self._latest = model
        able = calls_tools(model)
        # A kept graph holds its chat model, so the object's id cannot be taken by another one meanwhile.
        key = (model.id, able, going_on and not able, id(model.chat), tools.key)
        kept = self._kept.get(key)
        if kept is not None:
            self._kept.move_to_end(key)
            return kept
        building = self._building.get(key)
        if building is None:
            building = self._building[key] = asyncio.ensure_future(self._add(key, model, tools, going_on=going_on))
        return await asyncio.shield(building)

    def get_ready(self, tools: Callable[[], ToolSet]) -> None:
        """The tool set is another one: build the graph of the model that was used last before its next turn needs it.

        Several changes that come while one is built are built as one.
        """
        if self._latest is not None and self._ahead is None:
            self._ahead = asyncio.ensure_future(self._build_ahead(tools))

    async def _build_ahead(self, tools: Callable[[], ToolSet]) -> None:
        built: str | None = None
        try:
            while self._latest is not None and (wanted := tools()).key != built:
                with suppress(Exception):  # the turn that needs the graph says what is wrong with it
                    await self.graph(self._latest, wanted)
                built = wanted.key
        finally:
            self._ahead = None

    async def _add(self, key: Key, model: ChosenModel, tools: ToolSet, *, going_on: bool) -> Graph:
        build = partial(self._build_quietly, model, tools, going_on=going_on)
        try:
            graph = await asyncio.get_running_loop().run_in_executor(self._builder, build)
        finally:
            del self._building[key]
        self._kept[key] = graph
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)
        return graph

    def _build_quietly(self, model: ChosenModel, tools: ToolSet, *, going_on: bool) -> Graph:
        with quick_switching():
            return self._build(model, going_on=going_on, tools=tools)
