"""Whole numbers beyond 64 bits, which no checkpoint holds: the turn goes on with their digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from pizzabot.testing.runtime_contract import call, text_of
from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime.big_numbers import (
    LARGEST,
    MOST_BITS,
    SMALLEST,
    has_big,
    with_storable_calls,
    written_out,
)
from pizzabot_hookspecs.agent_tools import AgentTool

from .agent_rig import agent, run

BIG = 10**30


@tool
async def look(number: str) -> str:
    """Look a number up."""
    return f"looked up {number}"


@tool
async def count(number: int) -> str:
    """Count to a number."""
    return f"counted to {number}"


@tool(response_format="content_and_artifact")
async def measure() -> tuple[str, dict[str, Any]]:
    """Measure the sky."""
    return "far", {"stars": [BIG, 3], "near": {"least": -BIG}}


def test_a_call_with_a_number_beyond_64_bits_runs_with_its_digits_or_tells_the_model(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, tools=[AgentTool(tool=look), AgentTool(tool=count)]) as one:
            asked = [call("look", "c1", number=BIG), call("count", "c2", number=BIG)]
            frames = await one.say(ScriptedModel(script=[Reply(tool_calls=asked), Reply("done")]))
            assert text_of(frames).endswith("done")
            results = await one.results()
            assert results["c1"] == ("success", f"looked up {BIG}")
            assert results["c2"] == ("success", f"counted to {BIG}")

    run(scenario())


def test_a_structured_result_with_a_number_beyond_64_bits_is_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, tools=[AgentTool(tool=measure)]) as one:
            frames = await one.say(ScriptedModel(script=[Reply(tool_calls=[call("measure", "c1")]), Reply("done")]))
            assert text_of(frames).endswith("done")
            assert (await one.results())["c1"] == ("success", "far")

    run(scenario())


def test_only_what_cannot_be_stored_is_changed() -> None:
    kept = AIMessage("", tool_calls=[{"name": "a", "args": {"n": [SMALLEST, LARGEST, True, 1.5]}, "id": "1"}])
    assert with_storable_calls(kept) is kept
    block = {"type": "tool_use", "id": "1", "name": "a", "input": {"n": LARGEST + 1, "m": 2}}
    call_ = {"name": "a", "args": {"n": LARGEST + 1, "m": 2}, "id": "1"}
    changed = with_storable_calls(AIMessage([block], tool_calls=[call_]))  # type: ignore[list-item]
    assert changed.tool_calls[0]["args"] == {"n": str(LARGEST + 1), "m": 2}
    assert changed.content == [{**block, "input": {"n": str(LARGEST + 1), "m": 2}}]
    assert not has_big(changed.content)
    assert written_out([2**MOST_BITS]) == [hex(2**MOST_BITS)]
