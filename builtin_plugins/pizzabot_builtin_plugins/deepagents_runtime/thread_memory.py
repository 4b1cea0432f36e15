# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""A thread's checkpoints: what they hold, where a turn enters them, and how a stopped turn is brought to an end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import END, START
from langgraph.types import StateSnapshot, StateUpdate

from pizzabot_builtin_plugins.deepagents_runtime.open_messages import OpenMessage
from pizzabot_hookspecs import InvalidRequest

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

CANCELLED_RESULT = "Cancelled by the user."
"""What a tool call that was stopped is answered with, so that the next message finds no open call."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Where a turn begins. `finished` is the state of a turn that has nothing left to do; nothing is run then."""

    graph_input: dict[str, Any] | None
    config: RunnableConfig
    finished: StateSnapshot | None = None


class ThreadMemory:
    """The checkpoints of one thread, through a graph that knows their channels."""

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any], thread_id: str) -> None:
        self._graph = graph
        self._config = thread_config(thread_id)
        self._thread_id = thread_id

    async def snapshot(self, checkpoint_id: str | None = None) -> StateSnapshot | None:
        """The newest state or that of `checkpoint_id`; None where there is no such checkpoint."""
        snapshot = await self._graph.aget_state(thread_config(self._thread_id, checkpoint_id))
        return snapshot if snapshot.created_at is not None else None

    async def entry(self, said: Sequence[BaseMessage], *, recover: bool, checkpoint_id: str | None) -> Entry:
        """How to begin: with what was said, or from the checkpoint when it has that already.

        Raises `InvalidRequest` `no_such_checkpoint`, and `nothing_to_continue` for a turn without messages on a
        thread without state.
        """
        if checkpoint_id is not None:
            return await self._fork(said, checkpoint_id, recover=recover)
        if said and not recover:
            return Entry(graph_input={"messages": list(said)}, config=self._config)
        return self._onward(await self.snapshot(), said)

    def _onward(self, newest: StateSnapshot | None, said: Sequence[BaseMessage]) -> Entry:
        known = set() if newest is None else _ids(newest)
        if missing := [message for message in said if message.id not in known]:
            return Entry(graph_input={"messages": missing}, config=self._config)
        if newest is None:
            detail = f"thread {self._thread_id!r} has no state to go on from, and the turn says nothing; send a message"
            raise InvalidRequest("nothing_to_continue", detail)
        # Never with the checkpoint's id in the configuration: LangGraph would then repeat tasks that are done.
        return Entry(graph_input=None, config=self._config, finished=None if newest.next else newest)

    async def _fork(self, said: Sequence[BaseMessage], checkpoint_id: str, *, recover: bool) -> Entry:
        if recover and said:
            newest = await self.snapshot()
            if newest is not None and {message.id for message in said} <= _ids(newest):
                return self._onward(newest, said)  # the fork had begun; from here on it is the thread's newest state
        origin = await self.snapshot(checkpoint_id)
        if origin is None:
            detail = f"thread {self._thread_id!r} has no checkpoint {checkpoint_id!r}"
            raise InvalidRequest("no_such_checkpoint", detail)
        config = thread_config(self._thread_id, checkpoint_id)
        if said:
            return Entry(graph_input={"messages": list(said)}, config=config)
        return Entry(graph_input=None, config=config, finished=None if origin.next else origin)

    async def settle(
        self, said: Sequence[BaseMessage], *, streamed: Iterable[OpenMessage], results: Mapping[str, ToolMessage]
    ) -> StateSnapshot | None:
        """Bring a stopped turn to its end and return the state then.

        What the person said stays, text that was streamed stays as a message marked `cancelled`, every open tool call
        gets a result (its own, where it had finished: `results` are those that were streamed), and no step is left.
        """
        snapshot = await self.snapshot()
        messages = _messages(snapshot)
        known = {message.id for message in messages}
        steps: list[list[StateUpdate]] = []
        if unheard := [message for message in said if message.id not in known]:
            steps.append([StateUpdate({"messages": unheard}, START)])
        if answers := _open_calls(messages, results):
            steps.append([StateUpdate({"messages": answers}, "tools" if "tools" in self._graph.nodes else "model")])
        steps.extend(
            [StateUpdate({"messages": [cut_off(message)]}, "model")]
            for message in streamed
            if message.at_root and message.id not in known and message.text
        )
        if steps or (snapshot is not None and snapshot.next):
            steps.append([StateUpdate(None, END)])
            await self._graph.abulk_update_state(self._config, steps)
        return await self.snapshot()


def cut_off(message: OpenMessage) -> AIMessage:
    """The part of an answer that was streamed, under the id it was streamed with."""
    return AIMessage(content="".join(message.text), id=message.id, response_metadata={"cancelled": True})


def thread_config(thread_id: str, checkpoint_id: str | None = None) -> RunnableConfig:
    configurable = {"thread_id": thread_id, "checkpoint_ns": ""}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable}


def _messages(snapshot: StateSnapshot | None) -> list[BaseMessage]:
    return [] if snapshot is None else list(snapshot.values.get("messages") or ())


def _ids(snapshot: StateSnapshot) -> set[str | None]:
    return {message.id for message in _messages(snapshot)}


def _open_calls(messages: Sequence[BaseMessage], results: Mapping[str, ToolMessage]) -> list[ToolMessage]:
    """Results for every call of the last answer when one of them has none; those that finished are said again.

    A finished sibling shows in the state only as a pending write, which the next message would discard (probe 02c), and
    for an instant after its frame not even as that.
    """
    answer = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    if answer is None:
        return []
    stored = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    if all(call["id"] in stored for call in answer.tool_calls):
        return []
    finished = {**results, **stored}
    return [
        finished.get(call["id"] or "")
        or ToolMessage(CANCELLED_RESULT, tool_call_id=call["id"] or "", name=call["name"], status="error")
        for call in answer.tool_calls
    ]
