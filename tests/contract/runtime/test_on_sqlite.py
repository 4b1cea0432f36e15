"""The same turns over a real SQLite file, with the saver that the storage plugins open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pizzabot.testing.runtime_contract import Listener, asked, conversation, frames_of, model_of, said, text_of, turn
from pizzabot.testing.scripted_model import Gate, Reply
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import RuntimeServices

from .files import FileStorage


@asynccontextmanager
async def runtime_over(path: Path) -> AsyncIterator[DeepAgentsRuntime]:
    storage = FileStorage(path)
    try:
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            await runtime.prepare(RuntimeServices(graph_storage=storage))
            yield runtime
    finally:
        await storage.close()


def test_a_stopped_turn_survives_a_restart_with_its_partial_text(tmp_path: Path) -> None:
    async def scenario() -> None:
        gate = Gate()
        model, choice = model_of(Reply("Once upon a time", gate=gate, gate_before=2), Reply("The end"))
        async with runtime_over(tmp_path / "storage") as runtime:
            run = runtime.start(turn(choice, said("a story")))
            listener = Listener(run)
            await listener.heard("Once upon ")
            await run.stop()
            await listener.task
        async with runtime_over(tmp_path / "storage") as runtime:
            frames = await frames_of(runtime.start(turn(choice, said("go on", "u2"))))
        assert text_of(frames) == "The end"
        assert asked(model.calls[1].messages) == [("human", "a story"), ("ai", "Once upon "), ("human", "go on")]

    asyncio.run(scenario())


def test_an_unfinished_turn_is_recovered_from_the_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        gate = Gate()
        _, choice = model_of(Reply("One two", gate=gate, gate_before=1), Reply("Done"))
        async with runtime_over(tmp_path / "storage") as runtime:
            listener = Listener(runtime.start(turn(choice, said("please"))))
            await listener.heard("One ")
            listener.task.cancel()
            await asyncio.wait([listener.task])
        async with runtime_over(tmp_path / "storage") as runtime:
            await frames_of(runtime.start(turn(choice, said("please"), recover=True)))
            state = await runtime.state("thread-1", caller=LOCAL)
        assert state is not None
        assert conversation(state["values"]) == [("human", "please"), ("ai", "Done")]

    asyncio.run(scenario())


def test_an_empty_file_can_be_asked_and_told_to_forget_before_any_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with runtime_over(tmp_path / "storage") as runtime:
            assert await runtime.state("thread-1", caller=LOCAL) is None
            await runtime.forget("thread-1", caller=LOCAL)

    asyncio.run(scenario())


def test_a_long_thread_keeps_every_message(tmp_path: Path) -> None:
    turns = 60  # more than the 50 updates after which the messages' channel takes a snapshot

    async def scenario() -> None:
        model, choice = model_of(*(Reply(f"answer {n}") for n in range(turns)))
        async with runtime_over(tmp_path / "storage") as runtime:
            for number in range(turns):
                await frames_of(runtime.start(turn(choice, said(f"question {number}", f"u{number}"))))
        expected = [pair for n in range(turns) for pair in (("human", f"question {n}"), ("ai", f"answer {n}"))]
        assert asked(model.calls[-1].messages) == expected[:-1]

    asyncio.run(scenario())
