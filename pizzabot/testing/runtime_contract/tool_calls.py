# ruff: noqa: TID253 - imported by tests of tools, never by the host
"""Tools that run unasked: their results, their errors, what a person is asked by them, and calls that are skipped."""

from __future__ import annotations

from langchain_core.tools import tool

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
from pizzabot_hookspecs.agent_runtimes import RUNTIME_TOOLS
from pizzabot_hookspecs.agent_tools import AgentTool


class ToolCallContract(RuntimeContract):
    def test_a_tool_runs_and_its_result_is_streamed_remembered_and_told_to_the_model(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            model, choice = model_of(
                Reply("Let me see. ", tool_calls=[call("look", "c1", what="the sky")]), Reply("Blue")
            )
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("what colour?"), intents=bench.intents)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert bench.journal == ["look the sky"]
            assert asked(model.calls[1].messages)[-1] == ("tool", "saw the sky")
            assert text_of(frames) == "Let me see. Blue"
            assert state is not None
            assert tool_results(state["values"]) == {"c1": ("success", "saw the sky")}
            told = [frame for frame in frames if frame.method == "tools"]
            assert [frame.data["event"] for frame in told] == ["tool-started", "tool-finished"]
            assert {frame.data["tool_call_id"] for frame in told} == {"c1"}
            assert len({frame.namespace for frame in told}) == 1
            assert told[0].data["input"] == {"what": "the sky"}
            assert told[1].data["output"]["content"] == "saw the sky"

        self.run(scenario())

    def test_the_model_is_offered_the_tools_that_were_handed_in_and_the_runtimes_own_and_no_others(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            model, choice = model_of(Reply("Hello"))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                await frames_of(runtime.start(turn(choice, said("hi"), intents=bench.intents)))
            offered = set(model.calls[0].tools)
            assert offered - RUNTIME_TOOLS == {tool.tool.name for tool in bench.tools}

        self.run(scenario())

    def test_a_tool_that_raises_a_call_of_no_tool_and_bad_arguments_become_results_and_the_turn_goes_on(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            calls = [
                call("fail", "c1", reason="the printer is on fire"),
                call("fly", "c2"),
                call("note", "c3", wrong="argument"),
                call("look", "c4", what="the sky"),
            ]
            model, choice = model_of(Reply(tool_calls=calls), Reply("I could not do all of it"))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            results = tool_results(state["values"])
            assert {key: status for key, (status, _) in results.items()} == {
                "c1": "error",
                "c2": "error",
                "c3": "error",
                "c4": "success",
            }
            assert "the printer is on fire" in results["c1"][1]
            assert "Traceback" not in results["c1"][1]
            assert bench.runs == ["fail the printer is on fire", "look the sky"]
            assert text_of(frames) == "I could not do all of it"
            assert len(model.calls) == 2
            ended = [f.data["tool_call_id"] for f in frames if f.data.get("event") in ("tool-finished", "tool-error")]
            assert sorted(ended) == ["c1", "c2", "c3", "c4"], "each call is closed by one frame"
            assert not bench.intents.open_calls

        self.run(scenario())

    def test_a_tool_that_blocks_runs_in_a_thread(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            _, choice = model_of(Reply(tool_calls=[call("wait", "c1", what="godot")]), Reply("He came"))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                listener = Listener(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                await bench.held.wait()  # the loop runs on while the tool blocks
                bench.release_thread.set()
                await listener.task
            assert text_of(listener.frames) == "He came"

        self.run(scenario())

    def test_a_tool_whose_approval_is_unreadable_is_not_there_at_all(self) -> None:
        async def scenario() -> None:
            bench = Workbench()

            @tool
            async def launch() -> str:
                """Launch."""
                bench.journal.append("launch")
                return "launched"

            @tool
            async def land() -> str:
                """Land."""
                bench.journal.append("land")
                return "landed"

            more = [
                AgentTool(tool=launch, approval=frozenset({"aprove"}), repeatable=True),
                AgentTool(tool=land, approval=frozenset(), repeatable=True),
            ]
            model, choice = model_of(Reply(tool_calls=[call("launch", "c1"), call("land", "c2")]), Reply("No"))
            async with self.runtime_with(bench.services(self.new_storage(), more=more)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert not {"launch", "land"} & set(model.calls[0].tools)
            assert bench.journal == []
            assert not requests(frames)
            assert state is not None
            assert {status for status, _ in tool_results(state["values"]).values()} == {"error"}

        self.run(scenario())

    def test_a_tool_may_ask_the_person_and_is_handed_the_answer_as_it_is(self) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            _, choice = model_of(Reply(tool_calls=[call("ask", "c1", question="Which colour?")]), Reply("Red it is"))
            async with self.runtime_with(bench.services(storage)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("paint it"), intents=bench.intents)))
                assert frames[-1].method == "input.requested"
                ((interrupt_id, data),) = requests(frames).items()
                assert data["kind"] == "input"
                assert data["payload"] == {"question": "Which colour?", "answer_schema": {"type": "object"}}
                assert data["value"] == data["payload"]
                assert not bench.intents.open_calls, "a tool that asks has done nothing yet"
            async with self.runtime_with(bench.services(storage)) as runtime:
                answers = {interrupt_id: {"colour": "red", "decisions": [1]}}
                resumed = turn(choice, run_id="run-2", answers=answers, intents=bench.intents)
                assert text_of(await frames_of(runtime.start(resumed))) == "Red it is"
                state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            assert tool_results(state["values"])["c1"][1] == "the person said {'colour': 'red', 'decisions': [1]}"
            assert bench.runs == ["ask Which colour?"]

        self.run(scenario())

    def test_a_call_that_is_skipped_does_not_run_and_the_text_stands_for_its_result(self) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("hold", "c1", what="it"), call("note", "c2", text="done")]
            _, choice = model_of(Reply(tool_calls=calls), Reply("Fine"))
            async with self.runtime_with(bench.services(storage)) as runtime:
                listener = Listener(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                await bench.held.wait()
                await bench.intents.closed.wait()
                await listener.abandon()
            async with self.runtime_with(bench.services(storage)) as runtime:
                bench.journal.clear()
                again = turn(
                    choice, said("go"), recover=True, intents=bench.intents, skip={"c1": "Skipped.", "c2": "Too late."}
                )
                assert text_of(await frames_of(runtime.start(again))) == "Fine"
                state = await runtime.state("thread-1", caller=LOCAL)
            assert bench.runs == []
            assert state is not None
            assert tool_results(state["values"]) == {"c1": ("error", "Skipped."), "c2": ("success", "noted done")}

        self.run(scenario())

    def test_what_is_delegated_happens_below_the_call_that_delegates(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            task = call("task", "t1", description="look at the sky", subagent_type="worker")
            model, choice = model_of(
                Reply(tool_calls=[task]),
                Reply(tool_calls=[call("look", "c1", what="the sky")]),
                Reply("It is blue"),
                Reply("Blue, I hear"),
            )
            async with self.runtime_with(bench.services(self.new_storage(), subagent=True)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("what colour?"), intents=bench.intents)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert bench.runs == ["look the sky"]
            assert set(model.calls[0].tools) - RUNTIME_TOOLS == set()
            assert "task" in model.calls[0].tools
            assert not {"task", "eval", "ask_user"} & set(model.calls[1].tools)
            assert model.calls[1].messages[0].text == "You are the worker."
            assert asked(model.calls[1].messages) == [("human", "look at the sky")]
            assert state is not None
            assert tool_results(state["values"]) == {"t1": ("success", "It is blue")}
            places = {f.data["tool_call_id"]: f.namespace for f in frames if f.method == "tools"}
            assert places["c1"][: len(places["t1"])] == places["t1"]
            assert len(places["c1"]) == len(places["t1"]) + 1

        self.run(scenario())
