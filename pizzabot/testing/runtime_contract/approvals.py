"""Calls that a person decides: one interrupt each, answered in any order and any number, each run at most once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pizzabot.testing.runtime_contract.base import RuntimeContract
from pizzabot.testing.runtime_contract.kit import (
    asked,
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
from pizzabot_hookspecs import LOCAL, InvalidRequest, NotFound

SEND = {
    "approve": (decided("approve"), ["send ada"], "success", "sent to ada"),
    "edit": (decided("edit", edited_action={"name": "send", "args": {"to": "bob"}}), ["send bob"], "success", "to bob"),
    "reject": (decided("reject", message="not her"), [], "error", "not her"),
    "reject without a reason": (decided("reject"), [], "error", "refused"),
    "respond": (decided("respond", message="I phoned her"), [], "success", "I phoned her"),
}
"""Answers to `send` to ada: the answer, what then runs, and the status and a part of the call's result."""

MALFORMED: list[Any] = [
    {},
    "approve",
    {"type": "approve"},
    {"decisions": []},
    {"decisions": [{"type": "approve"}, {"type": "approve"}]},
    decided("maybe"),
    decided("edit"),
    decided("edit", edited_action={"name": "note", "args": {"text": "x"}}),
    decided("edit", edited_action={"name": "send", "args": {"to": {"no": "text"}}}),
    decided("respond"),
    decided("reject", message=3),
]


class ApprovalContract(RuntimeContract):
    def test_a_gated_call_waits_and_says_what_it_would_do_and_how_it_may_be_decided(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            _, choice = model_of(Reply("I'd write. ", tool_calls=[call("send", "c1", to="ada")]))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert bench.journal == []
            assert frames[-1].method == "input.requested"
            ((interrupt_id, data),) = requests(frames).items()
            payload = data["payload"]
            assert data["kind"] == "approval"
            assert data["value"] == payload
            (action,) = payload["action_requests"]
            assert (action["name"], action["args"]) == ("send", {"to": "ada"})
            assert "Send a letter." in action["description"]
            assert action["args_schema"]["properties"]["to"]["type"] == "string"
            (review,) = payload["review_configs"]
            assert review["action_name"] == review["actionName"] == "send"
            assert sorted(review["allowed_decisions"]) == ["approve", "edit", "reject", "respond"]
            assert review["allowedDecisions"] == review["allowed_decisions"]
            assert payload["actionRequests"] == payload["action_requests"]
            assert payload["reviewConfigs"] == payload["review_configs"]
            assert action["argsSchema"] == action["args_schema"]
            assert state is not None
            assert [item["id"] for item in state["interrupts"]] == [interrupt_id]

        self.run(scenario())

    @pytest.mark.parametrize("kind", SEND)
    def test_a_decision_is_honoured(self, kind: str) -> None:
        answer, runs, status, text = SEND[kind]

        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            model, choice = model_of(Reply(tool_calls=[call("send", "c1", to="ada")]), Reply("Very well"))
            async with self.runtime_with(bench.services(storage)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
            async with self.runtime_with(bench.services(storage)) as runtime:
                resumed = turn(
                    choice, run_id="run-2", answers={request_for(frames, "c1"): answer}, intents=bench.intents
                )
                after = await frames_of(runtime.start(resumed))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert bench.runs == runs
            assert text_of(after) == "Very well"
            assert not requests(after)
            assert state is not None
            assert state["interrupts"] == []
            assert tool_results(state["values"])["c1"][0] == status
            assert text in tool_results(state["values"])["c1"][1]
            assert text in asked(model.calls[1].messages)[-1][1]
            ended = [f.data["tool_call_id"] for f in after if f.data.get("event") in ("tool-finished", "tool-error")]
            assert ended == ["c1"]

        self.run(scenario())

    @pytest.mark.parametrize("order", [("c1", "c2", "c3"), ("c3", "c2", "c1")])
    def test_parallel_approvals_are_answered_one_by_one_in_any_order_and_run_once(self, order: tuple[str, ...]) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("send", "c1", to="ada"), call("send", "c2", to="bob"), call("post", "c3", to="eve")]
            _, choice = model_of(Reply(tool_calls=[*calls, call("note", "c4", text="x")]), Reply("All done"))
            async with self.runtime_with(bench.services(storage)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
            ids = {call_id: request_for(frames, call_id) for call_id in order}
            assert bench.runs == ["note x"], "what needs no approval runs at once"
            waiting = dict(ids)
            for number, call_id in enumerate(order):
                async with self.runtime_with(bench.services(storage)) as runtime:
                    answers = {waiting.pop(call_id): decided("approve")}
                    resumed = turn(choice, run_id=f"run-{number + 2}", answers=answers, intents=bench.intents)
                    frames = await frames_of(runtime.start(resumed))
                assert set(requests(frames)) == set(waiting.values()), "the rest is asked again, under the same ids"
            assert text_of(frames) == "All done"
            assert sorted(bench.runs) == ["note x", "post eve", "send ada", "send bob"]

        self.run(scenario())

    def test_some_of_the_open_approvals_may_be_answered_together_each_in_its_own_way(self) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("send", "c1", to="ada"), call("send", "c2", to="bob"), call("send", "c3", to="eve")]
            _, choice = model_of(Reply(tool_calls=[*calls, call("look", "c4", what="on")]), Reply("Done"))
            async with self.runtime_with(bench.services(storage)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                ids = {call_id: request_for(frames, call_id) for call_id in ("c1", "c2", "c3")}
                some = {ids["c1"]: decided("reject", message="no"), ids["c3"]: decided("approve")}
                frames = await frames_of(
                    runtime.start(turn(choice, run_id="run-2", answers=some, intents=bench.intents))
                )
                assert set(requests(frames)) == {ids["c2"]}
                assert bench.runs == ["look on", "send eve"]
                rest = {ids["c2"]: decided("edit", edited_action={"name": "send", "args": {"to": "kim"}})}
                await frames_of(runtime.start(turn(choice, run_id="run-3", answers=rest, intents=bench.intents)))
                state = await runtime.state("thread-1", caller=LOCAL)
            assert bench.runs == ["look on", "send eve", "send kim"]
            assert state is not None
            statuses = {key: status for key, (status, _) in tool_results(state["values"]).items()}
            assert statuses == {"c1": "error", "c2": "success", "c3": "success", "c4": "success"}

        self.run(scenario())

    @pytest.mark.parametrize("answer", MALFORMED, ids=str)
    def test_a_malformed_answer_is_refused_before_anything_runs_and_the_question_stays_open(self, answer: Any) -> None:
        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            calls = [call("send", "c1", to="ada"), call("send", "c2", to="bob")]
            _, choice = model_of(Reply(tool_calls=calls), Reply("Done"))
            async with self.runtime_with(bench.services(storage)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                ids = [request_for(frames, call_id) for call_id in ("c1", "c2")]
                mixed = {ids[0]: decided("approve"), ids[1]: answer}
                with pytest.raises(InvalidRequest) as caught:
                    await frames_of(runtime.start(turn(choice, run_id="run-2", answers=mixed, intents=bench.intents)))
                assert caught.value.code == "invalid_decision"
                assert caught.value.fields
                assert bench.runs == []
                good = dict.fromkeys(ids, decided("approve"))
                after = await frames_of(
                    runtime.start(turn(choice, run_id="run-3", answers=good, intents=bench.intents))
                )
            assert text_of(after) == "Done"
            assert sorted(bench.runs) == ["send ada", "send bob"]

        self.run(scenario())

    def test_an_answer_to_what_nobody_asks_is_refused(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            _, choice = model_of(Reply("Hello"))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                await frames_of(runtime.start(turn(choice, said("hi"), intents=bench.intents)))
                with pytest.raises(NotFound) as caught:
                    await frames_of(runtime.start(turn(choice, run_id="run-2", answers={"0" * 32: decided("approve")})))
            assert caught.value.code == "no_such_interrupt"

        self.run(scenario())

    def test_a_call_that_a_model_repeats_after_its_refusal_is_asked_about_twice_at_most(self) -> None:
        async def scenario() -> None:
            bench = Workbench()
            stubborn = [Reply(tool_calls=[call("send", f"c{number}", to="ada")]) for number in range(4)]
            other = Reply(tool_calls=[call("send", "other", to="bob")])
            model, choice = model_of(*stubborn, other, Reply("I give up"))
            async with self.runtime_with(bench.services(self.new_storage())) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                questions: list[Mapping[str, Any]] = []
                while open_ones := requests(frames):
                    questions += [data["payload"] for data in open_ones.values()]
                    answers = dict.fromkeys(open_ones, decided("reject", message="she moved"))
                    run_id = f"run-{len(questions) + 1}"
                    frames = await frames_of(
                        runtime.start(turn(choice, run_id=run_id, answers=answers, intents=bench.intents))
                    )
            assert [question["tool_call_id"] for question in questions] == ["c0", "c1", "other"]
            assert text_of(frames) == "I give up"
            assert bench.runs == []
            assert "she moved" in asked(model.calls[-1].messages)[-1][1]
            assert "she moved" in asked(model.calls[4].messages)[-1][1], "the reason is said where nobody was asked too"

        self.run(scenario())

    @pytest.mark.parametrize("kind", SEND)
    def test_a_call_of_a_subagent_is_decided_in_the_same_way(self, kind: str) -> None:
        answer, runs, status, text = SEND[kind]

        async def scenario() -> None:
            bench, storage = Workbench(), self.new_storage()
            task = call("task", "t1", description="write", subagent_type="worker")
            calls = [call("send", "c1", to="ada"), call("note", "c2", text="x")]
            model, choice = model_of(
                Reply(tool_calls=[task]), Reply(tool_calls=calls), Reply("Reported"), Reply("Over and out")
            )
            async with self.runtime_with(bench.services(storage, subagent=True)) as runtime:
                frames = await frames_of(runtime.start(turn(choice, said("go"), intents=bench.intents)))
                (question,) = [frame for frame in frames if frame.method == "input.requested"]
                assert question.namespace, "it is asked where it would happen"
                assert bench.runs == ["note x"]
                resumed = turn(
                    choice, run_id="run-2", answers={question.data["interrupt_id"]: answer}, intents=bench.intents
                )
                after = await frames_of(runtime.start(resumed))
            assert text_of(after) == "ReportedOver and out"
            assert bench.runs == ["note x", *runs]
            (result,) = [m for m in model.calls[2].messages if getattr(m, "tool_call_id", None) == "c1"]
            assert getattr(result, "status", None) == status
            assert text in result.text
            assert not bench.intents.open_calls

        self.run(scenario())
