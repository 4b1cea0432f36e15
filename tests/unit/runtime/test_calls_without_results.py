"""Tool calls that cannot be run or never were: the model is told, the turn goes on, and nothing runs or is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, InvalidToolCall, ToolCall, ToolMessage
from langchain_core.tools import tool

from pizzabot.testing.runtime_contract import call, text_of
from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime.malformed import MAX_TOLD, as_calls, shortened
from pizzabot_builtin_plugins.deepagents_runtime.unanswered import MALFORMED, NO_RESULT, answered
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool

from .agent_rig import agent, run

sent: list[str] = []


@tool
async def send(to: str = "everybody") -> str:
    """Send a letter."""
    sent.append(to)
    return f"sent to {to}"


CUT_OFF = {"name": "send", "id": "c1", "args": '{"to": "ann', "type": "tool_call"}


@pytest.mark.parametrize("approval", [None, DECISIONS])
def test_a_call_with_arguments_that_are_cut_off_is_not_run_or_asked_about_and_the_model_tries_again(
    tmp_path: Path, approval: Any
) -> None:
    sent.clear()

    async def scenario() -> None:
        async with agent(tmp_path, tools=[AgentTool(tool=send, approval=approval)]) as one:
            model = ScriptedModel(script=[Reply(tool_calls=[CUT_OFF]), Reply("I see")])
            frames = await one.say(model)
            assert not [frame for frame in frames if frame.method == "input.requested"]
            assert "I see" in text_of(frames)
            status, text = (await one.results())["c1"]
            assert status == "error"
            assert "not valid JSON" in text
            assert '{"to": "ann' in text
            handed = model.calls[1].messages[-1]
            assert isinstance(handed, ToolMessage)
            assert handed.tool_call_id == "c1"
            (answer,) = [message for message in model.calls[1].messages if isinstance(message, AIMessage)]
            assert [made["args"] for made in answer.tool_calls] == [{}]
            assert not answer.invalid_tool_calls

    run(scenario())
    assert sent == []


def test_the_other_calls_of_the_same_answer_are_run(tmp_path: Path) -> None:
    sent.clear()

    async def scenario() -> None:
        async with agent(tmp_path, tools=[AgentTool(tool=send, repeatable=True)]) as one:
            both = [call("send", "good", to="bob"), CUT_OFF]
            await one.say(ScriptedModel(script=[Reply(tool_calls=both), Reply("done")]))
            results = await one.results()
            assert results["good"] == ("success", "sent to bob")
            assert results["c1"][0] == "error"

    run(scenario())
    assert sent == ["bob"]


def test_a_model_that_never_writes_json_ends_at_the_limit_of_the_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, tools=[AgentTool(tool=send)]) as one:
            model = ScriptedModel(script=lambda messages: Reply(tool_calls=[{**CUT_OFF, "id": f"c{len(messages)}"}]))
            frames = await one.say(model)
            assert "I stopped here" in text_of(frames)
            assert len(model.calls) == 40

    run(scenario())


def test_a_call_without_a_result_in_a_written_state_is_answered_for_the_model_and_the_state_stays(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, tools=[AgentTool(tool=send)]) as one:
            await one.say(ScriptedModel(script=[Reply("hello")]))
            written: Any = {"type": "ai", "id": "w1", "content": "", "tool_calls": [call("send", "lost", to="ann")]}
            await one.runtime.update_state(
                "thread-1", {"messages": [written]}, as_node=None, checkpoint_id=None, caller=LOCAL
            )
            model = ScriptedModel(script=[Reply("done")])
            await one.say(model, "and now?")
            handed = model.calls[0].messages
            at = next(index for index, message in enumerate(handed) if message.id == "w1")
            result = handed[at + 1]
            assert isinstance(result, ToolMessage)
            assert (result.tool_call_id, result.text) == ("lost", NO_RESULT)
            assert "lost" not in await one.results()

    run(scenario())


def test_only_what_is_missing_is_answered_behind_its_own_message() -> None:
    asks = AIMessage(
        "",
        tool_calls=[ToolCall(name="a", args={}, id="1", type="tool_call"), ToolCall(name="b", args={}, id="2")],
        invalid_tool_calls=[InvalidToolCall(name=None, args="{", id="3", error=None, type="invalid_tool_call")],
    )
    done = ToolMessage("ok", tool_call_id="1")
    assert answered([HumanMessage("x"), AIMessage("y")]) is None
    whole = answered([asks, done, HumanMessage("next")])
    assert whole is not None
    told = [(message.tool_call_id, message.text) for message in whole if isinstance(message, ToolMessage)]
    assert told == [("2", NO_RESULT), ("3", MALFORMED), ("1", "ok")]


def test_blocks_of_malformed_calls_become_blocks_of_calls_and_one_without_an_id_goes() -> None:
    broken = {"type": "invalid_tool_call", "id": "1", "name": "a", "args": "{", "error": "?"}
    nameless = {"type": "invalid_tool_call", "id": None, "name": None, "args": "{", "error": "?"}
    message = AIMessage([{"type": "text", "text": "so"}, broken, nameless], invalid_tool_calls=[broken, nameless])  # type: ignore[list-item]
    mended = as_calls(message)
    assert mended.content == [
        {"type": "text", "text": "so"},
        {"type": "tool_call", "id": "1", "name": "a", "args": {}},
    ]
    assert [made["id"] for made in mended.tool_calls] == ["1"]
    assert mended.invalid_tool_calls == []


def test_of_long_arguments_the_beginning_and_the_end_are_told() -> None:
    text = shortened("a" * MAX_TOLD + "b" * 10 + "c" * MAX_TOLD)
    assert text == f"{'a' * MAX_TOLD}\n[10 characters]\n{'c' * MAX_TOLD}"
    assert shortened("short") == "short"
