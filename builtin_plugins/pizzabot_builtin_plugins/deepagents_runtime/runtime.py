"""`DeepAgentsRuntime`: prepares the graph stack behind the listener, starts turns, reads and forgets threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pizzabot_builtin_plugins.deepagents_runtime import loading
from pizzabot_builtin_plugins.deepagents_runtime.graphs import GraphShelf
from pizzabot_builtin_plugins.deepagents_runtime.run import Engine, GraphRun
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_builtin_plugins.deepagents_runtime.team import RosterNews
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSets
from pizzabot_hookspecs import Caller, Logger, NotFound, Unavailable
from pizzabot_hookspecs.agent_runtimes import ChosenModel, Compaction, RuntimeServices, Turn
from pizzabot_hookspecs.wire import JsonValue, Namespace, ThreadState

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

    from pizzabot_builtin_plugins.deepagents_runtime.graphs import Graph
    from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import ThreadMemory
    from pizzabot_builtin_plugins.deepagents_runtime.thread_reading import ThreadReader


READERS = 2
"""Threads that make states for clients: one long history does not hold up every other state."""


class DeepAgentsRuntime:
    """An `AgentRuntime` with all capabilities: `KnowsSettledCalls`, `KeepsHistory`, `KeepsBranches`, `CompactsContext`.

    Made in a worker thread, prepared and used on the host's loop, closed as a context manager.
    """

    def __init__(
        self, settings: RuntimeSettings, *, logger: Logger | None = None, redact: Callable[[str], str] = str
    ) -> None:
        loading.set_environment(tracing=settings.tracing)
        self._settings = settings
        self._logger = logger
        self._redact = redact
        self._builder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="graph-builder")
        self._readers = ThreadPoolExecutor(max_workers=READERS, thread_name_prefix="state-reader")
        self._prepared = asyncio.Event()
        self._engine: Engine | None = None
        self._failure: BaseException | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._builder.shutdown(wait=False, cancel_futures=True)
        self._readers.shutdown(wait=False, cancel_futures=True)

    async def prepare(self, services: RuntimeServices, /) -> None:
        try:
            self._engine = await self._build_engine(services)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._prepared.set()

    def start(self, turn: Turn, /) -> GraphRun:
        return GraphRun(turn, self._ready)

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState | None:
        del caller  # the host has checked whose thread it is; checkpoints carry no owner
        return await (await self._reader()).state(thread_id, checkpoint_id)

    async def history(
        self, thread_id: str, /, *, limit: int, before: str | None, namespace: Namespace, caller: Caller
    ) -> Sequence[ThreadState]:
        del caller
        reader = await self._reader()
        return await reader.history(thread_id, limit=limit, before=before, namespace=namespace)

    async def update_state(
        self,
        thread_id: str,
        values: Mapping[str, JsonValue],
        /,
        *,
        as_node: str | None,
        checkpoint_id: str | None,
        caller: Caller,
    ) -> ThreadState:
        del caller
        engine, reader = await self._ready(), await self._reader()
        from pizzabot_builtin_plugins.deepagents_runtime.state_writing import write_state

        written = await write_state(
            engine.reader, engine.checkpointer, thread_id, values, as_node=as_node, checkpoint_id=checkpoint_id
        )
        state = await reader.state(thread_id, written)
        if state is None:
            raise NotFound("no_such_checkpoint", f"thread {thread_id!r} was deleted while its state was written")
        return state

    async def settled_calls(self, thread_id: str, call_ids: Collection[str], /, *, caller: Caller) -> frozenset[str]:
        del caller
        return await (await self._memory(thread_id)).settled_calls(call_ids)

    async def tip(self, thread_id: str, /, *, caller: Caller) -> str | None:
        del caller
        newest = await self._checkpoint(thread_id)
        return None if newest is None else str(newest.config["configurable"]["checkpoint_id"])

    async def has_checkpoint(self, thread_id: str, checkpoint_id: str, /, *, caller: Caller) -> bool:
        del caller
        return await self._checkpoint(thread_id, checkpoint_id) is not None

    async def go_to(self, thread_id: str, checkpoint_id: str, /, *, caller: Caller) -> str:
        del caller
        return await (await self._memory(thread_id)).go_to(checkpoint_id)

    async def copy_thread(self, thread_id: str, checkpoint_id: str, target_id: str, /, *, caller: Caller) -> None:
        del caller
        engine = await self._ready()
        from pizzabot_builtin_plugins.deepagents_runtime.checkpoint_copies import copy_checkpoints

        await copy_checkpoints(engine.checkpointer, thread_id, checkpoint_id, target_id)

    async def compact(self, thread_id: str, model: ChosenModel, /, *, caller: Caller) -> Compaction:
        del caller
        engine = await self._ready()
        from pizzabot_builtin_plugins.deepagents_runtime.compacting import compact

        tools = engine.tools.current()
        return await compact(engine.reader, thread_id, model, tools, await engine.graphs.graph(model, tools))

    async def forget(self, thread_id: str, /, *, caller: Caller) -> None:
        del caller
        engine = await self._ready()
        await engine.checkpointer.adelete_thread(thread_id)

    async def _checkpoint(self, thread_id: str, checkpoint_id: str | None = None) -> CheckpointTuple | None:
        engine = await self._ready()
        from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import thread_config

        return await engine.checkpointer.aget_tuple(thread_config(thread_id, checkpoint_id))

    async def _reader(self) -> ThreadReader:
        engine = await self._ready()
        from pizzabot_builtin_plugins.deepagents_runtime.thread_reading import ThreadReader

        return ThreadReader(engine.reader, engine.checkpointer, self._readers)

    async def _memory(self, thread_id: str) -> ThreadMemory:
        engine = await self._ready()
        from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import ThreadMemory

        return ThreadMemory(engine.reader, thread_id)

    async def _ready(self) -> Engine:
        await self._prepared.wait()
        if self._engine is None:
            detail = f"the agent runtime could not be loaded ({self._failure}); see the log of the start"
            raise Unavailable("runtime_unavailable", detail) from self._failure
        return self._engine

    async def _build_engine(self, services: RuntimeServices) -> Engine:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._builder, loading.load)
        checkpointer = await services.graph_storage.checkpointer()
        # Savers make their tables on first use, and `adelete_thread` does not count as one: do it now, and hear now
        # of a storage that cannot be read.
        await checkpointer.aget_tuple({"configurable": {"thread_id": "pizzabot:prepare", "checkpoint_ns": ""}})
        from pizzabot_builtin_plugins.deepagents_runtime.graph_building import build_graph
        from pizzabot_builtin_plugins.deepagents_runtime.intents import IntentLedger, telling
        from pizzabot_builtin_plugins.deepagents_runtime.middleware import Workshop

        reader = await loop.run_in_executor(self._builder, _warm_up, checkpointer)
        tools = ToolSets(services.roster, logger=self._logger, redact=self._redact)
        ledger = IntentLedger()
        workshop = Workshop(sources=tuple(services.middleware), cache=services.cache)
        build = partial(build_graph, workshop=workshop, checkpointer=telling(checkpointer, ledger))
        graphs = GraphShelf(build, builder=self._builder, kept=self._settings.graphs_kept)
        news = RosterNews()
        services.on_roster_change(partial(graphs.get_ready, tools.current))
        services.on_roster_change(news.tell)
        return Engine(graphs=graphs, checkpointer=checkpointer, reader=reader, tools=tools, news=news, ledger=ledger)


def _warm_up(checkpointer: BaseCheckpointSaver[Any]) -> Graph:
    """Build the reader's graph and hold one turn in memory, so that a person's first turn finds warm code."""
    from pizzabot_builtin_plugins.deepagents_runtime.warming import build_reader, hold_a_turn

    with loading.quick_switching(), loading.no_collections():
        reader = build_reader(checkpointer)
        asyncio.run(hold_a_turn())
    return reader
