"""A turn in progress: waits for the graph, iterates it, and ends it when it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from pizzabot_builtin_plugins.deepagents_runtime import prompts
from pizzabot_builtin_plugins.deepagents_runtime.abilities import calls_tools
from pizzabot_builtin_plugins.deepagents_runtime.graphs import GraphShelf
from pizzabot_builtin_plugins.deepagents_runtime.team import RosterNews, team_to_go_on_with
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet, ToolSets
from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools
from pizzabot_hookspecs.agent_runtimes import Turn
from pizzabot_hookspecs.errors import RunErrorCode, classify
from pizzabot_hookspecs.wire import Frame

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.stream.run_stream import AsyncGraphRunStream
    from langgraph.types import StateSnapshot

    from pizzabot_builtin_plugins.deepagents_runtime.graphs import Graph
    from pizzabot_builtin_plugins.deepagents_runtime.intents import IntentLedger
    from pizzabot_builtin_plugins.deepagents_runtime.normaliser import Normaliser
    from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import Entry, ThreadMemory

T = TypeVar("T")

TOOLS_SECONDS = 5.0
"""How long a stop waits for tools to be gone: a process group has 2 s after TERM. Below the host's own patience of 8 s.

One that ignores its cancellation goes on unheard; its result is dropped."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What `prepare` leaves behind. `reader` knows every channel and is used where no turn's own graph is at hand."""

    graphs: GraphShelf
    checkpointer: BaseCheckpointSaver[Any]
    reader: Graph
    tools: ToolSets
    news: RosterNews
    ledger: IntentLedger


@dataclass(kw_only=True)
class Work:
    """What a turn works with once its graph is there. `stream` is set from the moment that the model may be called."""

    graph: Graph
    memory: ThreadMemory
    normaliser: Normaliser
    said: list[BaseMessage]
    tools: TurnTools
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
        await self._settle(work)

    async def _frames(self) -> AsyncIterator[Frame]:
        engine = await self._ready()  # a stop does not cut this short: what the person said has to be kept
        tools = await self._unless_stopped(self._team(engine)) or engine.tools.current()
        graph = None if self._turn.settle else await self._unless_stopped(self._graph(engine, tools))
        work = self._work = self._begin(engine, tools, graph or engine.reader)
        if self._turn.recover and self._turn.told is not None:
            missed = await work.memory.untold(self._turn.told, work.said)
            for frame in work.normaliser.tell_again(missed):
                yield frame
        if not self._stopping.is_set() and not self._turn.settle:
            try:
                async with aclosing(self._execution(work, tools)) as frames:
                    async for frame in frames:
                        yield frame
            except Exception as error:
                if classify(error) == RunErrorCode.CONTEXT_LENGTH:
                    for frame in _ending(work, await work.memory.withdraw(work.said)):
                        yield frame
                raise
        if (self._stopping.is_set() or self._turn.settle) and not self._over:
            self._over = True
            for frame in _ending(work, await self._settle(work)):
                yield frame

    async def _team(self, engine: Engine) -> ToolSet:
        turn = self._turn
        if turn.settle or not (turn.recover or turn.answers):
            return engine.tools.current()
        from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import ThreadMemory

        memory = ThreadMemory(engine.reader, turn.thread_id)
        return await team_to_go_on_with(engine.tools.current, engine.news, memory.called)

    async def _graph(self, engine: Engine, tools: ToolSet) -> Graph:
        turn = self._turn
        going_on = turn.recover or not turn.messages
        return await engine.graphs.graph(turn.model, tools, going_on=going_on)

    def _begin(self, engine: Engine, tools: ToolSet, graph: Graph) -> Work:
        from pizzabot_builtin_plugins.deepagents_runtime.inputs import to_graph
        from pizzabot_builtin_plugins.deepagents_runtime.normaliser import Normaliser
        from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import ThreadMemory

        turn = self._turn
        fork = turn.config.get("checkpoint_id")
        memory = ThreadMemory(graph, turn.thread_id, run_id=turn.run_id, fork=fork if isinstance(fork, str) else None)
        return Work(
            graph=graph,
            memory=memory,
            normaliser=Normaliser(redact=tools.redact),
            said=to_graph(turn.messages),
            tools=TurnTools(
                thread_id=turn.thread_id,
                log=turn.intents,
                ledger=engine.ledger,
                files=turn.files,
                settings=turn.settings,
                prompt=_prompt(turn, tools),
                vision=turn.model.descriptor.supports_vision,
            ),
        )

    async def _execution(self, work: Work, tools: ToolSet) -> AsyncGenerator[Frame, None]:
        """The frames of the graph's own work; ends early, without closing frames, once `stop` was called."""
        from pizzabot_builtin_plugins.deepagents_runtime.streaming import open_stream

        entry = await work.memory.entry(self._turn, work.said, tools)
        await self._take_up(work.tools, entry)
        if entry.finished is not None:
            self._over = True
            for frame in _ending(work, entry.finished):
                yield frame
            return
        work.stream, tasks = await open_stream(work.graph, entry.graph_input, entry.config, tools=work.tools)
        work.normaliser.tool_namespaces = tasks.by_call
        async with aclosing(self._streamed(work, work.stream)) as frames:
            async for frame in frames:
                yield frame

    async def _take_up(self, tools: TurnTools, entry: Entry) -> None:
        """Give the tools what the turn says of single calls, and close intents that a crash left behind a result."""
        tools.decided = entry.answers.decided
        tools.skip = {call: text for call, text in self._turn.skip.items() if call not in entry.settled}
        if self._turn.recover:
            for call_id in sorted(entry.settled):
                await self._turn.intents.close(call_id)

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
            for frame in work.normaliser.close(failed=True):
                yield frame
            raise
        finally:
            if not self._stopping.is_set():  # else `_settle` ends the stream, and waits for it
                work.tools.stopping = True
                await self._abort(stream)
                work.tools.leave()
        if not self._stopping.is_set():
            self._over = True
            for frame in work.normaliser.close():
                yield frame

    async def _settle(self, work: Work) -> StateSnapshot | None:
        """End a stopped turn and store what it leaves: once, and to the end even if whoever came first goes."""
        if work.settlement is None:
            work.settlement = asyncio.ensure_future(self._end(work))
        return await asyncio.shield(work.settlement)

    async def _end(self, work: Work) -> StateSnapshot | None:
        from pizzabot_builtin_plugins.deepagents_runtime.tool_calls import BEGUN_RESULT

        work.tools.stopping = True
        if work.stream is not None:
            await self._abort(work.stream)
        streamed = list(work.normaliser.said.values())
        told = {**dict.fromkeys(work.tools.begun, BEGUN_RESULT), **self._turn.skip}
        snapshot = await work.memory.settle(work.said, streamed=streamed, results=work.tools.results, told=told)
        await work.tools.close_all()
        work.tools.release()
        return snapshot

    async def _abort(self, stream: AsyncGraphRunStream) -> None:
        """End the graph. When this returns its tools are gone, or ignore it; nothing of it is still being stored."""
        await asyncio.wait({asyncio.ensure_future(stream.abort())}, timeout=TOOLS_SECONDS)
        if self._work is not None:
            await self._work.tools.ledger.at_rest(self._turn.thread_id)

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


def _prompt(turn: Turn, tools: ToolSet) -> str:
    """The system prompt of the turn's model."""
    persona = turn.settings.persona
    if not calls_tools(turn.model):
        return prompts.with_persona(prompts.CONVERSATION, persona)
    return prompts.agent_prompt(
        specialists=bool(tools.subagents),
        memories=turn.settings.memories and turn.files.memories is not None,
        unready=tools.unready,
        persona=persona,
    )


def _ending(work: Work, snapshot: StateSnapshot | None) -> list[Frame]:
    """The last frames of a turn that did not end by itself: what its checkpoint holds now."""
    from pizzabot_builtin_plugins.deepagents_runtime.snapshots import snapshot_envelope

    if snapshot is None:
        return []
    return work.normaliser.settled(snapshot_envelope(snapshot), snapshot.values)
