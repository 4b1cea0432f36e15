"""One more skill is one more graph to build; turns under way keep theirs; the catalogue is asked when a turn begins."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pizzabot.testing.runtime_contract import call, frames_of, said, turn
from pizzabot.testing.scripted_model import Gate, Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime import delegation
from pizzabot_builtin_plugins.deepagents_runtime.delegation import SubagentShelf
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import Subagent
from pizzabot_hookspecs.agent_runtimes import Roster, SubagentSpec

from .agent_rig import agent, run


def spec(name: str, **more: Any) -> SubagentSpec:
    return SubagentSpec(name=name, description=f"does {name}", prompt=f"You are {name}.", **more)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the subagents that were compiled, in order."""
    names: list[str] = []
    create = delegation.create_sub_agent

    def counting(given: Any, **more: Any) -> Any:
        names.append(given["name"])
        return create(given, **more)

    monkeypatch.setattr(delegation, "create_sub_agent", counting)
    return names


def test_a_skill_that_comes_changes_or_goes_builds_that_one_alone_and_counts_from_the_next_turn_on(
    tmp_path: Path, built: list[str]
) -> None:
    async def scenario() -> None:
        rosters = [Roster(fingerprint="1", subagents=(spec("a"), spec("b")))]
        async with agent(tmp_path, roster=lambda: rosters[-1]) as one:
            model = ScriptedModel(script=lambda _: Reply("ok"))
            await one.say(model)
            assert built == ["a", "b"]
            rosters.append(Roster(fingerprint="2", subagents=(spec("a"), spec("b"), spec("c"))))
            await one.say(model)
            assert built == ["a", "b", "c"]
            assert "- c: does c" in model.bound["task"].description
            rosters.append(Roster(fingerprint="3", subagents=(spec("a"), spec("c", files={"x.md": b"changed"}))))
            await one.say(model)
            assert built == ["a", "b", "c", "c"]
            rosters.append(Roster(fingerprint="4"))
            await one.say(model)
            assert "task" not in model.calls[-1].tools

    run(scenario())


def test_a_turn_under_way_goes_on_with_the_specialists_it_began_with(tmp_path: Path) -> None:
    async def scenario() -> None:
        rosters = [Roster(fingerprint="1", subagents=(spec("a"),))]
        async with agent(tmp_path, roster=lambda: rosters[-1]) as one:
            gate = Gate()
            task = call("task", "t", description="do", subagent_type="a")
            model = ScriptedModel(
                script=[Reply("wait", gate=gate, tool_calls=[task]), Reply("the report"), Reply("done")]
            )
            going = asyncio.ensure_future(one.say(model))
            await gate.reached.wait()
            rosters.append(Roster(fingerprint="2"))
            other = ScriptedModel(script=[Reply("hi")])
            await frames_of(one.runtime.start(turn(chosen(other), said("hi", "x1"), thread_id="other", run_id="o")))
            assert "task" not in other.calls[0].tools
            gate.open.set()
            await going
            assert (await one.results())["t"] == ("success", "the report")

    run(scenario())


def test_a_specialist_that_does_not_exist_and_arguments_that_task_does_not_have_are_errors_for_the_model(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with agent(tmp_path, team=[spec("a")]) as one:
            results = await one.do(
                call("task", "t1", description="do", subagent_type="general-purpose"),
                call("task", "t2", description="do", subagent_type="a", prompt="really do"),
            )
            assert "does not exist" in results["t1"][1]
            assert results["t2"][0] == "error"
            assert "prompt" in results["t2"][1]

    run(scenario())


def test_a_shelf_of_subagents_keeps_a_bounded_number() -> None:
    made: list[str] = []
    shelf = SubagentShelf(kept=2)
    chat = ScriptedModel(script=[Reply("x")])

    def parts(name: str) -> Callable[[], Any]:
        def make() -> Any:
            made.append(name)
            return [], []

        return make

    for name in ("a", "b", "a", "c", "a", "b"):
        shelf.runnable(chat, Subagent(name=name, description="d", prompt="p", tools={}), parts(name))
    assert made == ["a", "b", "c", "b"]
    assert len(shelf) == 2
