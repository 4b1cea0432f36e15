"""Intents of tools that must not run twice, and what a turn finds whose process died among tools."""

from __future__ import annotations

import pytest

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    Listener,
    RecordedIntents,
    call,
    decided,
    frames_of,
    model_of,
    request_for,
    requests,
    said,
    text_of,
    tool_results,
    turn,
)
from pizzabot.testing.runtime_contract.workbench import Workbench
from pizzabot.testing.scripted_model import Reply
from pizzabot_hookspecs import LOCAL, Conflict
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, KnowsSettledCalls

TASK = call("task", "t1", description="work", subagent_type="worker")


async def settled(runtime: AgentRuntime, *call_ids: str) -> set[str]:
    """What the runtime knows of these calls."""
    assert isinstance(runtime, KnowsSettledCalls), "a runtime with tools tells which calls are settled"
    return set(await runtime.settled_calls("thread-1", call_ids, caller=LOCAL))


class ForgetfulIntents(RecordedIntents):
    """Intents of a process that dies between a result and the closing."""

    async def close(self, call_id: str, /) -> None:  # noqa: ARG002 - the call stays open
        self.closed.set()


class IntentContract(RuntimeContract):
    def test_a_tool_that_must_not_run_twice_is_announced_before_it_runs_and_closed_after(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            calls = [call("note", "c1", text="a")]
            _, choice = model_of(
                Reply(tool_calls=calls), Reply(tool_calls=[call("look", "c2", what="b")]), Reply("Done")
            )
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
            assert bench.journal == ["open c1", "note a", "close c1", "look b"]

        self.run(scenario())

    def test_an_approved_tool_is_announced_when_it_runs_and_not_while_it_waits(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            _, choice = model_of(Reply(tool_calls=[call("send", "c1", to="ada")]), Reply("Done"))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                assert bench.journal == []
                answers = {request_for(frames, "c1"): decided("approve")}
                await frames_of(runtime.start(turn(choice, run_id="run-2", answers=answers, intents=bench.intents)))
            assert bench.journal == ["open c1", "send ada", "close c1"]

        self.run(scenario())

    def test_in_a_subagent_the_tool_is_announced_with_its_place_and_the_delegation_is_not(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            _, choice = model_of(
                Reply(tool_calls=[TASK]), Reply(tool_calls=[call("hold", "c1", what="it")]), Reply("Ok"), Reply("Done")
            )
            async with self.runtime_with(bench.services(self.new_storage(), subagent=True)) as runtime:
                listener = Listener(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                await bench.held.wait()
                assert list(bench.intents.open_calls) == ["c1"]
                tool, namespace = bench.intents.open_calls["c1"]
                bench.release.set()
                await listener.task
            (place,) = {f.namespace for f in listener.frames if f.data.get("tool_call_id") == "t1"}
            assert (tool, namespace) == ("hold", place), "the namespace is the subagent's"
            assert bench.journal == ["open c1", "hold it", "left it", "close c1"]

        self.run(scenario())

    @pytest.mark.parametrize("subagent", [False, True])
    def test_a_tool_whose_intent_cannot_be_stored_does_not_run_and_the_turn_ends_with_the_reason(
        self, *, subagent: bool
    ) -> None:
        async def scenario() -> None:
            bench = Workbench()
            bench.intents.refusing = Conflict("lease_lost", "another server has this run")
            replies = [Reply(tool_calls=[TASK])] if subagent else []
            model, choice = model_of(*replies, Reply(tool_calls=[call("note", "c1", text="a")]))
            async with self.runtime_with(bench.services(self.new_storage(), subagent=subagent)) as runtime:
                with pytest.raises(Conflict) as caught:
                    await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
            assert caught.value.code == "lease_lost"
            assert bench.journal == []
            assert len(model.calls) == (2 if subagent else 1)

        self.run(scenario())

    @pytest.mark.parametrize("subagent", [False, True])
    def test_after_a_crash_what_has_its_result_is_settled_and_only_the_rest_runs_again(self, *, subagent: bool) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("note", "c1", text="a"), call("hold", "c2", what="it")]
            around = [Reply(tool_calls=[TASK])] if subagent else []
            after = [Reply("Reported")] if subagent else []
            model, choice = model_of(*around, Reply(tool_calls=calls), *after, Reply("Done"))
            async with self.runtime_with(bench.services(storage, subagent=subagent)) as runtime:
                listener = Listener(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                await bench.held.wait()
                await bench.intents.closed.wait()
                assert list(bench.intents.open_calls) == ["c2"], "a finished sibling is closed while another one works"
                await listener.abandon()
            assert list(bench.intents.open_calls) == ["c2"], "nobody knows what became of it"
            bench.journal.clear()
            async with self.runtime_with(bench.services(storage, subagent=subagent)) as runtime:
                assert await settled(runtime, "c1", "c2", "other") == {"c1"}
                bench.release.set()
                again = turn(choice, said("go"), recover=True, intents=bench.intents)
                frames = await frames_of(runtime.start(again))
                assert await settled(runtime, "t1" if subagent else "c2") == {"t1" if subagent else "c2"}
            assert text_of(frames) == ("ReportedDone" if subagent else "Done")
            assert bench.runs == ["hold it", "left it"]
            assert not bench.intents.open_calls
            results = [m for m in model.calls[-2 if subagent else -1].messages if m.type == "tool"]
            assert [result.text for result in results] == ["noted a", "held it"]

        self.run(scenario())

    @pytest.mark.parametrize("subagent", [False, True])
    def test_an_intent_that_a_crash_left_open_beside_a_stored_result_is_closed_by_the_recovery(
        self, *, subagent: bool
    ) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            intents = ForgetfulIntents(bench.journal)
            calls = [call("note", "c1", text="a"), call("hold", "c2", what="it")]
            around = [Reply(tool_calls=[TASK])] if subagent else []
            after = [Reply("Reported")] if subagent else []
            _, choice = model_of(*around, Reply(tool_calls=calls), *after, Reply("Done"))
            async with self.runtime_with(bench.services(storage, subagent=subagent)) as runtime:
                listener = Listener(runtime.start(turn(choice, said("go"), intents=intents)))
                await bench.held.wait()
                await intents.closed.wait()
                await listener.abandon()
            assert set(intents.open_calls) == {"c1", "c2"}
            bench.intents.open_calls.update(intents.open_calls)
            bench.journal.clear()
            async with self.runtime_with(bench.services(storage, subagent=subagent)) as runtime:
                assert await settled(runtime, "c1", "c2") == {"c1"}
                bench.release.set()
                await frames_of(runtime.start(turn(choice, said("go"), recover=True, intents=bench.intents)))
            assert bench.journal[0] == "close c1"
            assert bench.runs == ["hold it", "left it"]
            assert not bench.intents.open_calls

        self.run(scenario())

    def test_a_resumed_turn_that_died_takes_its_answers_again_and_runs_no_approved_tool_twice(self) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("send", "c1", to="ada"), call("send", "c2", to="bob"), call("hold", "c3", what="it")]
            _, choice = model_of(Reply(tool_calls=calls[:2]), Reply(tool_calls=calls[2:]), Reply("Done"))
            async with self.runtime_with(bench.services(storage)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                answers = {
                    request_for(frames, "c1"): decided("approve"),
                    request_for(frames, "c2"): decided("reject", message="no"),
                }
                listener = Listener(runtime.start(turn(choice, run_id="run-2", answers=answers, intents=bench.intents)))
                await bench.held.wait()
                await listener.abandon()
            bench.journal.clear()
            async with self.runtime_with(bench.services(storage)) as runtime:
                bench.release.set()
                again = turn(choice, run_id="run-2", answers=answers, recover=True, intents=bench.intents)
                after = await frames_of(runtime.start(again))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert text_of(after) == "Done"
            assert not requests(after)
            assert bench.runs == ["hold it", "left it"]
            assert state is not None
            assert "no" in tool_results(state["values"])["c2"][1]

        self.run(scenario())
