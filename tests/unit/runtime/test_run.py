"""Turns of the built-in runtime beyond the contract: waiting for it, forking, going on, stopping in odd places."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from pizzabot.testing.runtime_contract import (
    Listener,
    MemoryGraphStorage,
    asked,
    conversation,
    frames_of,
    model_of,
    said,
    services_of,
    text_of,
    turn,
)
from pizzabot.testing.scripted_model import Gate, Reply
from pizzabot_builtin_plugins.deepagents_runtime import graph_building
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_builtin_plugins.deepagents_runtime.tool_calls import BEGUN_RESULT
from pizzabot_hookspecs import LOCAL, InvalidRequest, Unavailable
from pizzabot_hookspecs.agent_runtimes import RuntimeServices, Turn
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.wire import Message, ThreadState


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


@asynccontextmanager
async def prepared(*tools: BaseTool) -> AsyncIterator[DeepAgentsRuntime]:
    services = services_of(MemoryGraphStorage(), tools=[AgentTool(tool=tool, repeatable=True) for tool in tools])
    async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
        await runtime.prepare(services)
        yield runtime


async def state_of(runtime: DeepAgentsRuntime, checkpoint_id: str | None = None) -> ThreadState:
    state = await runtime.state("thread-1", caller=LOCAL, checkpoint_id=checkpoint_id)
    assert state is not None
    return state


def forking(started: Turn, checkpoint_id: str) -> Turn:
    return replace(started, config={"checkpoint_id": checkpoint_id})


# -- waiting for the runtime ------------------------------------------------------------------------------------------


def test_a_turn_that_comes_too_early_waits_until_the_runtime_is_prepared() -> None:
    async def scenario() -> None:
        _, model = model_of(Reply("Hello"))
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            listener = Listener(runtime.start(turn(model, said("hi"))))
            await asyncio.sleep(0)
            assert not listener.frames
            await runtime.prepare(RuntimeServices(graph_storage=MemoryGraphStorage()))
            await listener.task
            assert text_of(listener.frames) == "Hello"

    run(scenario())


def test_a_runtime_that_could_not_be_prepared_says_so_to_every_turn() -> None:
    class Broken(MemoryGraphStorage):
        async def checkpointer(self) -> Any:
            raise OSError("disk on fire")

    async def scenario() -> None:
        _, model = model_of(Reply("Hello"))
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            with pytest.raises(OSError, match="disk on fire"):
                await runtime.prepare(RuntimeServices(graph_storage=Broken()))
            with pytest.raises(Unavailable, match="disk on fire") as caught:
                await frames_of(runtime.start(turn(model, said("hi"))))
            assert caught.value.code == "runtime_unavailable"
            with pytest.raises(Unavailable):
                await runtime.state("thread-1", caller=LOCAL)

    run(scenario())


def test_a_turn_that_is_stopped_while_it_waits_for_the_runtime_keeps_what_was_said() -> None:
    async def scenario() -> None:
        model, choice = model_of(Reply("Hello"))
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            started = runtime.start(turn(choice, said("hi")))
            listener = Listener(started)
            await asyncio.sleep(0)
            await started.stop()
            await runtime.prepare(RuntimeServices(graph_storage=MemoryGraphStorage()))
            await listener.task
            assert conversation((await state_of(runtime))["values"]) == [("human", "hi")]
            assert model.calls == []

    run(scenario())


def test_a_turn_that_is_stopped_while_its_graph_is_built_keeps_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    building, go = threading.Event(), threading.Event()
    build_graph = graph_building.build_graph

    def slow(*args: Any, **kwargs: Any) -> Any:
        building.set()
        go.wait()
        return build_graph(*args, **kwargs)

    monkeypatch.setattr(graph_building, "build_graph", slow)

    async def scenario() -> None:
        model, choice = model_of(Reply("Hello"))
        async with prepared() as runtime:
            started = runtime.start(turn(choice, said("hi")))
            listener = Listener(started)
            await asyncio.to_thread(building.wait)
            await started.stop()
            await listener.task
            go.set()
            assert conversation((await state_of(runtime))["values"]) == [("human", "hi")]
            assert [frame.method for frame in listener.frames] == ["checkpoints", "values"]
            assert not model.calls

    run(scenario())


# -- where a turn begins ----------------------------------------------------------------------------------------------


def test_a_turn_may_fork_from_an_earlier_checkpoint() -> None:
    async def scenario() -> None:
        model, choice = model_of(Reply("One"), Reply("Two"), Reply("Another two"))
        async with prepared() as runtime:
            await frames_of(runtime.start(turn(choice, said("first"))))
            first = (await state_of(runtime))["checkpoint"]
            assert first is not None
            assert first["checkpoint_id"] is not None
            await frames_of(runtime.start(turn(choice, said("second", "u2"))))
            await frames_of(runtime.start(forking(turn(choice, said("instead", "u3")), first["checkpoint_id"])))
            expected = [("human", "first"), ("ai", "One"), ("human", "instead")]
            assert asked(model.calls[2].messages) == expected
            assert conversation((await state_of(runtime))["values"]) == [*expected, ("ai", "Another two")]
            earlier = await state_of(runtime, first["checkpoint_id"])
            assert conversation(earlier["values"]) == expected[:2]

    run(scenario())


def test_a_fork_that_had_begun_when_its_process_died_goes_on_from_its_own_checkpoint() -> None:
    async def scenario() -> None:
        model, choice = model_of(Reply("One"), Reply("Two", error=ConnectionError("gone")), Reply("Two again"))
        async with prepared() as runtime:
            await frames_of(runtime.start(turn(choice, said("first"))))
            first = (await state_of(runtime))["checkpoint"]
            assert first is not None
            assert first["checkpoint_id"] is not None
            fork = forking(turn(choice, said("fork", "u2")), first["checkpoint_id"])
            with pytest.raises(ConnectionError):
                await frames_of(runtime.start(fork))
            await frames_of(runtime.start(replace(fork, recover=True)))
            assert asked(model.calls[2].messages) == [("human", "first"), ("ai", "One"), ("human", "fork")]
            assert conversation((await state_of(runtime))["values"])[-1] == ("ai", "Two again")

    run(scenario())


def test_a_turn_without_messages_goes_on_from_where_the_last_one_failed() -> None:
    async def scenario() -> None:
        model, choice = model_of(Reply(error=ConnectionError("gone")), Reply("Here I am"))
        async with prepared() as runtime:
            with pytest.raises(ConnectionError):
                await frames_of(runtime.start(turn(choice, said("hi"))))
            assert (await state_of(runtime))["next"] == ["model"]
            frames = await frames_of(runtime.start(turn(choice)))
            assert text_of(frames) == "Here I am"
            assert asked(model.calls[1].messages) == [("human", "hi")]

    run(scenario())


def test_a_turn_without_messages_on_a_finished_thread_ends_quietly_with_its_state() -> None:
    async def scenario() -> None:
        model, choice = model_of(Reply("Hello"))
        async with prepared() as runtime:
            await frames_of(runtime.start(turn(choice, said("hi"))))
            frames = await frames_of(runtime.start(turn(choice)))
            assert [frame.method for frame in frames] == ["checkpoints", "values"]
            assert len(model.calls) == 1

    run(scenario())


@pytest.mark.parametrize(
    ("messages", "checkpoint_id", "code"),
    [
        ((), None, "nothing_to_continue"),
        ((said("hi"),), "1f1ecef2-0000-6000-8000-000000000000", "no_such_checkpoint"),
        ((Message(id="s", role="system", parts=()),), None, "unsupported_role"),
    ],
)
def test_a_turn_that_cannot_begin_is_an_error_of_its_iteration(
    messages: tuple[Message, ...], checkpoint_id: str | None, code: str
) -> None:
    async def scenario() -> None:
        model, choice = model_of()
        async with prepared() as runtime:
            started = turn(choice, *messages)
            attempt = runtime.start(forking(started, checkpoint_id) if checkpoint_id else started)
            with pytest.raises(InvalidRequest) as caught:
                await frames_of(attempt)
            assert caught.value.code == code
            assert not model.calls
            assert await runtime.state("thread-1", caller=LOCAL) is None

    run(scenario())


def test_keys_of_the_clients_configuration_other_than_the_fork_reach_no_graph() -> None:
    async def scenario() -> None:
        _, choice = model_of(Reply("Hello"))
        async with prepared() as runtime:
            started = replace(turn(choice, said("hi")), config={"thread_id": "another", "checkpoint_ns": "x"})
            await frames_of(runtime.start(started))
            assert await runtime.state("another", caller=LOCAL) is None
            assert conversation((await state_of(runtime))["values"])[-1] == ("ai", "Hello")

    run(scenario())


def test_a_run_is_iterated_once() -> None:
    async def scenario() -> None:
        _, choice = model_of(Reply("Hello"))
        async with prepared() as runtime:
            started = runtime.start(turn(choice, said("hi")))
            await frames_of(started)
            with pytest.raises(RuntimeError, match="iterated once"):
                await frames_of(started)

    run(scenario())


# -- stopping ---------------------------------------------------------------------------------------------------------


def test_the_last_frames_of_a_stopped_turn_are_the_state_with_the_partial_answer() -> None:
    async def scenario() -> None:
        gate = Gate()
        _, choice = model_of(Reply("Once upon a time", gate=gate, gate_before=2))
        async with prepared() as runtime:
            started = runtime.start(turn(choice, said("a story")))
            listener = Listener(started)
            await listener.heard("Once upon ")
            await started.stop()
            await listener.task
            checkpoint, values = listener.frames[-2:]
            state = await state_of(runtime)
            assert (checkpoint.method, values.method) == ("checkpoints", "values")
            assert state["checkpoint"] is not None
            assert checkpoint.data["id"] == state["checkpoint"]["checkpoint_id"]
            assert values.data == state["values"]
            assert conversation(values.data) == [("human", "a story"), ("ai", "Once upon ")]

    run(scenario())


def test_a_consumer_may_stop_between_two_frames_and_read_on() -> None:
    async def scenario() -> None:
        model, choice = model_of(Reply("One two three four"))
        async with prepared() as runtime:
            started = runtime.start(turn(choice, said("count")))
            frames = []
            async for frame in started:
                frames.append(frame)
                if text_of(frames) == "One two ":
                    await started.stop()
            assert text_of(frames) == "One two "
            assert conversation((await state_of(runtime))["values"])[-1] == ("ai", "One two ")
            assert len(model.calls) == 1

    run(scenario())


def test_an_abandoned_iteration_leaves_no_task_behind() -> None:
    async def scenario() -> None:
        gate = Gate()
        _, choice = model_of(Reply("One two", gate=gate, gate_before=1))
        async with prepared() as runtime:
            before = asyncio.all_tasks()
            listener = Listener(runtime.start(turn(choice, said("hi"))))
            await listener.heard("One ")
            listener.task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await listener.task
            assert asyncio.all_tasks() <= before
            assert conversation((await state_of(runtime))["values"]) == [("human", "hi")]

    run(scenario())


def test_a_stop_as_a_tool_finishes_keeps_its_result_whether_or_not_it_is_stored_yet() -> None:
    @tool
    async def slow() -> str:
        """Never ends by itself."""
        await asyncio.Event().wait()
        return "never"

    @tool
    async def fast() -> str:
        """Ends at once."""
        return "fast result"

    async def scenario() -> None:
        calls = [{"name": name, "args": {}, "id": f"call-{name}", "type": "tool_call"} for name in ("slow", "fast")]
        model, choice = model_of(Reply("Working. ", tool_calls=calls), Reply("Fine"))
        async with prepared(slow, fast) as runtime:
            started = runtime.start(turn(choice, said("go")))
            frames = []
            async for frame in started:
                frames.append(frame)
                if frame.method == "tools" and frame.data["event"] == "tool-finished":
                    await started.stop()
            state = await state_of(runtime)
            assert conversation(state["values"]) == [
                ("human", "go"),
                ("ai", "Working. "),
                ("tool", BEGUN_RESULT),
                ("tool", "fast result"),
            ]
            assert state["next"] == []
            await frames_of(runtime.start(turn(choice, said("and now?", "u2"))))
            assert [kind for kind, _ in asked(model.calls[1].messages)] == ["human", "ai", "tool", "tool", "human"]

    run(scenario())


def test_a_stop_while_an_answer_follows_a_tool_keeps_both() -> None:
    @tool
    async def fast() -> str:
        """Ends at once."""
        return "fast result"

    async def scenario() -> None:
        gate = Gate()
        call = {"name": "fast", "args": {}, "id": "call-1", "type": "tool_call"}
        _, choice = model_of(Reply(tool_calls=[call]), Reply("It says more", gate=gate, gate_before=2))
        async with prepared(fast) as runtime:
            started = runtime.start(turn(choice, said("go")))
            listener = Listener(started)
            await listener.heard("It says ")
            await started.stop()
            await listener.task
            values = (await state_of(runtime))["values"]
            assert conversation(values)[-2:] == [("tool", "fast result"), ("ai", "It says ")]

    run(scenario())


def test_a_stop_while_tool_arguments_are_streamed_leaves_no_call() -> None:
    async def scenario() -> None:
        call = {"name": "ls", "args": {"path": "/"}, "id": "call-1", "type": "tool_call"}
        _, choice = model_of(Reply("Looking. ", tool_calls=[call]))
        async with prepared() as runtime:
            started = runtime.start(turn(choice, said("go")))
            async for frame in started:
                if "tool_call_chunk" in str(frame.data):
                    await started.stop()
            state = await state_of(runtime)
            assert conversation(state["values"]) == [("human", "go"), ("ai", "Looking. ")]
            messages: Any = state["values"]["messages"]
            assert messages[-1]["tool_calls"] == []

    run(scenario())


@pytest.mark.parametrize("tools", [True, False])
def test_a_message_that_does_not_fit_fails_its_own_turn_and_no_later_one(tools: bool) -> None:
    async def scenario() -> None:
        async with prepared() as runtime:
            too_long = Reply(error=ValueError("prompt is too long"))
            model, choice = model_of(Reply("hello"), too_long, Reply("still here"))
            choice = replace(choice, descriptor=replace(choice.descriptor, supports_tools=tools))
            await frames_of(runtime.start(turn(choice, said("hi", "m-1"))))
            with pytest.raises(ValueError, match="too long"):
                await frames_of(runtime.start(turn(choice, said("x" * 1000, "m-2"))))
            kept = await state_of(runtime)
            assert (conversation(kept["values"]), kept["next"]) == ([("human", "hi"), ("ai", "hello")], [])
            await frames_of(runtime.start(turn(choice, said("and now?", "m-3"))))
            assert asked(model.calls[-1].messages) == [("human", "hi"), ("ai", "hello"), ("human", "and now?")]

    run(scenario())
