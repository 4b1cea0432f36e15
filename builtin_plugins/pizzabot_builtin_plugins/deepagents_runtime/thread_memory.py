# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""A thread's checkpoints: what they hold, where a turn enters them, and how a stopped turn is brought to an end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import END, START
from langgraph.types import Command, StateSnapshot, StateUpdate

from pizzabot_builtin_plugins.deepagents_runtime.answering import Answers, answers_to
from pizzabot_builtin_plugins.deepagents_runtime.open_calls import (
    answers_for_open_calls,
    messages_of,
    stored_results,
    unfinished_results,
)
from pizzabot_builtin_plugins.deepagents_runtime.open_messages import OpenMessage
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import TASK
from pizzabot_hookspecs import InvalidRequest, NotFound

if TYPE_CHECKING:
    from langgraph.graph.state import CompiledStateGraph

    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
    from pizzabot_hookspecs.agent_runtimes import Turn

RUN_ID = "pizzabot_run_id"
"""Key in a checkpoint's metadata: the run that wrote it."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Where a turn begins.

    `finished` is the state of a turn that has nothing left to do; nothing is run then. `settled` are calls of the step
    that a crash interrupted and that have their result: they will not run again.
    """

    graph_input: Any
    config: RunnableConfig
    finished: StateSnapshot | None = None
    answers: Answers = field(default_factory=Answers)
    settled: Collection[str] = ()


class ThreadMemory:
    """The checkpoints of one thread, through a graph that knows their channels."""

    def __init__(
        self,
        graph: CompiledStateGraph[Any, Any, Any, Any],
        thread_id: str,
        *,
        run_id: str | None = None,
        fork: str | None = None,
    ) -> None:
        """`fork` is the checkpoint that the run begins on, where that is not the newest."""
        self._graph = graph
        self._fork_of = fork
        self._config = thread_config(thread_id, run_id=run_id)
        self._thread_id = thread_id
        self._run_id = run_id

    async def snapshot(self, checkpoint_id: str | None = None) -> StateSnapshot | None:
        """The newest state or that of `checkpoint_id`; None where there is no such checkpoint."""
        snapshot = await self._graph.aget_state(thread_config(self._thread_id, checkpoint_id))
        return snapshot if snapshot.created_at is not None else None

    async def entry(self, turn: Turn, said: Sequence[BaseMessage], tools: ToolSet) -> Entry:
        """How to begin: with what was said, with the answers to what was asked, or just on from the checkpoint.

        Raises `InvalidRequest` `no_such_checkpoint`, `nothing_to_continue` for a turn without messages on a thread
        without state, `answers_with_messages`, and what `answers_to` raises.
        """
        if turn.answers:
            if said:
                detail = f"run {turn.run_id} answers interrupts and says something; an answer goes on without messages"
                raise InvalidRequest("answers_with_messages", detail)
            return await self._answering(turn, tools)
        if self._fork_of is not None:
            return await self._fork(said, self._fork_of, recover=turn.recover)
        if said and not turn.recover:
            return Entry(graph_input={"messages": list(said)}, config=self._config)
        return await self._onward(await self.snapshot(), said)

    async def untold(self, told: Collection[str], said: Sequence[BaseMessage]) -> list[BaseMessage]:
        """What the turn has answered and `told` does not name, in order: answers behind the last one that is told, and
        results of calls. What a stop has cut off counts as told: it is no more than its stream was."""
        snapshot, _ = await self._begun_on()
        messages = messages_of(snapshot)
        if not {message.id for message in said} <= {message.id for message in messages}:
            return []  # the turn had not begun: all answers are those of earlier ones
        found: list[BaseMessage] = []
        for message in reversed(messages):
            if isinstance(message, ToolMessage):
                if message.tool_call_id not in told:
                    found.append(message)
            elif not isinstance(message, AIMessage) or message.id in told:
                break
            elif not message.response_metadata.get("cancelled"):
                found.append(message)
        return found[::-1]

    async def settled_calls(self, call_ids: Collection[str]) -> frozenset[str]:
        """Those of `call_ids` that have a stored result, in the thread or in a subagent that is at work."""
        snapshot = await self.snapshot()
        if snapshot is None:
            return frozenset()
        known = stored_results(snapshot)
        if not known.issuperset(call_ids):
            known |= await unfinished_results(self._checkpointer, snapshot)
        return frozenset(call_ids) & known

    async def called(self) -> frozenset[str]:
        """The subagents that the last answer has called and that have not reported yet."""
        messages = messages_of(await self.snapshot())
        answer = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
        if answer is None:
            return frozenset()
        known = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
        return frozenset(
            str(call["args"].get("subagent_type"))
            for call in answer.tool_calls
            if call["name"] == TASK and call["id"] not in known
        )

    async def _answering(self, turn: Turn, tools: ToolSet) -> Entry:
        newest = await self.snapshot()
        answers = answers_to(
            () if newest is None else newest.interrupts, turn.answers, tools=tools, consumed=turn.recover
        )
        if newest is None or not answers.resume:  # every answer was consumed before the process died
            return await self._onward(newest, ())
        return Entry(
            graph_input=Command(resume=answers.resume),
            config=self._config,
            answers=answers,
            settled=await unfinished_results(self._checkpointer, newest),
        )

    async def _onward(self, newest: StateSnapshot | None, said: Sequence[BaseMessage]) -> Entry:
        known = {message.id for message in messages_of(newest)}
        if missing := [message for message in said if message.id not in known]:
            return Entry(graph_input={"messages": missing}, config=self._config)
        if newest is None:
            detail = f"thread {self._thread_id!r} has no state to go on from, and the turn says nothing; send a message"
            raise InvalidRequest("nothing_to_continue", detail)
        # Never with the checkpoint's id in the configuration: LangGraph would then repeat tasks that are done.
        return Entry(
            graph_input=None,
            config=self._config,
            # A step whose tasks all have their results and that was not stored yet has no `next`, but still its tasks.
            finished=None if newest.next or newest.tasks else newest,
            settled=await unfinished_results(self._checkpointer, newest),
        )

    async def _fork(self, said: Sequence[BaseMessage], checkpoint_id: str, *, recover: bool) -> Entry:
        if recover:
            newest = await self.snapshot()
            if self._is_of_this_run(newest):
                return await self._onward(newest, said)  # the fork had begun; it is the thread's newest state now
        origin = await self.snapshot(checkpoint_id)
        if origin is None:
            detail = f"thread {self._thread_id!r} has no checkpoint {checkpoint_id!r}"
            raise InvalidRequest("no_such_checkpoint", detail)
        config = thread_config(self._thread_id, checkpoint_id, run_id=self._run_id)
        if said:
            return Entry(graph_input={"messages": list(said)}, config=config)
        if origin.next:
            return Entry(graph_input=None, config=config)
        await self.go_to(checkpoint_id)
        return Entry(graph_input=None, config=config, finished=await self.snapshot())

    async def go_to(self, checkpoint_id: str) -> str:
        """Make the state of an earlier checkpoint the newest one; the id of its copy.

        Nothing waits there: a step that was not finished is closed as `settle` does. Raises `NotFound`
        `no_such_checkpoint`.
        """
        config = thread_config(self._thread_id, checkpoint_id, run_id=self._run_id)
        if await self._checkpointer.aget_tuple(config) is None:
            raise NotFound("no_such_checkpoint", f"thread {self._thread_id!r} has no checkpoint {checkpoint_id!r}")
        copied = await self._graph.abulk_update_state(config, [[StateUpdate(None, "__copy__")]])
        newest = await self.snapshot()
        if newest is None or not newest.next:
            return str(copied["configurable"]["checkpoint_id"])
        left = await self.settle((), streamed=(), results={}, told={})
        return _id_of(left or newest)

    async def settle(
        self,
        said: Sequence[BaseMessage],
        *,
        streamed: Iterable[OpenMessage],
        results: Mapping[str, ToolMessage],
        told: Mapping[str, str],
    ) -> StateSnapshot | None:
        """Bring a stopped turn to its end and return the state then.

        What the person said stays, text that was streamed stays as a message marked `cancelled`, every open tool call
        gets a result (its own, where it had finished: `results` are those that there are, stored or not; else its text
        in `told`, if it has one), and no step is left.
        """
        snapshot, config = await self._begun_on()
        messages = messages_of(snapshot)
        known = {message.id for message in messages}
        steps: list[list[StateUpdate]] = []
        if unheard := [message for message in said if message.id not in known]:
            steps.append([StateUpdate({"messages": unheard}, START)])
        if answers := answers_for_open_calls(messages, results, told=told):
            steps.append([StateUpdate({"messages": answers}, "tools" if "tools" in self._graph.nodes else "model")])
        steps.extend(
            [StateUpdate({"messages": [cut_off(message)]}, "model")]
            for message in streamed
            if message.at_root and message.id not in known and message.text
        )
        if steps or (snapshot is not None and (snapshot.next or await self._has_pending_writes(snapshot))):
            steps.append([StateUpdate(None, END)])
            await self._graph.abulk_update_state(config, steps)
        return await self.snapshot()

    async def _begun_on(self) -> tuple[StateSnapshot | None, RunnableConfig]:
        """The state that the run is in: the newest, unless it is a fork that has stored nothing yet."""
        newest = await self.snapshot()
        if self._fork_of is None or self._is_of_this_run(newest):
            return newest, self._config
        origin = await self.snapshot(self._fork_of)
        if origin is None:  # nothing can begin on it; the thread is as it was
            return newest, self._config
        return origin, thread_config(self._thread_id, self._fork_of, run_id=self._run_id)

    def _is_of_this_run(self, snapshot: StateSnapshot | None) -> bool:
        return snapshot is not None and (snapshot.metadata or {}).get(RUN_ID) == self._run_id

    async def _has_pending_writes(self, snapshot: StateSnapshot) -> bool:
        """Whether the state shows what only an unfinished step has written: the next message would discard it."""
        saved = await self._checkpointer.aget_tuple(snapshot.config)
        return saved is not None and bool(saved.pending_writes)

    async def withdraw(self, said: Sequence[BaseMessage]) -> StateSnapshot | None:
        """Take back what was said and cannot be answered: a message that does not fit would fail every later turn too.

        Only where nothing came after it; the state then, None where nothing was taken back. The person's log still has
        it.
        """
        messages = messages_of(await self.snapshot())
        ids = [message.id for message in said]
        if not ids or [message.id for message in messages[-len(ids) :]] != ids:
            return None
        gone = StateUpdate({"messages": [RemoveMessage(id=str(name)) for name in ids]}, "model")
        await self._graph.abulk_update_state(self._config, [[gone], [StateUpdate(None, END)]])
        return await self.snapshot()

    @property
    def _checkpointer(self) -> Any:
        return self._graph.checkpointer


def _id_of(snapshot: StateSnapshot) -> str:
    return str(snapshot.config["configurable"]["checkpoint_id"])


def cut_off(message: OpenMessage) -> AIMessage:
    """The part of an answer that was streamed, under the id it was streamed with."""
    return AIMessage(content="".join(message.text), id=message.id, response_metadata={"cancelled": True})


def thread_config(
    thread_id: str, checkpoint_id: str | None = None, *, namespace: str = "", run_id: str | None = None
) -> RunnableConfig:
    configurable = {"thread_id": thread_id, "checkpoint_ns": namespace}
    if checkpoint_id is not None:
        configurable["checkpoint_id"] = checkpoint_id
    return {"configurable": configurable, "metadata": {} if run_id is None else {RUN_ID: run_id}}
