"""A real process is killed among its tools; the next one finds out what happened, and nothing runs twice unasked."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pizzabot.testing.runtime_contract import (
    conversation,
    decided,
    frames_of,
    model_of,
    said,
    text_of,
    tool_results,
    turn,
)
from pizzabot.testing.scripted_model import Reply
from pizzabot_hookspecs import LOCAL

from . import doomed
from .doomed import FileIntents, lines, runtime_in


def killed(folder: Path, scene: str) -> str:
    """Run the scene in a process of its own and kill that where it waits; where that was."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", doomed.__file__, str(folder), scene], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        place = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    return place


async def continued(
    folder: Path, *replies: Reply, subagent: bool, calls: tuple[str, ...], **more: Any
) -> tuple[set[str], Any, str]:
    """What is settled when the next process starts; then the state and the text after its turn."""
    _, choice = model_of(*replies)
    intents = FileIntents(folder / "intents")
    async with runtime_in(folder, held=None, subagent=subagent) as runtime:
        settled = set(await runtime.settled_calls("thread-1", calls, caller=LOCAL))
        given = {"messages": (said("go"),)} if "answers" not in more else {}
        again = turn(choice, *given.get("messages", ()), recover=True, intents=intents, **more)
        frames = await frames_of(runtime.start(again))
        state = await runtime.state("thread-1", caller=LOCAL)
    return settled, state, text_of(frames)


@pytest.mark.parametrize("where", ["", " in a subagent"])
@pytest.mark.parametrize("choice", ["retry", "skip"])
def test_killed_in_a_tool(tmp_path: Path, where: str, choice: str) -> None:
    assert killed(tmp_path, f"in a tool{where}") == "holding"
    assert FileIntents(tmp_path / "intents").still_open() == {"c2"}
    assert lines(tmp_path / "runs") == ["note a", "hold it"]
    subagent = bool(where)
    replies = [Reply("Reported. "), Reply("Done")] if subagent else [Reply("Done")]
    more = {"skip": {"c2": "Skipped by the person."}} if choice == "skip" else {}
    settled, state, text = asyncio.run(continued(tmp_path, *replies, subagent=subagent, calls=("c1", "c2"), **more))
    assert settled == {"c1"}
    assert text.endswith("Done")
    assert lines(tmp_path / "runs") == ["note a", "hold it", *(["hold it"] if choice == "retry" else [])]
    assert not FileIntents(tmp_path / "intents").still_open() - ({"c2"} if choice == "skip" else set())
    if not subagent:
        results = tool_results(state["values"])
        assert results["c1"] == ("success", "noted a")
        assert results["c2"] == (("error", "Skipped by the person.") if choice == "skip" else ("success", "held it"))
    assert conversation(state["values"])[-1] == ("ai", "Done")


@pytest.mark.parametrize("where", ["", " in a subagent"])
def test_killed_between_a_stored_result_and_the_closing_of_its_intent(tmp_path: Path, where: str) -> None:
    assert killed(tmp_path, f"before the closing{where}") == "closing c1"
    assert "c1" in FileIntents(tmp_path / "intents").still_open()
    subagent = bool(where)
    replies = [Reply("Reported. "), Reply("Done")] if subagent else [Reply("Done")]
    settled, _, text = asyncio.run(continued(tmp_path, *replies, subagent=subagent, calls=("c1", "c2")))
    assert settled == {"c1"}
    assert text.endswith("Done")
    assert lines(tmp_path / "runs").count("note a") == 1
    assert not FileIntents(tmp_path / "intents").still_open()


@pytest.mark.parametrize("where", ["", " in a subagent"])
def test_killed_before_a_result_is_stored_it_is_not_settled_and_a_person_is_to_be_asked(
    tmp_path: Path, where: str
) -> None:
    assert killed(tmp_path, f"before the result is stored{where}") == "storing c1"
    assert "c1" in FileIntents(tmp_path / "intents").still_open()
    assert "note a" in lines(tmp_path / "runs")
    subagent = bool(where)
    replies = [Reply("Reported. "), Reply("Done")] if subagent else [Reply("Done")]
    skip = {"c1": "Skipped by the person."}
    settled, _, text = asyncio.run(continued(tmp_path, *replies, subagent=subagent, calls=("c1",), skip=skip))
    assert settled == set()
    assert text.endswith("Done")
    assert lines(tmp_path / "runs").count("note a") == 1


def test_killed_in_an_approved_tool_the_approval_is_not_asked_again(tmp_path: Path) -> None:
    assert killed(tmp_path, "in an approved tool") == "sending"
    assert FileIntents(tmp_path / "intents").still_open() == {"c1"}
    (asked,) = lines(tmp_path / "asked")
    again = continued(
        tmp_path,
        Reply("Done"),
        subagent=False,
        calls=("c1",),
        run_id="run-2",
        answers={asked: decided("approve")},
    )
    settled, state, text = asyncio.run(again)
    assert settled == set()
    assert text == "Done"
    assert tool_results(state["values"])["c1"] == ("success", "sent to ada")
    assert lines(tmp_path / "runs") == ["send ada", "send ada"], "retried because the turn said so"
