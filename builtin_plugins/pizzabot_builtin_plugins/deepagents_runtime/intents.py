# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""Intents are closed when the result of their call is durable, not when it is there.

Closed before, a process that dies in between has neither intent nor result, and its successor runs the tool again.
LangGraph stores a finished call as a pending write, long before the superstep's checkpoint where a sibling is slow or
waits for a person; so the saver is where it can be known. A process that dies between the write and the closing leaves
an open intent whose result is stored: `ThreadMemory.settled_calls` knows those.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Coroutine, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig

from pizzabot_hookspecs.support.patience import patiently

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools

T = TypeVar("T")


class IntentLedger:
    """The open intents of all turns under way, by thread and call, and what is being stored for each thread."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], TurnTools] = {}
        self._storing: dict[str, set[asyncio.Future[Any]]] = {}

    def add(self, turn: TurnTools, call_id: str) -> None:
        self._open[turn.thread_id, call_id] = turn

    def remove(self, turn: TurnTools, call_id: str) -> None:
        if self._open.get((turn.thread_id, call_id)) is turn:
            del self._open[turn.thread_id, call_id]

    async def store(self, config: RunnableConfig, storing: Coroutine[Any, Any, T]) -> T:
        """The result of `storing`, which a cancellation waits for."""
        thread_id = config["configurable"]["thread_id"]
        task = asyncio.ensure_future(storing)
        self._storing.setdefault(thread_id, set()).add(task)
        task.add_done_callback(partial(self._no_longer, thread_id))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise

    async def at_rest(self, thread_id: str) -> None:
        """Wait until nothing is being stored for the thread: a run that was aborted leaves writes behind."""
        await asyncio.sleep(0)  # what was started last has not begun yet
        while under_way := self._storing.get(thread_id):
            await asyncio.wait(set(under_way))
            await asyncio.sleep(0)

    def _no_longer(self, thread_id: str, task: asyncio.Future[Any]) -> None:
        under_way = self._storing[thread_id]
        under_way.discard(task)
        if not under_way:
            del self._storing[thread_id]

    async def stored(self, thread_id: str, writes: Sequence[tuple[str, Any]]) -> None:
        """Close the intents of the calls whose results are in `writes`."""
        for result in results_in(writes):
            turn = self._open.get((thread_id, result.tool_call_id))
            if turn is not None:
                await turn.close(result.tool_call_id)


def results_in(writes: Sequence[tuple[str, Any]]) -> Iterator[ToolMessage]:
    """The tool results among the writes of a task."""
    for _, value in writes:
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, ToolMessage):
                yield item


def telling(saver: BaseCheckpointSaver[Any], ledger: IntentLedger) -> BaseCheckpointSaver[Any]:
    """The same saver, over the same connection, that tells `ledger` of every write once it is stored.

    A copy with a class of its own: a saver is much more than its documented methods (each has fast paths that graphs
    look for), and what a wrapper leaves out is missing without a word.

    A storage that fails for a while is tried again: the result of a tool that has run must not be lost to a full disk.
    What it began to store it stores to the end: a cancelled run would leave a transaction open on the connection that
    all runs share, and with it the file locked.
    """

    class Telling(type(saver)):  # type: ignore[misc]
        async def aput(self, config: RunnableConfig, *more: Any, **kwargs: Any) -> RunnableConfig:
            put = super().aput
            return await ledger.store(config, patiently(lambda: put(config, *more, **kwargs)))

        async def aput_writes(
            self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
        ) -> None:
            put_writes = super().aput_writes
            await ledger.store(config, patiently(lambda: put_writes(config, writes, task_id, task_path)))
            await ledger.stored(config["configurable"]["thread_id"], writes)

    told = copy.copy(saver)
    told.__class__ = Telling
    return told
