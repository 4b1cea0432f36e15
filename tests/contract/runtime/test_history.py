"""The history of the built-in runtime over real SQLite files: what LangGraph itself tells, at once and off the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool

from pizzabot.testing.runtime_contract import (
    Listener,
    call,
    conversation,
    frames_of,
    model_of,
    said,
    said_text,
    services_of,
    turn,
)
from pizzabot.testing.runtime_contract.workbench import Workbench
from pizzabot.testing.scripted_model import Gate, Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime import thread_reading
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_builtin_plugins.deepagents_runtime.snapshots import thread_state
from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import thread_config
from pizzabot_hookspecs import LOCAL, NotFound
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.wire import ThreadState

from .files import FileStorage


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


@asynccontextmanager
async def runtime_over(path: Path, *tools: BaseTool, bench: bool = False) -> AsyncIterator[DeepAgentsRuntime]:
    """With `tools`, or with the subagent `worker` who has the workbench's."""
    storage = FileStorage(path)
    services = services_of(storage, tools=[AgentTool(tool=each, repeatable=True) for each in tools])
    try:
        async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
            await runtime.prepare(Workbench().services(storage, subagent=True) if bench else services)
            yield runtime
    finally:
        await storage.close()


async def history(
    runtime: DeepAgentsRuntime, *namespace: str, limit: int = 1000, before: str | None = None
) -> Sequence[ThreadState]:
    return await runtime.history("thread-1", limit=limit, before=before, namespace=namespace, caller=LOCAL)


async def told_by_langgraph(runtime: DeepAgentsRuntime, namespace: str = "") -> list[ThreadState]:
    assert runtime._engine is not None
    config = thread_config("thread-1", namespace=namespace)
    return [thread_state(snapshot) async for snapshot in runtime._engine.reader.aget_state_history(config)]


async def in_pages(runtime: DeepAgentsRuntime, size: int) -> list[ThreadState]:
    states: list[ThreadState] = []
    while page := await history(runtime, limit=size, before=checkpoint(states[-1]) if states else None):
        states.extend(page)
    return states


def checkpoint(state: ThreadState) -> str:
    assert state["checkpoint"] is not None
    assert state["checkpoint"]["checkpoint_id"] is not None
    return state["checkpoint"]["checkpoint_id"]


def delegating() -> ScriptedModel:
    """Hands the work to `worker`, who looks twice."""

    def script(messages: Sequence[BaseMessage]) -> Reply:
        results = [message for message in messages if isinstance(message, ToolMessage)]
        if any(isinstance(message, HumanMessage) and said_text(message) == "look around" for message in messages):
            found = len(results)
            return Reply("seen") if found == 2 else Reply("hm", tool_calls=[call("look", f"look-{found}", what="x")])
        task = call("task", "delegated", description="look around", subagent_type="worker")
        return Reply("it is done") if results else Reply("let me ask", tool_calls=[task])

    return ScriptedModel(script=script)


async def long_and_forked(runtime: DeepAgentsRuntime) -> None:
    """More turns than a channel has updates between two snapshots, forks in the middle, and written states."""
    choice = chosen(ScriptedModel(script=lambda messages: Reply(f"answer to {messages[-1].text}")))

    async def hold(number: int, **config: Any) -> None:
        begun = turn(choice, said(f"question {number}", f"u{number}"), run_id=f"run-{number}", config=config)
        await frames_of(runtime.start(begun))

    for number in range(60):
        await hold(number)
    states = await history(runtime)
    for number, back in ((100, 3), (101, 30), (102, 111)):
        await hold(number, checkpoint_id=checkpoint(states[back]))
    edited: Any = {"messages": [{"type": "human", "id": "u3", "content": "edited"}, {"type": "remove", "id": "u4"}]}
    for origin in (checkpoint(states[7]), None):
        await runtime.update_state("thread-1", edited, as_node=None, checkpoint_id=origin, caller=LOCAL)
    for number in range(200, 205):
        await hold(number)


def test_the_history_is_what_langgraph_tells_also_across_snapshots_forks_and_pages(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with runtime_over(tmp_path / "storage") as runtime:
            await long_and_forked(runtime)
            expected = await told_by_langgraph(runtime)
            assert list(await history(runtime)) == expected
            for size in (1, 7, 64):
                assert await in_pages(runtime, size) == expected
            assert list(await history(runtime, limit=3)) == expected[:3]

    run(scenario())


def test_a_page_asks_the_file_once_for_what_lies_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with runtime_over(tmp_path / "storage") as runtime:
            await long_and_forked(runtime)
            assert runtime._engine is not None
            saver: Any = runtime._engine.checkpointer
            asked: list[Any] = []
            ask = saver.aget_delta_channel_history

            async def counted(**what: Any) -> Any:
                asked.append(what)
                return await ask(**what)

            monkeypatch.setattr(saver, "aget_delta_channel_history", counted)
            await history(runtime, limit=20)
            assert len(asked) == 1

    run(scenario())


def test_a_finished_subagent_is_found_again_and_its_own_history_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with runtime_over(tmp_path / "storage", bench=True) as runtime:
            await frames_of(runtime.start(turn(chosen(delegating()), said("please"))))
            (task,) = [task for state in await history(runtime) for task in state["tasks"] if task["name"] == "tools"]
            assert task["path"][0] == "__pregel_push"
            result: Any = task["result"]
            assert [message["tool_call_id"] for message in result["messages"]] == ["delegated"]
            inner = await history(runtime, f"{task['name']}:{task['id']}")
            assert list(inner) == await told_by_langgraph(runtime, f"{task['name']}:{task['id']}")
            assert [kind for kind, _ in conversation(inner[0]["values"])] == ["human", "ai", "tool", "ai", "tool", "ai"]
            assert {state["checkpoint"]["checkpoint_ns"] for state in inner if state["checkpoint"]} == {
                f"{task['name']}:{task['id']}"
            }
            page = await history(runtime, f"{task['name']}:{task['id']}", limit=2, before=checkpoint(inner[1]))
            assert page == inner[2:4]
            with pytest.raises(NotFound):  # the checkpoint is the subagent's, not the thread's
                await history(runtime, before=checkpoint(inner[1]))

    run(scenario())


def test_a_nested_subagents_history_is_told_however_its_namespace_is_joined(tmp_path: Path) -> None:
    deepest = create_agent(ScriptedModel(script=[Reply("down here")]), name="deepest")

    @tool
    async def descend(to: str) -> str:
        """Go down."""
        found = await deepest.ainvoke({"messages": [HumanMessage(to)]})
        return str(found["messages"][-1].text)

    call_down = call("descend", "inner-call", to="the bottom")
    middle = create_agent(
        ScriptedModel(script=[Reply("lower", tool_calls=[call_down]), Reply("back")]), tools=[descend], name="middle"
    )

    @tool
    async def delegate(what: str) -> str:
        """Hand it on."""
        found = await middle.ainvoke({"messages": [HumanMessage(what)]})
        return str(found["messages"][-1].text)

    async def scenario() -> None:
        _, choice = model_of(Reply("", tool_calls=[call("delegate", "outer-call", what="dig")]), Reply("done"))
        async with runtime_over(tmp_path / "storage", delegate) as runtime:
            frames = await frames_of(runtime.start(turn(choice, said("please"))))
            namespace = max((frame.namespace for frame in frames if frame.method == "lifecycle"), key=len, default=())
            assert [segment.partition(":")[0] for segment in namespace] == ["tools", "tools"]
            states = await history(runtime, *namespace)
            assert conversation(states[0]["values"]) == [("human", "the bottom"), ("ai", "down here")]
            last: Any = states[0]["values"]["messages"][-1]  # type: ignore[index]
            assert last["name"] == "deepest"
            assert await history(runtime, "|".join(namespace)) == states
            assert await history(runtime, "\0".join(namespace)) == states
            outer = await history(runtime, namespace[0])
            assert conversation(outer[0]["values"])[0] == ("human", "dig")

    run(scenario())


def test_clients_get_no_private_channels_and_only_what_they_read_of_the_metadata(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with runtime_over(tmp_path / "storage", bench=True) as runtime:
            await frames_of(runtime.start(turn(chosen(delegating()), said("please"))))
            (task,) = [task for state in await history(runtime) for task in state["tasks"] if task["name"] == "tools"]
            states = [*await history(runtime), *await history(runtime, f"tools:{task['id']}")]
            newest = await runtime.state("thread-1", caller=LOCAL)
            assert newest is not None
        for state in [newest, *states]:
            assert set(state["values"]) <= {"messages", "files"}
            assert set(state["metadata"]) == {"step", "source", "run_id"}
            assert state["metadata"]["run_id"] == "run-1"
            for each in state["tasks"]:
                assert isinstance(each["result"], dict)
                assert set(each["result"]) <= {"messages", "files"}

    run(scenario())


def test_a_state_is_made_in_a_thread_of_its_own_and_a_turn_goes_on_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, go, threads = threading.Event(), threading.Event(), set[str]()

    def slow(*given: Any) -> ThreadState:
        threads.add(threading.current_thread().name.rpartition("_")[0])
        made.set()
        go.wait(20)
        return thread_state(*given)

    async def scenario() -> None:
        gate = Gate()
        _, choice = model_of(Reply("One"), Reply("Two words", gate=gate, gate_before=1))
        async with runtime_over(tmp_path / "storage") as runtime:
            await frames_of(runtime.start(turn(choice, said("first"))))
            listener = Listener(runtime.start(turn(choice, said("second", "u2"), run_id="run-2")))
            await listener.heard("Two ")
            monkeypatch.setattr(thread_reading, "thread_state", slow)
            reading = asyncio.ensure_future(history(runtime))
            await asyncio.to_thread(made.wait, 20)
            gate.open.set()
            await listener.task
            assert not reading.done()
            go.set()
            assert conversation((await reading)[0]["values"])[-1] == ("human", "second")
            await runtime.state("thread-1", caller=LOCAL)
        assert threads == {"state-reader"}

    run(scenario())


def test_what_a_client_writes_is_read_by_a_runtime_that_starts_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, choice = model_of(Reply("One"))
        values: Any = {
            "messages": [
                ["human", "a pair"],
                {"role": "assistant", "content": None, "tool_calls": [call("look", "c1", what="x")]},
                {"type": "tool", "content": "seen", "tool_call_id": "c1", "name": "look", "status": "error"},
            ],
        }
        async with runtime_over(tmp_path / "storage") as runtime:
            await frames_of(runtime.start(turn(choice, said("first"))))
            written = await runtime.update_state("thread-1", values, as_node="tools", checkpoint_id=None, caller=LOCAL)
            assert written["next"] == ["model"]
        async with runtime_over(tmp_path / "storage") as runtime:
            state = await runtime.state("thread-1", caller=LOCAL)
        assert state == written
        messages: Any = state["values"]["messages"]
        assert [message["type"] for message in messages] == ["human", "ai", "human", "ai", "tool"]
        assert messages[-2]["tool_calls"][0]["id"] == messages[-1]["tool_call_id"] == "c1"
        assert messages[-1]["status"] == "error"
        assert all(message["id"] for message in messages)

    run(scenario())


def test_a_state_can_be_written_before_the_first_turn(tmp_path: Path) -> None:
    async def scenario() -> None:
        model, choice = model_of(Reply("Hello Ada"))
        greeting: Any = {"messages": [{"role": "user", "content": "I am Ada", "id": "w1"}]}
        async with runtime_over(tmp_path / "storage") as runtime:
            await runtime.update_state("thread-1", greeting, as_node=None, checkpoint_id=None, caller=LOCAL)
            await frames_of(runtime.start(turn(choice, said("who am I?"))))
            state = await runtime.state("thread-1", caller=LOCAL)
        assert state is not None
        assert conversation(state["values"]) == [("human", "I am Ada"), ("human", "who am I?"), ("ai", "Hello Ada")]
        assert len(model.calls) == 1

    run(scenario())


def test_a_messages_own_fields_survive_being_read_and_written_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, choice = model_of(Reply("One"))
        async with runtime_over(tmp_path / "storage") as runtime:
            await frames_of(runtime.start(turn(choice, said("first"))))
            state = await runtime.state("thread-1", caller=LOCAL)
            assert state is not None
            again = await runtime.update_state(
                "thread-1", {"messages": state["values"]["messages"]}, as_node=None, checkpoint_id=None, caller=LOCAL
            )
        assert again["values"] == state["values"]

    run(scenario())
