"""What a runtime that is a `KeepsHistory` tells of a thread's earlier states, and how a client writes one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    Listener,
    asked,
    conversation,
    frames_of,
    model_of,
    said,
    turn,
)
from pizzabot.testing.scripted_model import Gate, Reply
from pizzabot_hookspecs import LOCAL, InvalidRequest, NotFound
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, ChosenModel, KeepsHistory
from pizzabot_hookspecs.wire import ThreadState

WHOLE = 1000
"""More entries than any thread of these tests has."""


class HistoryContract(RuntimeContract):
    def test_the_history_is_every_state_newest_first_each_with_its_parent(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"), Reply("Two"))
            async with self.runtime(self.new_storage()) as runtime:
                await two_turns(runtime, model)
                states = await history(runtime)
                newest = await runtime.state("thread-1", caller=LOCAL)
            assert json.loads(json.dumps(states, allow_nan=False)) == states
            assert newest is not None
            assert states[0]["values"] == newest["values"]
            assert states[0]["checkpoint"] == newest["checkpoint"]
            assert conversation(states[0]["values"]) == [
                ("human", "first"),
                ("ai", "One"),
                ("human", "second"),
                ("ai", "Two"),
            ]
            ids = ids_of(states)
            assert len(set(ids)) == len(ids)
            assert [parent_of(state) for state in states] == [*ids[1:], None]
            steps: list[Any] = [state["metadata"]["step"] for state in states]
            assert steps == sorted(steps, reverse=True)
            lengths = [len(conversation(state["values"])) for state in states]
            assert lengths == sorted(lengths, reverse=True)

        self.run(scenario())

    def test_every_entry_is_what_the_state_of_its_checkpoint_shows(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"), Reply("Two"))
            async with self.runtime(self.new_storage()) as runtime:
                await two_turns(runtime, model)
                states = await history(runtime)
                for entry, name in zip(states, ids_of(states), strict=True):
                    assert await runtime.state("thread-1", caller=LOCAL, checkpoint_id=name) == entry

        self.run(scenario())

    def test_the_history_is_read_in_pages_from_before_a_checkpoint(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"), Reply("Two"))
            async with self.runtime(self.new_storage()) as runtime:
                await two_turns(runtime, model)
                states = await history(runtime)
                paged: list[ThreadState] = []
                while page := await history(runtime, limit=2, before=ids_of(paged)[-1] if paged else None):
                    assert len(page) <= 2
                    paged.extend(page)
            assert paged == states

        self.run(scenario())

    def test_a_thread_and_a_namespace_without_states_have_no_history(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"))
            async with self.runtime(self.new_storage()) as runtime:
                assert await history(runtime) == []
                await frames_of(runtime.start(turn(model, said("first"))))
                assert await history(runtime, namespace=("tools:nobody",)) == []

        self.run(scenario())

    def test_a_history_before_an_unknown_checkpoint_is_refused(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"))
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(model, said("first"))))
                with pytest.raises(NotFound) as caught:
                    await history(runtime, before="nowhere")
            assert caught.value.code == "no_such_checkpoint"

        self.run(scenario())

    def test_the_history_is_read_while_a_turn_is_running_and_the_turn_goes_on(self) -> None:
        async def scenario() -> None:
            gate = Gate()
            _, model = model_of(Reply("One"), Reply("Two words", gate=gate, gate_before=1))
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(model, said("first"))))
                listener = Listener(runtime.start(turn(model, said("second", "u2"), run_id="run-2")))
                await listener.heard("Two ")
                states = await asyncio.wait_for(history(runtime), 5)
                gate.open.set()
                await listener.task
                after = await history(runtime)
            assert ("ai", "One") in conversation(states[0]["values"])
            assert after[-len(states) + 1 :] == states[1:]
            assert conversation(after[0]["values"])[-1] == ("ai", "Two words")

        self.run(scenario())

    def test_a_turn_forks_from_an_entry_and_both_branches_stay_in_the_history(self) -> None:
        async def scenario() -> None:
            chat, model = model_of(Reply("One"), Reply("Two"), Reply("Other"))
            async with self.runtime(self.new_storage()) as runtime:
                await two_turns(runtime, model)
                entry = next(state for state in await history(runtime) if len(conversation(state["values"])) == 2)
                (origin,) = ids_of([entry])
                forked = turn(model, said("instead", "u3"), run_id="run-3", config={"checkpoint_id": origin})
                await frames_of(runtime.start(forked))
                states = await history(runtime)
            assert asked(chat.calls[2].messages) == [("human", "first"), ("ai", "One"), ("human", "instead")]
            told = [conversation(state["values"]) for state in states]
            assert told[0] == [("human", "first"), ("ai", "One"), ("human", "instead"), ("ai", "Other")]
            assert [("human", "first"), ("ai", "One"), ("human", "second"), ("ai", "Two")] in told
            assert [parent_of(state) for state in states].count(origin) == 2

        self.run(scenario())

    def test_a_forgotten_thread_has_no_history(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"))
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(model, said("first"))))
                await runtime.forget("thread-1", caller=LOCAL)
                assert await history(runtime) == []

        self.run(scenario())

    def test_written_values_are_the_new_state_and_the_next_turn_sees_them(self) -> None:
        async def scenario() -> None:
            chat, model = model_of(Reply("One"), Reply("Two"))
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(model, said("first"))))
                before = ids_of(await history(runtime))
                state = await write(runtime, {"messages": [{"type": "human", "content": "noted", "id": "w1"}]})
                assert conversation(state["values"]) == [("human", "first"), ("ai", "One"), ("human", "noted")]
                assert parent_of(state) == before[0]
                assert await runtime.state("thread-1", caller=LOCAL) == state
                assert ids_of(await history(runtime))[1:] == before
                await frames_of(runtime.start(turn(model, said("second", "u2"), run_id="run-2")))
            written = [("human", "first"), ("ai", "One"), ("human", "noted"), ("human", "second")]
            assert asked(chat.calls[1].messages) == written

        self.run(scenario())

    def test_values_written_on_an_earlier_checkpoint_begin_a_branch(self) -> None:
        async def scenario() -> None:
            chat, model = model_of(Reply("One"), Reply("Two"), Reply("Three"))
            async with self.runtime(self.new_storage()) as runtime:
                await two_turns(runtime, model)
                entry = next(state for state in await history(runtime) if len(conversation(state["values"])) == 2)
                (origin,) = ids_of([entry])
                edited = {"messages": [{"type": "human", "content": "edited", "id": "u1"}]}
                state = await write(runtime, edited, checkpoint_id=origin)
                assert conversation(state["values"]) == [("human", "edited"), ("ai", "One")]
                assert parent_of(state) == origin
                await frames_of(runtime.start(turn(model, said("third", "u3"), run_id="run-3")))
            assert asked(chat.calls[2].messages) == [("human", "edited"), ("ai", "One"), ("human", "third")]

        self.run(scenario())

    @pytest.mark.parametrize(
        "message",
        [
            {"type": "ai", "content": "written", "id": "w1"},
            {"role": "assistant", "content": "written", "id": "w1"},
            {"type": "ai", "data": {"content": "written", "id": "w1"}},
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain_core", "messages", "AIMessage"],
                "kwargs": {"content": "written", "id": "w1"},
            },
        ],
        ids=["flat", "role", "data", "constructor"],
    )
    def test_a_message_is_written_in_any_spelling(self, message: dict[str, Any]) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"))
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(model, said("first"))))
                state = await write(runtime, {"messages": [message]})
            written: Any = state["values"]["messages"][-1]  # type: ignore[index]
            assert (written["type"], written["content"], written["id"]) == ("ai", "written", "w1")

        self.run(scenario())

    @pytest.mark.parametrize(
        ("values", "field"),
        [
            ({"nothing_of_the_kind": 1}, "nothing_of_the_kind"),
            ({"messages": 3}, "messages.0"),
            ({"messages": [{"type": "human", "content": "fine"}, {"type": "poem", "content": "no"}]}, "messages.1"),
            ({"messages": [{"content": "nobody said it"}]}, "messages.0"),
        ],
        ids=["channel", "type", "kind", "missing"],
    )
    def test_values_that_cannot_be_written_are_refused_with_the_field_and_change_nothing(
        self, values: dict[str, Any], field: str
    ) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"))
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(model, said("first"))))
                before = await history(runtime)
                with pytest.raises(InvalidRequest) as caught:
                    await write(runtime, values)
                assert caught.value.code == "invalid_values"
                assert list(caught.value.fields) == [field]
                assert await history(runtime) == before

        self.run(scenario())

    def test_an_unknown_node_and_an_unknown_checkpoint_are_refused(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"))
            values = {"messages": [{"type": "human", "content": "noted"}]}
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(model, said("first"))))
                with pytest.raises(InvalidRequest) as wrong:
                    await write(runtime, values, as_node="nobody")
                with pytest.raises(NotFound) as missing:
                    await write(runtime, values, checkpoint_id="nowhere")
            assert wrong.value.code == "no_such_node"
            assert missing.value.code == "no_such_checkpoint"

        self.run(scenario())


def keeper(runtime: AgentRuntime) -> KeepsHistory:
    assert isinstance(runtime, KeepsHistory), "a suite with `keeps_history = True` has a runtime that is a KeepsHistory"
    return runtime


async def history(
    runtime: AgentRuntime, *, limit: int = WHOLE, before: str | None = None, namespace: tuple[str, ...] = ()
) -> list[ThreadState]:
    found = await keeper(runtime).history("thread-1", limit=limit, before=before, namespace=namespace, caller=LOCAL)
    return list(found)


async def write(
    runtime: AgentRuntime, values: Mapping[str, Any], *, as_node: str | None = None, checkpoint_id: str | None = None
) -> ThreadState:
    return await keeper(runtime).update_state(
        "thread-1", values, as_node=as_node, checkpoint_id=checkpoint_id, caller=LOCAL
    )


async def two_turns(runtime: AgentRuntime, model: ChosenModel) -> None:
    first = turn(model, said("first"))
    await frames_of(runtime.start(first))
    await frames_of(runtime.start(replace(first, run_id="run-2", messages=(said("second", "u2"),))))


def ids_of(states: Sequence[ThreadState]) -> list[str]:
    ids = [state["checkpoint"] and state["checkpoint"]["checkpoint_id"] for state in states]
    assert all(isinstance(name, str) for name in ids), "every state of a history names its checkpoint"
    return [str(name) for name in ids]


def parent_of(state: ThreadState) -> str | None:
    parent = state["parent_checkpoint"]
    return None if parent is None else parent["checkpoint_id"]
