"""A turn whose process died, and one whose model fails."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    Listener,
    ModelDown,
    asked,
    conversation,
    events,
    frames_of,
    model_of,
    said,
    text_of,
    turn,
)
from pizzabot.testing.scripted_model import Gate, Reply
from pizzabot_hookspecs import LOCAL


class RecoveringContract(RuntimeContract):
    def test_a_turn_whose_process_died_is_finished_by_the_next_one(self) -> None:
        async def scenario() -> None:
            storage, gate = self.new_storage(), Gate()
            model, chosen = model_of(Reply("One two", gate=gate, gate_before=1), Reply("Here you are"))
            async with self.runtime(storage) as runtime:
                listener = Listener(runtime.start(turn(chosen, said("please"))))
                await listener.heard("One ")
                listener.task.cancel()
                with suppress(asyncio.CancelledError):
                    await listener.task
            async with self.runtime(storage) as runtime:
                frames = await frames_of(runtime.start(turn(chosen, said("please"), recover=True)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert text_of(frames) == "Here you are"
            assert asked(model.calls[1].messages) == [("human", "please")]
            assert state is not None
            assert conversation(state["values"]) == [("human", "please"), ("ai", "Here you are")]

        self.run(scenario())

    def test_a_turn_that_died_before_its_first_step_is_begun_by_its_recovery(self) -> None:
        async def scenario() -> None:
            model, chosen = model_of(Reply("Hello"))
            async with self.runtime(self.new_storage()) as runtime:
                frames = await frames_of(runtime.start(turn(chosen, said("hi"), recover=True)))
            assert text_of(frames) == "Hello"
            assert asked(model.calls[0].messages) == [("human", "hi")]

        self.run(scenario())

    def test_recovering_a_finished_turn_asks_no_model_and_ends_with_its_values(self) -> None:
        async def scenario() -> None:
            storage = self.new_storage()
            model, chosen = model_of(Reply("Hello"))
            async with self.runtime(storage) as runtime:
                await frames_of(runtime.start(turn(chosen, said("hi"))))
                before = await runtime.state("thread-1", caller=LOCAL)
            async with self.runtime(storage) as runtime:
                frames = await frames_of(runtime.start(turn(chosen, said("hi"), recover=True)))
                after = await runtime.state("thread-1", caller=LOCAL)
            assert len(model.calls) == 1
            assert text_of(frames) == ""
            values = [frame.data for frame in frames if frame.method == "values" and not frame.namespace]
            assert conversation(values[-1]) == [("human", "hi"), ("ai", "Hello")]
            assert after is not None
            assert before is not None
            assert after["values"] == before["values"]

        self.run(scenario())

    def test_what_the_log_missed_of_a_turn_is_told_first_and_what_it_holds_is_not(self) -> None:
        async def scenario() -> None:
            storage = self.new_storage()
            model, chosen = model_of(Reply("Hello"), Reply("Fine"))
            async with self.runtime(storage) as runtime:
                await frames_of(runtime.start(turn(chosen, said("hi"))))
                state = await runtime.state("thread-1", caller=LOCAL)
                assert state is not None
                messages: Any = state["values"]["messages"]
                answer = str(messages[-1]["id"])
                again = turn(chosen, said("hi"), recover=True, told=frozenset())
                missed = await frames_of(runtime.start(again))
                known = await frames_of(runtime.start(replace(again, told=frozenset([answer]))))
                unheard = replace(again, messages=(said("and now?", "u2"),), run_id="run-2")
                later = await frames_of(runtime.start(unheard))
            assert len(model.calls) == 2
            assert text_of(missed) == "Hello"
            assert [data["id"] for data in events(missed) if data["event"] == "message-start"] == [answer]
            assert events(missed)[-1]["event"] == "message-finish"
            assert (text_of(known), text_of(later)) == ("", "Fine")

        self.run(scenario())

    def test_an_error_of_the_model_is_raised_as_it_is_and_the_thread_goes_on(self) -> None:
        async def scenario() -> None:
            model, chosen = model_of(Reply("Half an", error=ModelDown("too many requests")), Reply("Fine now"))
            async with self.runtime(self.new_storage()) as runtime:
                listener = Listener(runtime.start(turn(chosen, said("hi"))))
                with pytest.raises(ModelDown, match="too many requests"):
                    await listener.task
                assert text_of(listener.frames) == "Half an"
                frames = await frames_of(runtime.start(turn(chosen, said("and now?", "u2"), run_id="run-2")))
            assert text_of(frames) == "Fine now"
            assert asked(model.calls[1].messages)[-1] == ("human", "and now?")
            assert asked(model.calls[1].messages)[0] == ("human", "hi")

        self.run(scenario())
