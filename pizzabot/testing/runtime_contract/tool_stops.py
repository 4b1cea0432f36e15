"""Stopping a turn in its tools, and settling one whose process died there."""

from __future__ import annotations

import pytest

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    Listener,
    asked,
    call,
    frames_of,
    model_of,
    requests,
    said,
    text_of,
    tool_results,
    turn,
)
from pizzabot.testing.runtime_contract.workbench import Workbench
from pizzabot.testing.scripted_model import Reply
from pizzabot_hookspecs import LOCAL

TASK = call("task", "t1", description="work", subagent_type="worker")


class ToolStopContract(RuntimeContract):
    def test_a_stop_ends_the_tool_keeps_what_had_finished_and_closes_every_call(self) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("hold", "c1", what="it"), call("note", "c2", text="a"), call("send", "c3", to="ada")]
            model, choice = model_of(Reply("Working. ", tool_calls=calls), Reply("Yes?"))
            async with self.runtime_with(bench.services(storage)) as runtime:
                run = runtime.start(turn(choice, said("go"), intents=bench.intents))
                listener = Listener(run)
                await bench.held.wait()
                await listener.until(lambda frame: frame.data.get("tool_call_id") == "c2" and "output" in frame.data)
                await run.stop()
                order = [entry for entry in bench.journal if entry in ("left it", "close c1")]
                assert order == ["left it", "close c1"], "closed when the tool is gone, and not before"
                await listener.task
                assert not requests(listener.frames), "a stopped turn waits for nothing"
                state = await runtime.state("thread-1", caller=LOCAL)
                assert state is not None
                results = tool_results(state["values"])
                assert results["c2"] == ("success", "noted a")
                assert {results[key][0] for key in ("c1", "c3")} == {"error"}
                assert (state["next"], state["interrupts"]) == ([], [])
                assert not bench.intents.open_calls
                assert len(model.calls) == 1
                frames = await frames_of(
                    runtime.start(turn(choice, said("are you there?", "u2"), run_id="run-2", intents=bench.intents))
                )
            assert text_of(frames) == "Yes?"
            kinds = [kind for kind, _ in asked(model.calls[1].messages)]
            assert kinds == ["human", "ai", "tool", "tool", "tool", "human"]
            assert [run for run in bench.runs if not run.startswith("left")] == ["hold it", "note a"]

        self.run(scenario())

    def test_the_result_of_a_tool_that_cannot_be_ended_is_dropped(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            model, choice = model_of(Reply(tool_calls=[call("wait", "c1", what="godot")]), Reply("Yes?"))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                run = runtime.start(turn(choice, said("go"), intents=bench.intents))
                listener = Listener(run)
                await bench.held.wait()
                await run.stop()
                await listener.task
                bench.release_thread.set()
                await frames_of(runtime.start(turn(choice, said("next", "u2"), run_id="run-2", intents=bench.intents)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            assert tool_results(state["values"])["c1"][0] == "error"
            assert "waited" not in str(asked(model.calls[1].messages))
            assert not bench.intents.open_calls

        self.run(scenario())

    def test_a_stop_reaches_the_tools_of_subagents(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            model, choice = model_of(
                Reply(tool_calls=[TASK]), Reply(tool_calls=[call("hold", "c1", what="it")]), Reply("Yes?")
            )
            async with self.runtime_with(bench.services(self.new_storage(), subagent=True)) as runtime:
                run = runtime.start(turn(choice, said("go"), intents=bench.intents))
                listener = Listener(run)
                await bench.held.wait()
                await run.stop()
                assert bench.journal == ["open c1", "hold it", "left it", "close c1"]
                await listener.task
                state = await runtime.state("thread-1", caller=LOCAL)
                assert state is not None
                assert tool_results(state["values"])["t1"][0] == "error"
                assert state["next"] == []
                frames = await frames_of(
                    runtime.start(turn(choice, said("next", "u2"), run_id="run-2", intents=bench.intents))
                )
            assert text_of(frames) == "Yes?"
            assert len(model.calls) == 3

        self.run(scenario())

    @pytest.mark.parametrize("subagent", [False, True])
    def test_settling_a_turn_that_died_in_a_tool_runs_nothing_and_leaves_no_call_open(self, *, subagent: bool) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("note", "c1", text="a"), call("hold", "c2", what="it")]
            around = [Reply(tool_calls=[TASK])] if subagent else []
            model, choice = model_of(*around, Reply(tool_calls=calls), Reply("Yes?"))
            async with self.runtime_with(bench.services(storage, subagent=subagent)) as runtime:
                listener = Listener(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                await bench.held.wait()
                await bench.intents.closed.wait()
                await listener.abandon()
            bench.journal.clear()
            async with self.runtime_with(bench.services(storage, subagent=subagent)) as runtime:
                calls_before = len(model.calls)
                settling = turn(choice, said("go"), recover=True, settle=True, intents=bench.intents)
                frames = await frames_of(runtime.start(settling))
                state = await runtime.state("thread-1", caller=LOCAL)
                assert [frame.method for frame in frames] == ["checkpoints", "values"]
                assert (bench.runs, len(model.calls)) == ([], calls_before)
                assert state is not None
                assert (state["next"], state["interrupts"]) == ([], [])
                assert frames[-1].data == state["values"]
                results = tool_results(state["values"])
                if subagent:
                    assert results["t1"][0] == "error"
                else:
                    assert results["c1"] == ("success", "noted a")
                    assert results["c2"][0] == "error"
                again = turn(choice, said("are you there?", "u2"), run_id="run-2", intents=bench.intents)
                assert text_of(await frames_of(runtime.start(again))) == "Yes?"

        self.run(scenario())

    def test_settling_a_turn_that_waits_closes_its_questions(self) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("send", "c1", to="ada"), call("note", "c2", text="a")]
            _, choice = model_of(Reply(tool_calls=calls))
            async with self.runtime_with(bench.services(storage)) as runtime:
                await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                await frames_of(runtime.start(turn(choice, run_id="run-2", settle=True, intents=bench.intents)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            assert (state["next"], state["interrupts"]) == ([], [])
            results = tool_results(state["values"])
            assert results["c1"][0] == "error"
            assert results["c2"] == ("success", "noted a")
            assert bench.runs == ["note a"]

        self.run(scenario())

    def test_settling_a_turn_that_died_before_its_first_step_keeps_what_the_person_said(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            model, choice = model_of(Reply("Yes?"))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                await frames_of(runtime.start(turn(choice, said("hello?"), recover=True, settle=True)))
                assert not model.calls
                await frames_of(runtime.start(turn(choice, said("anyone?", "u2"), run_id="run-2")))
            assert asked(model.calls[0].messages) == [("human", "hello?"), ("human", "anyone?")]

        self.run(scenario())
