"""Stopping a turn whose model speaks."""

from __future__ import annotations

import asyncio
from typing import Any

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    Listener,
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


class StoppingContract(RuntimeContract):
    def test_a_stop_in_the_middle_keeps_the_streamed_text_under_its_id_and_the_thread_goes_on(self) -> None:
        async def scenario() -> None:
            gate = Gate()
            model, chosen = model_of(Reply("Once upon a time", gate=gate, gate_before=2), Reply("The end"))
            async with self.runtime(self.new_storage()) as runtime:
                run = runtime.start(turn(chosen, said("a story")))
                listener = Listener(run)
                await listener.heard("Once upon ")
                await run.stop()
                await listener.task
                state = await runtime.state("thread-1", caller=LOCAL)
                assert state is not None
                assert conversation(state["values"]) == [("human", "a story"), ("ai", "Once upon ")]
                partial: Any = state["values"]["messages"][-1]  # type: ignore[index]
                assert partial["id"] == events(listener.frames)[0]["id"]
                assert partial["response_metadata"]["cancelled"] is True
                assert state["next"] == []
                assert len(model.calls) == 1
                frames = await frames_of(runtime.start(turn(chosen, said("go on", "u2"), run_id="run-2")))
            assert text_of(frames) == "The end"
            assert asked(model.calls[1].messages) == [
                ("human", "a story"),
                ("ai", "Once upon "),
                ("human", "go on"),
            ]

        self.run(scenario())

    def test_a_stop_before_the_first_word_keeps_what_the_person_said(self) -> None:
        async def scenario() -> None:
            gate = Gate()
            model, chosen = model_of(Reply("never said", gate=gate), Reply("Yes"))
            async with self.runtime(self.new_storage()) as runtime:
                run = runtime.start(turn(chosen, said("hello?")))
                listener = Listener(run)
                await gate.reached.wait()
                await run.stop()
                await listener.task
                assert text_of(listener.frames) == ""
                await frames_of(runtime.start(turn(chosen, said("are you there?", "u2"), run_id="run-2")))
            assert asked(model.calls[1].messages) == [("human", "hello?"), ("human", "are you there?")]

        self.run(scenario())

    def test_a_run_that_is_stopped_before_it_is_iterated_asks_no_model(self) -> None:
        async def scenario() -> None:
            model, chosen = model_of(Reply("Hello"))
            async with self.runtime(self.new_storage()) as runtime:
                run = runtime.start(turn(chosen, said("hi")))
                await run.stop()
                assert text_of(await frames_of(run)) == ""
                assert not model.calls
                frames = await frames_of(runtime.start(turn(chosen, said("again", "u2"), run_id="run-2")))
            assert text_of(frames) == "Hello"

        self.run(scenario())

    def test_stopping_twice_or_after_the_end_changes_nothing(self) -> None:
        async def scenario() -> None:
            gate = Gate()
            _, chosen = model_of(Reply("Hello"), Reply("One two three", gate=gate, gate_before=1))
            async with self.runtime(self.new_storage()) as runtime:
                ended = runtime.start(turn(chosen, said("hi")))
                await frames_of(ended)
                before = await runtime.state("thread-1", caller=LOCAL)
                await ended.stop()
                assert await runtime.state("thread-1", caller=LOCAL) == before

                run = runtime.start(turn(chosen, said("count", "u2"), run_id="run-2"))
                listener = Listener(run)
                await listener.heard("One ")
                await asyncio.gather(run.stop(), run.stop())
                await listener.task
                stopped = await runtime.state("thread-1", caller=LOCAL)
                await run.stop()
                assert await runtime.state("thread-1", caller=LOCAL) == stopped
            assert stopped is not None
            assert conversation(stopped["values"])[-2:] == [("human", "count"), ("ai", "One ")]

        self.run(scenario())
