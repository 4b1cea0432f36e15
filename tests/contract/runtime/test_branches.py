"""Branching on real SQLite files: 130 turns exact, states in the middle of a step, subagents, copies that fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pizzabot.testing.runtime_contract import (
    Listener,
    asked,
    call,
    conversation,
    frames_of,
    requests,
    said,
    tool_results,
    turn,
)
from pizzabot.testing.runtime_contract.branches import branch, echoing, ends, now, say, turns, up_to
from pizzabot.testing.runtime_contract.workbench import Workbench
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime import checkpoint_copies
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs import LOCAL, TooLarge, Unavailable
from pizzabot_hookspecs.agent_runtimes import RuntimeServices

from .files import FileStorage

TURNS = 130
PLACES = (0, 65, 129)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


@asynccontextmanager
async def runtime_over(path: Path, *, subagent: bool | None = None) -> AsyncIterator[DeepAgentsRuntime]:
    """With the workbench's tools for the orchestrator or for a subagent, where that is said."""
    storage = FileStorage(path)
    services = RuntimeServices(graph_storage=storage)
    if subagent is not None:
        services = Workbench().services(storage, subagent=subagent)
    try:
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            await runtime.prepare(services)
            yield runtime
    finally:
        await storage.close()


def test_branches_at_the_first_a_middle_and_the_last_of_130_turns_are_exact_also_after_a_restart(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        model = echoing()
        async with runtime_over(tmp_path / "storage") as runtime:
            told = [ends(frames) for frames in await turns(runtime, chosen(model), TURNS)]
        for again in ("once", "twice"):
            async with runtime_over(tmp_path / "storage") as runtime:
                for place in PLACES:
                    await branch(runtime, chosen(model), told[place][0], f"{again}-{place}")
                    assert asked(model.calls[-1].messages) == [*up_to(place), ("human", f"{again}-{place}")]
                    await say(runtime, chosen(model), "on")
                    pair = [("human", f"{again}-{place}"), ("ai", f"you said {again}-{place}")]
                    assert asked(model.calls[-1].messages) == [*up_to(place), *pair, ("human", "on")]
                    assert await now(runtime, told[place][1]) == up_to(place + 1)

    run(scenario())


def test_going_to_and_copying_at_the_first_a_middle_and_the_last_of_130_turns_is_exact(tmp_path: Path) -> None:
    async def scenario() -> None:
        model = echoing()
        async with runtime_over(tmp_path / "storage") as runtime:
            told = [ends(frames) for frames in await turns(runtime, chosen(model), TURNS)]
            for place in PLACES:
                await runtime.copy_thread("thread-1", told[place][1], f"copy-{place}", caller=LOCAL)
        async with runtime_over(tmp_path / "storage") as runtime:
            for place in PLACES:
                await runtime.go_to("thread-1", told[place][1], caller=LOCAL)
                await say(runtime, chosen(model), "on")
                assert asked(model.calls[-1].messages) == [*up_to(place + 1), ("human", "on")]
                assert await now(runtime, thread_id=f"copy-{place}") == up_to(place + 1)
                await say(runtime, chosen(model), "on", thread_id=f"copy-{place}")
                assert asked(model.calls[-1].messages) == [*up_to(place + 1), ("human", "on")]
                await branch(runtime, chosen(model), told[place][0], "edit", thread_id=f"copy-{place}")
                assert asked(model.calls[-1].messages) == [*up_to(place), ("human", "edit")]

    run(scenario())


@pytest.mark.parametrize("able", [True, False])
def test_a_state_that_waited_for_an_approval_waits_no_more_where_it_is_gone_to(tmp_path: Path, able: bool) -> None:
    async def scenario() -> None:
        model = ScriptedModel(
            script=[Reply("", tool_calls=[call("send", "c1", to="ada")]), Reply("Instead"), Reply("Then")]
        )
        async with runtime_over(tmp_path / "storage", subagent=False) as runtime:
            frames = await frames_of(runtime.start(turn(chosen(model), said("send it"))))
            assert requests(frames)
            assert ends(frames)[1] == await runtime.tip("thread-1", caller=LOCAL)
            await say(runtime, chosen(model), "no, this")
            copied = await runtime.go_to("thread-1", ends(frames)[1], caller=LOCAL)
            state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            assert state["checkpoint"] is not None
            assert state["checkpoint"]["checkpoint_id"] == copied
            assert (state["next"], state["interrupts"]) == ([], [])
            assert tool_results(state["values"]).keys() == {"c1"}
            await say(runtime, chosen(model, supports_tools=able), "and now")
            assert [kind for kind, _ in asked(model.calls[-1].messages)] == ["human", "ai", "tool", "human"]

    run(scenario())


def test_a_copied_thread_has_what_its_subagents_did(tmp_path: Path) -> None:
    async def scenario() -> None:
        task = call("task", "t1", description="look around", subagent_type="worker")
        replies = [Reply("", tool_calls=[task]), Reply("", tool_calls=[call("look", "c1", what="here")])]
        model = ScriptedModel(script=[*replies, Reply("seen"), Reply("done"), Reply("more")])
        async with runtime_over(tmp_path / "storage", subagent=True) as runtime:
            frames = await frames_of(runtime.start(turn(chosen(model), said("delegate"))))
            below = next(frame.namespace for frame in frames if frame.method == "checkpoints" and frame.namespace)
            await say(runtime, chosen(model), "more")
            await runtime.copy_thread("thread-1", ends(frames)[1], "thread-2", caller=LOCAL)

            async def history(thread_id: str) -> list[list[tuple[str, str]]]:
                states = await runtime.history(thread_id, limit=100, before=None, namespace=below, caller=LOCAL)
                return [conversation(state["values"]) for state in states]

            assert len(await history("thread-2")) > 3
            assert await history("thread-2") == await history("thread-1")
            assert await runtime.settled_calls("thread-2", ["t1"], caller=LOCAL) == {"t1"}

    run(scenario())


@pytest.mark.parametrize("limit", [0, 1])
def test_a_copy_that_is_too_large_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(checkpoint_copies, "COPIED_LIMIT", limit)

    async def scenario() -> None:
        model = echoing()
        async with runtime_over(tmp_path / "storage") as runtime:
            (first,) = await turns(runtime, chosen(model), 1)
            with pytest.raises(TooLarge) as refused:
                await runtime.copy_thread("thread-1", ends(first)[1], "thread-2", caller=LOCAL)
            assert refused.value.code == "thread_too_large"
            assert await runtime.tip("thread-2", caller=LOCAL) is None

    run(scenario())


def test_a_copy_that_fails_in_the_middle_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        model = echoing()
        async with runtime_over(tmp_path / "storage") as runtime:
            (_, second) = await turns(runtime, chosen(model), 2)
            assert runtime._engine is not None
            saver, put, puts = runtime._engine.checkpointer, runtime._engine.checkpointer.aput, 0

            async def failing(*asked: Any) -> Any:
                nonlocal puts
                puts += 1
                if puts > 3:
                    raise Unavailable("storage_failed", "the disk is full")
                return await put(*asked)

            monkeypatch.setattr(saver, "aput", failing)
            with pytest.raises(Unavailable):
                await runtime.copy_thread("thread-1", ends(second)[1], "thread-2", caller=LOCAL)
            assert await runtime.tip("thread-2", caller=LOCAL) is None
            assert await now(runtime) == up_to(2)

    run(scenario())


def test_a_message_that_is_taken_back_for_its_length_leaves_a_told_checkpoint(tmp_path: Path) -> None:
    async def scenario() -> None:
        model = ScriptedModel(script=lambda _: Reply(error=ValueError("this is over the context window")))
        async with runtime_over(tmp_path / "storage") as runtime:
            listener = Listener(runtime.start(turn(chosen(model), said("hi"))))
            with pytest.raises(ValueError, match="context window"):
                await listener.task
            assert ends(listener.frames)[1] == await runtime.tip("thread-1", caller=LOCAL)
            assert await now(runtime) == []

    run(scenario())


def test_a_turn_without_a_message_on_a_finished_checkpoint_goes_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        model = echoing()
        async with runtime_over(tmp_path / "storage") as runtime:
            told = [ends(frames) for frames in await turns(runtime, chosen(model), 2)]
            again = turn(chosen(model), run_id="again", config={"checkpoint_id": told[0][1]})
            frames = await frames_of(runtime.start(again))
            assert ends(frames)[1] == await runtime.tip("thread-1", caller=LOCAL)
            assert await now(runtime) == up_to(1)

    run(scenario())
