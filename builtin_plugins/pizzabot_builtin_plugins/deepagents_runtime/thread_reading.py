"""Reading a thread for clients: the newest state, one checkpoint's, and the history, a subagent's too.

The saver reads on its own readers, so running turns go on; what is computed of it is computed in a thread.
Both decode and compute in Python, so threads switch quickly meanwhile: the loop waits for them 1 ms at a time.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, TypeVar

from pizzabot_builtin_plugins.deepagents_runtime.loading import quick_switching
from pizzabot_builtin_plugins.deepagents_runtime.open_messages import checkpoint_namespace
from pizzabot_builtin_plugins.deepagents_runtime.plain import FlatMessages
from pizzabot_builtin_plugins.deepagents_runtime.read_checkpoints import ReadCheckpoints, read
from pizzabot_builtin_plugins.deepagents_runtime.snapshots import thread_state
from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import thread_config
from pizzabot_hookspecs import NotFound
from pizzabot_hookspecs.wire import Namespace, ThreadState

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from pizzabot_builtin_plugins.deepagents_runtime.graphs import Graph

T = TypeVar("T")


class ThreadReader:
    """Reads through `graph`, which knows every channel and node, and computes in `executor`."""

    def __init__(self, graph: Graph, saver: BaseCheckpointSaver[Any], executor: Executor) -> None:
        self._graph = graph
        self._saver = saver
        self._executor = executor

    async def state(self, thread_id: str, checkpoint_id: str | None = None) -> ThreadState | None:
        """The newest state, or that of `checkpoint_id`; None where there is no such checkpoint."""
        config = thread_config(thread_id, checkpoint_id)
        with quick_switching():
            found = await self._saver.aget_tuple(config)
            if found is None:
                return None
            checkpoints = await read(self._saver, self._graph, [found])
            return await self._compute(lambda: thread_state(self._over(checkpoints).get_state(config)))

    async def history(
        self, thread_id: str, *, limit: int, before: str | None, namespace: Namespace
    ) -> Sequence[ThreadState]:
        """The newest `limit` checkpoints before `before`, newest first. Empty for a thread or a namespace without any.

        The states share the dicts of their messages: nobody may change one. Raises `NotFound` `no_such_checkpoint`.
        """
        config = thread_config(thread_id, namespace=checkpoint_namespace(namespace))
        with quick_switching():
            first = None if before is None else await self._known(config, before)
            tuples = [item async for item in self._saver.alist(config, before=first, limit=limit)]
            checkpoints = await read(self._saver, self._graph, tuples)
            return await self._compute(lambda: self._states(checkpoints, config))

    def _states(self, checkpoints: ReadCheckpoints, config: RunnableConfig) -> Sequence[ThreadState]:
        messages = FlatMessages()  # entries hold the same messages: a long thread's are made flat once
        history = self._over(checkpoints).get_state_history(config)
        return [thread_state(snapshot, messages) for snapshot in history]

    async def _known(self, config: RunnableConfig, checkpoint_id: str) -> RunnableConfig:
        named: RunnableConfig = {"configurable": {**config["configurable"], "checkpoint_id": checkpoint_id}}
        if await self._saver.aget_tuple(named) is None:
            thread_id = config["configurable"]["thread_id"]
            raise NotFound("no_such_checkpoint", f"thread {thread_id!r} has no checkpoint {checkpoint_id!r} there")
        return named

    def _over(self, checkpoints: ReadCheckpoints) -> Graph:
        graph = copy.copy(self._graph)
        graph.checkpointer = checkpoints
        return graph

    async def _compute(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)
