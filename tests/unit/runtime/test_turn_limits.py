"""What a turn may do at most: tool calls and model calls, of each agent by itself, approvals or not (spec/05 §3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool

from pizzabot.testing.runtime_contract import call, decided, request_for, text_of
from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime.limits import MAX_MODEL_CALLS, LastReport, without_tool_protocol
from pizzabot_builtin_plugins.deepagents_runtime.truncation import NOTICE, was_cut, with_notice
from pizzabot_hookspecs.agent_runtimes import SubagentSpec
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool

from .agent_rig import agent, run


@tool
async def look(what: str) -> str:
    """Look at something."""
    return f"saw {what}"


@tool
async def send(to: str) -> str:
    """Send a letter."""
    return f"sent to {to}"


LOOK = AgentTool(tool=look, repeatable=True)
SEND = AgentTool(tool=send, approval=DECISIONS)


def looking(count: int, *, at_once: int = 1) -> list[Reply]:
    """Replies that look `count` times, so many in each."""
    calls = [call("look", f"c{number}", what=str(number)) for number in range(count)]
    return [Reply(tool_calls=calls[start : start + at_once]) for start in range(0, count, at_once)]


def test_calls_beyond_the_limit_are_refused_the_turn_ends_with_a_word_and_the_next_has_a_fresh_budget(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, tools=[LOOK]) as one:
            one.settings = replace(one.settings, max_tool_calls=3)
            model = ScriptedModel(script=looking(4, at_once=2))
            frames = await one.say(model)
            results = await one.results()
            assert [results[f"c{number}"][0] for number in range(4)] == ["success", "success", "success", "error"]
            assert "3 tool calls" in results["c3"][1]
            assert len(model.calls) == 2
            assert "3 tool calls" in text_of(frames)
            assert (await one.values())["messages"][-1]["type"] == "ai"
            again = ScriptedModel(script=[*looking(1), Reply("done")])
            assert "done" in text_of(await one.say(again))

    run(scenario())


def test_no_limit_of_tool_calls_leaves_the_limit_of_model_calls_which_ends_the_turn_with_a_word(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, tools=[LOOK]) as one:
            one.settings = replace(one.settings, max_tool_calls=-1)
            model = ScriptedModel(script=looking(MAX_MODEL_CALLS + 5))
            frames = await one.say(model)
            assert len(model.calls) == MAX_MODEL_CALLS
            assert f"{MAX_MODEL_CALLS} steps" in text_of(frames)
            assert all(status == "success" for status, _ in (await one.results()).values())

    run(scenario())


def test_the_budget_of_a_turn_goes_on_after_each_approval(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, tools=[SEND]) as one:
            one.settings = replace(one.settings, max_tool_calls=3)
            model = ScriptedModel(
                script=[Reply(tool_calls=[call("send", f"c{number}", to=str(number))]) for number in range(6)]
            )
            frames = await one.say(model)
            for number in range(3):
                asked = request_for(frames, f"c{number}")
                frames = await one.say(model, answers={asked: decided("approve")})
            results = await one.results()
            assert [results[f"c{number}"][0] for number in range(4)] == ["success"] * 3 + ["error"]
            assert "3 tool calls" in text_of(frames)
            assert len(model.calls) == 4

    run(scenario())


def subagent_and_orchestrator(count: int) -> Any:
    """A script in which the subagent looks as long as it may, and the orchestrator hands over twice at once."""

    def script(messages: Sequence[BaseMessage]) -> Reply:
        system = str(messages[0].content)
        if not system.startswith("You look."):
            done = [message for message in messages if isinstance(message, ToolMessage)]
            tasks = [call("task", f"t{n}", description=f"look {n}", subagent_type="looker") for n in range(2)]
            return Reply("both are back") if done else Reply(tool_calls=tasks)
        if "last step" in system:
            assert not any(isinstance(message, ToolMessage) for message in messages)
            assert not any(isinstance(message, AIMessage) and message.tool_calls for message in messages)
            return Reply(f"report after {sum('Tool result from look' in str(m.content) for m in messages)} looks")
        made = sum(isinstance(message, AIMessage) for message in messages)
        assert made < count
        return Reply(tool_calls=[call("look", f"c{made}", what=str(made))])

    return script


@pytest.mark.parametrize(("limit", "looks"), [(-1, MAX_MODEL_CALLS - 1), (5, 6)])
def test_a_subagents_last_call_has_no_tools_and_reports_what_there_is_each_of_two_for_itself(
    tmp_path: Path, limit: int, looks: int
) -> None:
    looker = SubagentSpec(name="looker", description="looks", prompt="You look.", tools=(LOOK,))

    async def scenario() -> None:
        async with agent(tmp_path, team=[looker]) as one:
            one.settings = replace(one.settings, max_subagent_tool_calls=limit)
            model = ScriptedModel(script=subagent_and_orchestrator(MAX_MODEL_CALLS))
            await one.say(model)
            results = await one.results()
            assert results["t0"] == results["t1"] == ("success", f"report after {looks} looks")
            last = [each for each in model.calls if "last step" in str(each.messages[0].content)]
            assert [each.tools for each in last] == [(), ()]

    run(scenario())


def test_a_subagent_that_may_call_no_model_is_a_fault_of_the_program() -> None:
    with pytest.raises(ValueError, match="at least one"):
        LastReport(0)


def test_a_history_without_tool_protocol_says_in_words_what_was_called_and_what_came_back() -> None:
    calls: Any = [call("look", "c1", what="x"), call("look", "c2", what="y")]
    history: Any = [
        HumanMessage("look"),
        AIMessage("I will", tool_calls=calls, id="a"),
        ToolMessage("saw x", tool_call_id="c1", name="look"),
        ToolMessage("saw y", tool_call_id="c2", name="look"),
        AIMessage("done", id="b"),
    ]
    plain = without_tool_protocol(history)
    assert [message.type for message in plain] == ["human", "ai", "human", "ai"]
    assert plain[1].text.startswith("I will\n")
    assert 'look({"what": "x"})' in plain[1].text
    assert plain[2].text == "Tool result from look:\nsaw x\n\nTool result from look:\nsaw y"
    assert plain[3] is history[4]


@pytest.mark.parametrize("key", ["finish_reason", "stop_reason", "finishReason", "stopReason"])
@pytest.mark.parametrize("reason", ["length", "MAX_TOKENS", "max-output-tokens", "token_limit", "max_token"])
def test_a_cut_report_says_so_for_every_spelling_of_the_reason(key: str, reason: str) -> None:
    message = AIMessage("half a rep", response_metadata={key: reason})
    assert was_cut(message)
    assert with_notice(message).text == f"half a rep\n\n{NOTICE}"
    assert message.text == "half a rep"
    blocks = with_notice(AIMessage([{"type": "text", "text": "half"}]))
    assert "OUTPUT_TRUNCATED" in blocks.text
    assert not was_cut(AIMessage("whole", response_metadata={key: "stop"}))
