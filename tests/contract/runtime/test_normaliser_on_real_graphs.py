"""Frames of real turns with tools, subagents and interrupts, row by row of design/wire.md §9."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from pizzabot.testing.runtime_contract import conversation, text_of
from pizzabot_hookspecs.wire import Frame

from .deep_graph import DeepGraph


def frames(said: str) -> list[Frame]:
    return asyncio.run(DeepGraph().frames(said))


def of(told: Sequence[Frame], method: str) -> list[Frame]:
    return [frame for frame in told if frame.method == method]


def at(told: Sequence[Frame], event: str) -> Frame:
    """The one frame whose data has this `event`."""
    (found,) = [frame for frame in told if frame.data.get("event") == event]
    return found


def test_every_frame_of_every_turn_is_plain_json() -> None:
    for said in ("hello", "add", "deploy", "delegate", "delegate a question", "notice"):
        for frame in frames(said):
            assert json.loads(json.dumps(frame.data, allow_nan=False)) == frame.data


def test_the_roots_tokens_are_at_the_node_that_says_them() -> None:
    messages = of(frames("hello"), "messages")
    ((segment,),) = {frame.namespace for frame in messages}
    assert segment.startswith("model_request:")
    assert {frame.node for frame in messages} == {"model"}
    assert len({frame.data["run_id"] for frame in messages}) == 1


def test_streamed_tool_arguments_have_the_form_that_every_sdk_accepts() -> None:
    told = of(frames("add"), "messages")
    pieces = [f.data for f in told if f.data["event"] == "content-block-delta" and "content" in f.data]
    assert [piece["content"]["type"] for piece in pieces] == ["tool_call_chunk"] * len(pieces)
    assert json.loads("".join(piece["content"]["args"] for piece in pieces)) == {"a": 20, "b": 22}
    assert not [frame for frame in told if "tool-call-delta" in json.dumps(frame.data)]


def test_a_tool_runs_in_its_tasks_own_namespace() -> None:
    started, finished = of(frames("add"), "tools")
    (segment,) = started.namespace
    assert segment.startswith("tools:")
    assert finished.namespace == started.namespace
    assert finished.data["output"]["type"] == "tool"
    assert finished.data["output"]["content"] == "42"


def test_a_subagent_lives_at_the_namespace_of_its_task() -> None:
    told = frames("delegate")
    task = next(frame for frame in told if frame.data.get("tool_name") == "task")
    (segment,) = task.namespace
    lifecycle = of(told, "lifecycle")
    assert [(frame.data["event"], frame.namespace) for frame in lifecycle] == [
        ("started", (segment,)),
        ("completed", (segment,)),
    ]
    assert "namespace" not in lifecycle[0].data
    inner_tool = next(frame for frame in told if frame.data.get("tool_name") == "add")
    assert inner_tool.namespace[0] == segment
    assert inner_tool.namespace[1].startswith("tools:")
    inner_words = [frame for frame in of(told, "messages") if len(frame.namespace) > 1]
    assert {frame.namespace[0] for frame in inner_words} == {segment}
    assert all(frame.namespace[1].startswith("model_request:") for frame in inner_words)


def test_a_subagents_result_is_recognisable_as_a_command() -> None:
    finished = [frame for frame in of(frames("delegate"), "tools") if frame.data["event"] == "tool-finished"][-1]
    assert finished.data["output"]["lg_name"] == "Command"
    (message,) = finished.data["output"]["update"]["messages"]
    assert message["type"] == "tool"
    assert message["tool_call_id"] == "call-task"


def test_a_ready_made_answer_is_told_like_a_streamed_one() -> None:
    notice = [frame for frame in of(frames("notice"), "messages") if frame.node == "Notice.after_agent"]
    assert [frame.data["event"] for frame in notice] == [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "content-block-finish",
        "message-finish",
    ]
    assert text_of(notice) == "NOTICE: limit reached"
    assert {frame.data["run_id"] for frame in notice} == {notice[0].data["id"]}


def test_a_checkpoint_comes_right_before_the_values_of_its_namespace() -> None:
    for said in ("hello", "add", "delegate"):
        told = frames(said)
        for index, frame in enumerate(told):
            if frame.method == "values":
                before = [f for f in told[:index] if f.method in ("checkpoints", "values")]
                mine = [f for f in before if f.namespace == frame.namespace]
                assert mine[-1].method == "checkpoints"
                assert set(mine[-1].data) <= {"id", "parent_id", "step", "source"}


def test_full_state_goes_out_with_each_step_that_adds_a_message_and_right_behind_its_checkpoint() -> None:
    told = frames("delegate")
    root = [frame for frame in of(told, "values") if not frame.namespace]
    inner = [frame for frame in of(told, "values") if frame.namespace]
    assert [kind for kind, _ in conversation(root[0].data)] == ["human"]
    assert [kind for kind, _ in conversation(root[-1].data)] == ["human", "ai", "tool", "ai"]
    grown = [[kind for kind, _ in conversation(frame.data)] for frame in root]
    assert grown[:3] == [["human"], ["human", "ai"], ["human", "ai", "tool"]]
    for frame in root[:-1]:
        before = told[told.index(frame) - 1]
        assert (before.method, before.namespace) == ("checkpoints", ()), "clients take a message's place from it"
    assert conversation(inner[0].data) == [("human", "sub: add")]
    assert told.index(inner[-1]) < told.index(at(told, "completed"))
    assert told[-1].method in ("values", "checkpoints")


def test_an_interrupt_is_asked_once_after_the_state_it_interrupts() -> None:
    told = frames("deploy")
    (asked,) = of(told, "input.requested")
    assert told[-1] is asked
    assert told[-2].method == "values"
    assert "__interrupt__" not in told[-2].data
    assert [kind for kind, _ in conversation(told[-2].data)] == ["human", "ai"]
    payload = asked.data["payload"]
    assert asked.data["value"] == payload
    assert payload["action_requests"] == payload["actionRequests"]
    assert payload["actionRequests"][0]["args"] == {"env": "prod"}
    assert payload["reviewConfigs"][0]["actionName"] == "deploy"
    assert payload["reviewConfigs"][0]["allowedDecisions"] == payload["review_configs"][0]["allowed_decisions"]


def test_an_interrupt_inside_a_subagent_belongs_to_the_subagent() -> None:
    told = frames("delegate a question")
    (asked,) = of(told, "input.requested")
    (segment,) = asked.namespace
    assert segment.startswith("tools:")
    assert asked.data["payload"] == {"question": "colour?"}
    assert at(told, "interrupted").namespace == (segment,)


def test_a_resumed_turn_is_told_from_the_state_it_resumes_to_its_end() -> None:
    async def scenario() -> tuple[list[Frame], list[Frame]]:
        graph = DeepGraph()
        return await graph.frames("delegate a question"), await graph.resume("red")

    before, after = asyncio.run(scenario())
    assert before
    assert "the person said red" in text_of(after)
    last: Any = of(after, "values")[-1]
    assert last.namespace == ()
    assert [kind for kind, _ in conversation(last.data)] == ["human", "ai", "tool", "ai"]
    assert [frame.data["event"] for frame in of(after, "lifecycle")] == ["started", "completed"]
