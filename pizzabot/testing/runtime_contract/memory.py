"""What a thread remembers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    CONCURRENT_TURNS,
    asked,
    conversation,
    events,
    frames_of,
    model_of,
    said,
    said_text,
    text_of,
    turn,
)
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import CompactsContext, KeepsBranches, KeepsHistory
from pizzabot_hookspecs.wire import Frame


class MemoryContract(RuntimeContract):
    def test_a_thread_has_no_state_before_its_first_turn_and_one_after_it(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("Hello"))
            async with self.runtime(self.new_storage()) as runtime:
                assert await runtime.state("thread-1", caller=LOCAL) is None
                await frames_of(runtime.start(turn(model, said("hi"))))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            assert json.loads(json.dumps(state, allow_nan=False)) == state
            assert conversation(state["values"]) == [("human", "hi"), ("ai", "Hello")]
            assert state["next"] == []
            assert state["interrupts"] == []
            assert state["created_at"]
            assert state["checkpoint"] is not None
            assert state["checkpoint"]["thread_id"] == "thread-1"
            assert state["checkpoint"]["checkpoint_id"]

        self.run(scenario())

    def test_a_runtime_says_whether_it_keeps_history(self) -> None:
        async def scenario() -> None:
            async with self.runtime(self.new_storage()) as runtime:
                found = isinstance(runtime, KeepsHistory)
            assert found == self.keeps_history, "a suite says `keeps_history = True` if the runtime is a KeepsHistory"

        self.run(scenario())

    def test_a_runtime_says_whether_it_keeps_branches_and_compacts(self) -> None:
        async def scenario() -> None:
            async with self.runtime(self.new_storage()) as runtime:
                branches, compacts = isinstance(runtime, KeepsBranches), isinstance(runtime, CompactsContext)
            assert branches == self.keeps_branches, "a suite says `keeps_branches = True` of a KeepsBranches"
            assert compacts == self.compacts_context, "a suite says `compacts_context = True` of a CompactsContext"

        self.run(scenario())

    def test_a_message_has_the_same_id_in_the_stream_and_in_the_state(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("Hello"))
            async with self.runtime(self.new_storage()) as runtime:
                frames = await frames_of(runtime.start(turn(model, said("hi"))))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            answer: Any = state["values"]["messages"][-1]  # type: ignore[index]
            assert answer["id"] == events(frames)[0]["id"]

        self.run(scenario())

    def test_the_ids_of_the_clients_messages_are_kept(self) -> None:
        async def scenario() -> None:
            _, model = model_of(Reply("One"), Reply("Two"))
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(model, said("a", "id-of-a"))))
                await frames_of(runtime.start(turn(model, said("b", "id-of-b"), run_id="run-2")))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            messages: Any = state["values"]["messages"]
            assert [message["id"] for message in messages if message["type"] == "human"] == ["id-of-a", "id-of-b"]

        self.run(scenario())

    def test_a_second_turn_sees_the_first(self) -> None:
        async def scenario() -> None:
            model, chosen = model_of(Reply("Hello Ada"), Reply("Ada, as you said"))
            async with self.runtime(self.new_storage()) as runtime:
                await frames_of(runtime.start(turn(chosen, said("I am Ada"))))
                await frames_of(runtime.start(turn(chosen, said("Who am I?", "u2"), run_id="run-2")))
            first = [("human", "I am Ada")]
            assert asked(model.calls[0].messages) == first
            assert asked(model.calls[1].messages) == [*first, ("ai", "Hello Ada"), ("human", "Who am I?")]

        self.run(scenario())

    def test_a_thread_may_change_its_model_between_turns(self) -> None:
        async def scenario() -> None:
            models = [ScriptedModel(script=[Reply(f"answer {number}")]) for number in range(3)]
            abilities = (True, False, True)
            async with self.runtime(self.new_storage()) as runtime:
                for number, (model, able) in enumerate(zip(models, abilities, strict=True)):
                    choice = chosen(model, supports_tools=able, model_id=f"scripted:model-{number}")
                    message = said(f"question {number}", f"u{number}")
                    await frames_of(runtime.start(turn(choice, message, run_id=f"run-{number}")))
                state = await runtime.state("thread-1", caller=LOCAL)
            expected = [
                pair for number in range(3) for pair in (("human", f"question {number}"), ("ai", f"answer {number}"))
            ]
            assert asked(models[2].calls[0].messages) == expected[:-1]
            assert state is not None
            assert conversation(state["values"]) == expected

        self.run(scenario())

    def test_the_state_is_there_for_a_runtime_that_starts_later(self) -> None:
        async def scenario() -> None:
            storage = self.new_storage()
            model, chosen = model_of(Reply("Hello"), Reply("Again"))
            async with self.runtime(storage) as runtime:
                await frames_of(runtime.start(turn(chosen, said("hi"))))
                before = await runtime.state("thread-1", caller=LOCAL)
            async with self.runtime(storage) as runtime:
                assert await runtime.state("thread-1", caller=LOCAL) == before
                await frames_of(runtime.start(turn(chosen, said("more", "u2"), run_id="run-2")))
            assert asked(model.calls[1].messages) == [("human", "hi"), ("ai", "Hello"), ("human", "more")]

        self.run(scenario())

    def test_forgetting_a_thread_removes_it_alone_and_may_be_repeated(self) -> None:
        async def scenario() -> None:
            model, chosen = model_of(Reply("One"), Reply("Two"), Reply("Three"))
            async with self.runtime(self.new_storage()) as runtime:
                await runtime.forget("thread-1", caller=LOCAL)
                await frames_of(runtime.start(turn(chosen, said("a"))))
                await frames_of(runtime.start(turn(chosen, said("b"), thread_id="thread-2", run_id="run-2")))
                await runtime.forget("thread-1", caller=LOCAL)
                await runtime.forget("thread-1", caller=LOCAL)
                assert await runtime.state("thread-1", caller=LOCAL) is None
                other = await runtime.state("thread-2", caller=LOCAL)
                assert other is not None
                assert conversation(other["values"]) == [("human", "b"), ("ai", "Two")]
                await frames_of(runtime.start(turn(chosen, said("c", "u3"), run_id="run-3")))
            assert asked(model.calls[2].messages) == [("human", "c")]

        self.run(scenario())

    def test_turns_on_many_threads_at_once_share_nothing(self) -> None:
        async def scenario() -> None:
            model = ScriptedModel(script=lambda messages: Reply(f"you said {said_text(messages[-1])}"))
            choice = chosen(model)
            async with self.runtime(self.new_storage()) as runtime:

                async def hold(number: int) -> list[Frame]:
                    message = said(f"word-{number}", f"u{number}")
                    started = turn(choice, message, thread_id=f"thread-{number}", run_id=f"run-{number}")
                    return await frames_of(runtime.start(started))

                answers = await asyncio.gather(*(hold(number) for number in range(CONCURRENT_TURNS)))
                states = [await runtime.state(f"thread-{n}", caller=LOCAL) for n in range(CONCURRENT_TURNS)]
            for number, (frames, state) in enumerate(zip(answers, states, strict=True)):
                assert text_of(frames) == f"you said word-{number}"
                assert state is not None
                assert conversation(state["values"]) == [
                    ("human", f"word-{number}"),
                    ("ai", f"you said word-{number}"),
                ]
            assert all(len(asked(call.messages)) == 1 for call in model.calls)

        self.run(scenario())
