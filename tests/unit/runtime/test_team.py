"""A turn that goes on after a restart waits for the specialist it has called, and says who is missing if that stays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import tool

from pizzabot.testing.runtime_contract import call, decided, requests, text_of
from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime import team
from pizzabot_hookspecs.agent_runtimes import Roster, SubagentSpec, UnreadySkill
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.wire import Frame

from .agent_rig import Agent, agent, run

sent: list[str] = []


@tool
async def send(to: str) -> str:
    """Send a letter."""
    sent.append(to)
    return f"sent to {to}"


GATED = AgentTool(tool=send, approval=frozenset({"approve", "reject"}))
POSTMAN = SubagentSpec(name="postman", description="sends", prompt="You send.", tools=(GATED,))
READY = Roster(fingerprint="ready", subagents=(POSTMAN,))
LOADING = Roster(
    fingerprint="loading", unready=(UnreadySkill(name="postman", state="loading", detail="server 'post'"),)
)
GONE = Roster(
    fingerprint="gone", unready=(UnreadySkill(name="postman", state="unavailable", detail="server 'post' is error"),)
)


class Rosters:
    """A roster that changes, and whoever wants to know."""

    def __init__(self) -> None:
        self.now = READY
        self.asked = asyncio.Event()
        self._told: list[Callable[[], None]] = []

    def current(self) -> Roster:
        if self.now is LOADING:
            self.asked.set()
        return self.now

    def on_change(self, changed: Callable[[], None]) -> None:
        self._told.append(changed)

    def become(self, roster: Roster) -> None:
        self.now = roster
        for changed in self._told:
            changed()


def delegating() -> ScriptedModel:
    """The assistant hands the letter to the postman, who sends it and reports."""

    def script(messages: Sequence[BaseMessage]) -> Reply:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            return Reply(last.text)
        if "You send." in messages[0].text:
            return Reply(tool_calls=[call("send", "s", to="ann")])
        return Reply(tool_calls=[call("task", "t", description="a letter", subagent_type="postman")])

    return ScriptedModel(script=script)


async def approved(one: Agent, frames: Sequence[Frame]) -> list[Frame]:
    (asked,) = requests(frames)
    return await one.say(delegating(), answers={asked: decided("approve")})


def test_an_approved_turn_waits_until_its_specialist_is_there_again(tmp_path: Path) -> None:
    sent.clear()

    async def scenario() -> None:
        rosters = Rosters()
        async with agent(tmp_path, roster=rosters.current, on_roster_change=rosters.on_change) as one:
            frames = await one.say(delegating())
            rosters.become(LOADING)
            going = asyncio.ensure_future(approved(one, frames))
            await rosters.asked.wait()
            rosters.asked.clear()
            rosters.become(Roster(fingerprint="still", unready=LOADING.unready))
            await asyncio.sleep(0)
            assert not going.done()
            rosters.become(READY)
            assert text_of(await going) == "sent to annsent to ann"
            assert (await one.results())["t"] == ("success", "sent to ann")

    run(scenario())
    assert sent == ["ann"]


@pytest.mark.parametrize("late", [True, False])
def test_one_that_does_not_come_is_told_with_the_reason_and_nothing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    sent.clear()
    monkeypatch.setattr(team, "TEAM_SECONDS", 0.01 if late else 60)

    async def scenario() -> None:
        rosters = Rosters()
        async with agent(tmp_path, roster=rosters.current, on_roster_change=rosters.on_change) as one:
            frames = await one.say(delegating())
            rosters.become(LOADING)
            going = asyncio.ensure_future(approved(one, frames))
            await rosters.asked.wait()
            if not late:
                rosters.become(GONE)
            told = text_of(await going)
            assert "postman cannot be called now" in told
            assert ("server 'post' is error" if not late else "(loading)") in told

    run(scenario())
    assert sent == []


def test_a_turn_that_waits_for_a_specialist_can_be_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        from pizzabot.testing.runtime_contract import frames_of, turn
        from pizzabot.testing.scripted_model import chosen

        rosters = Rosters()
        async with agent(tmp_path, roster=rosters.current, on_roster_change=rosters.on_change) as one:
            (asked,) = requests(await one.say(delegating()))
            rosters.become(LOADING)
            answers: Any = {asked: decided("approve")}
            begun = one.runtime.start(turn(chosen(delegating()), run_id="waits", answers=answers, files=one.files()))
            going = asyncio.ensure_future(frames_of(begun))
            await rosters.asked.wait()
            await begun.stop()
            await going
            assert (await one.results())["t"][0] == "error"

    run(scenario())


def test_a_new_turn_waits_for_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        rosters = Rosters()
        async with agent(tmp_path, roster=rosters.current, on_roster_change=rosters.on_change) as one:
            rosters.become(LOADING)
            assert "postman cannot be called now (loading): server 'post'" in text_of(await one.say(delegating()))

    run(scenario())
