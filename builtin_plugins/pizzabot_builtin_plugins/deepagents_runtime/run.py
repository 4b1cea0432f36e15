"""A turn in progress: waits for the graph, iterates it, and ends it when it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pizzabot_builtin_plugins.deepagents_runtime.graphs import GraphShelf
from pizzabot_hookspecs.agent_runtimes import Turn
from pizzabot_hookspecs.wire import Frame

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.stream.run_stream import AsyncGraphRunStream
    from langgraph.types import StateSnapshot

    from pizzabot_builtin_plugins.deepagents_runtime.graphs import Graph
    from pizzabot_builtin_plugins.deepagents_runtime.normaliser import Normaliser
    from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import ThreadMemory

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What `prepare` leaves behind. `reader` knows every channel and is used where no turn's own graph is at hand."""

    graphs: GraphShelf
    checkpointer: BaseCheckpointSaver[Any]
    reader: Graph


@dataclass(kw_only=True)
class Work:
    """What a turn works with once its graph is there. `stream` is set from the moment that the model may be called."""

    graph: Graph
    memory: ThreadMemory
    normaliser: Normaliser
    said: list[BaseMessage]
    stream: AsyncGraphRunStream | None = None
    settlement: asyncio.Future[StateSnapshot | None] | None = None


class GraphRun:
    """An `AgentRun`. The consumer's iteration drives the graph; without a consumer there is no progress."""

    def __init__(self, turn: Turn, ready: Callable[[], Coroutine[Any, Any, Engine]]) -> None:
        self._turn = turn
        self._ready = ready
        self._taken = False
        self._over = False
        self._stopping = asyncio.Event()
        self._work: Work | None = None

    def __aiter__(self) -> AsyncIterator[Frame]:
        if self._taken:
            raise RuntimeError(f"run {self._turn.run_id} is iterated once")
        self._taken = True
        return self._frames()

    async def stop(self) -> None:
        self._stopping.set()
        work = self._work
        if work is None or work.stream is None or self._over:
            return  # the iteration has not reached the model and will not, or it has ended
        await work.stream.abort()
        await self._settle(work)

    async def _frames(self) -> AsyncIterator[Frame]:
        engine = await self._unless_stopped(self._ready())
        if engine is None:
            return
        graph = await self._unless_stopped(engine.graphs.graph(self._turn.model))
        work = self._work = self._begin(graph or engine.reader)
        if not self._stopping.is_set():
            async with aclosing(self._execution(work)) as frames:
                async for frame in frames:
                    yield frame
        if self._stopping.is_set() and not self._over:
            self._over = True
            for frame in _ending(work, await self._settle(work)):
                yield frame

    def _begin(self, graph: Graph) -> Work:
        from pizzabot_builtin_plugins.deepagents_runtime.inputs import to_graph
        from pizzabot_builtin_plugins.deepagents_runtime.normaliser import Normaliser
        from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import ThreadMemory

        return Work(
            graph=graph,
            memory=ThreadMemory(graph, self._turn.thread_id),
            normaliser=Normaliser(),
            said=to_graph(self._turn.messages),
        )

    async def _execution(self, work: Work) -> AsyncGenerator[Frame, None]:
        """The frames of the graph's own work; ends early, without closing frames, once `stop` was called."""
        from pizzabot_builtin_plugins.deepagents_runtime.streaming import open_stream

        fork = self._turn.config.get("checkpoint_id")
        entry = await work.memory.entry(
            work.said, recover=self._turn.recover, checkpoint_id=fork if isinstance(fork, str) else None
        )
        if entry.finished is not None:
            self._over = True
            for frame in _ending(work, entry.finished):
                yield frame
            return
        work.stream, tasks = await open_stream(work.graph, entry.graph_input, entry.config)
        work.normaliser.tool_namespaces = tasks.by_call
        async with aclosing(self._streamed(work, work.stream)) as frames:
            async for frame in frames:
                yield frame

    async def _streamed(self, work: Work, stream: AsyncGraphRunStream) -> AsyncGenerator[Frame, None]:
        try:
            if not self._stopping.is_set():
                async for event in stream:
                    if self._stopping.is_set():
                        break
                    for frame in work.normaliser.feed(event):
                        yield frame
        except Exception:
            self._over = True
            for frame in work.normaliser.close():
                yield frame
            raise
        finally:
            await stream.abort()
        if not self._stopping.is_set():
            self._over = True
            for frame in work.normaliser.close():
                yield frame

    async def _settle(self, work: Work) -> StateSnapshot | None:
        """Store what a stopped turn leaves behind: once, whoever comes first, and to the end even if that one goes."""
        if work.settlement is None:
            streamed, results = list(work.normaliser.said.values()), work.normaliser.results
            settling = work.memory.settle(work.said, streamed=streamed, results=results)
            work.settlement = asyncio.ensure_future(settling)
        return await asyncio.shield(work.settlement)

    async def _unless_stopped(self, work: Awaitable[T]) -> T | None:
        """The result of `work`, or None when `stop` is called first."""
        task = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(self._stopping.wait())
        try:
            await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            stopping.cancel()
            task.cancel()


def _ending(work: Work, snapshot: StateSnapshot | None) -> list[Frame]:
    """The last frames of a turn that did not end by itself: what its checkpoint holds now."""
    from pizzabot_builtin_plugins.deepagents_runtime.snapshots import snapshot_envelope

    if snapshot is None:
        return []
    return work.normaliser.settled(snapshot_envelope(snapshot), snapshot.values)
