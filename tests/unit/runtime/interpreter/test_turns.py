"""A sandbox belongs to one turn of one agent: nobody shares it, it goes when the turn does, nothing stays behind."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from sandboxed import (
    BEATS,
    HELD_SECONDS,
    MIB,
    agent,
    config,
    evaluates,
    heartbeat,
    join_sandbox_threads,
    resident,
    run,
    sandbox_threads,
)

from pizzabot.testing.scripted_model import Gate, Reply
from pizzabot_builtin_plugins.deepagents_runtime.interpreter import middleware
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.guest import Guest


def test_two_runs_at_once_have_globals_of_their_own():
    met = asyncio.Barrier(2)

    @tool
    async def ls(path: str) -> str:
        """Returns when both runs are here."""
        await met.wait()
        return "No files found"

    async def scenario():
        code = "globalThis.n = (globalThis.n ?? 0) + 1; await tools.ls({path: '/'}); n"
        asking = agent(code, code, replaced=[ls])
        turns = await asyncio.gather(asking.say(thread="one"), asking.say(thread="two"))
        assert [[result.content for result in turn] for turn in turns] == [["1", "2"], ["1", "2"]]

    run(scenario())


def test_two_evals_of_one_message_take_turns_in_one_sandbox():
    def says(messages):
        if messages[-1].type == "human":
            calls = [evaluates(f"globalThis.n = (globalThis.n ?? 0) + 1; n + '/{id_}'", call_id=id_) for id_ in "ab"]
            return Reply(tool_calls=[call.tool_calls[0] for call in calls])
        return Reply("done")

    async def scenario():
        first, second = await agent(says=says).say()
        assert sorted([first.content[0], second.content[0]]) == ["1", "2"]

    run(scenario())


def test_runs_without_a_thread_share_nothing():
    async def scenario():
        asking = agent("globalThis.n = (globalThis.n ?? 0) + 1; n", "typeof n")
        asking.graph.checkpointer = None
        state = await asking.graph.ainvoke({"messages": [HumanMessage("go")]})
        assert [message.content for message in state["messages"] if message.type == "tool"] == ["1", "undefined"]
        assert len(asking.interpreter.sessions) == 0

    run(scenario())


def test_subagents_have_sandboxes_of_their_own():
    def helper(messages):
        if messages[-1].type == "human":
            return evaluates("globalThis.n = (globalThis.n ?? 0) + 1; typeof task + n", call_id="inner")
        return Reply(str(messages[-1].content))

    async def scenario():
        code = """
        globalThis.n = 10;
        const reports = await Promise.all([1, 2, 3].map((i) => task({description: '' + i, subagentType: 'helper'})));
        reports.join() + n
        """
        asking = agent(code, team=helper, team_evals=True)
        assert (await asking.say())[-1].content == "undefined1,undefined1,undefined110"

    run(scenario())


def test_a_turn_leaves_no_sandbox_and_nothing_of_it_in_the_checkpoint():
    async def scenario():
        asking = agent("globalThis.secret = 'needle'.repeat(3); 1")
        await asking.say()
        assert len(asking.interpreter.sessions) == 0
        state = await asking.graph.aget_state(config())
        assert set(state.values) <= {"messages", "files"}
        stored = b"".join(blob[1] for blob in asking.checkpoints.blobs.values())
        assert b"needleneedle" not in stored
        assert len(stored) < 20_000

    run(scenario())


def test_an_agent_that_never_evals_has_no_sandbox(monkeypatch):
    made = []
    monkeypatch.setattr(middleware, "Guest", lambda *given, **named: made.append(1) or Guest(*given, **named))

    async def scenario():
        assert await agent().say() == []
        assert not made
        await agent("1").say()
        assert made == [1]

    run(scenario())


def test_a_model_that_fails_ends_the_sandbox_with_the_turn():
    def says(messages):
        return evaluates("1") if messages[-1].type == "human" else Reply("", error=RuntimeError("model gone"))

    async def scenario():
        asking = agent(says=says)
        with pytest.raises(RuntimeError, match="model gone"):
            await asking.say()
        assert len(asking.interpreter.sessions) == 0

    run(scenario())


def test_a_stop_while_the_model_speaks_ends_the_sandbox():
    gate = Gate()

    def says(messages):
        return evaluates("1") if messages[-1].type == "human" else Reply("slow words", gate=gate)

    async def scenario():
        asking = agent(says=says)
        turn = asyncio.ensure_future(asking.stream())
        await gate.reached.wait()
        assert len(asking.interpreter.sessions) == 1
        turn.cancel()
        await asyncio.wait([turn])
        assert len(asking.interpreter.sessions) == 0

    run(scenario())


BUSY = {
    "a loop": "await tools.ls({path: '/'}); while (true) {}",
    "a native sort": "const a = Array.from({length: 1.5e6 / 8}, (_, i) => (i * 7919) % 100003 + ''); "
    "await tools.ls({path: '/'}); for (;;) a.slice().sort()",
    "a regular expression": "await tools.ls({path: '/'}); /(a+)+$/.test('a'.repeat(60) + 'b')",
    "a waiting call": "tools.ls({path: '/'}); await tools.glob({pattern: '*'})",
    "catching everything": "await tools.ls({path: '/'}); "
    "while (true) { try { while (true) {} } catch (e) {} finally { continue } }",
}


@pytest.mark.parametrize("busy", BUSY)
def test_a_stop_ends_the_guest_at_once_and_its_calls_with_it(busy):
    begun, ended = asyncio.Event(), []

    @tool
    async def ls(path: str) -> str:
        """Says that the code is running."""
        begun.set()
        return "No files found"

    @tool
    async def glob(pattern: str) -> str:
        """Never answers."""
        try:
            return await asyncio.Future()
        finally:
            ended.append("glob")

    async def scenario():
        asking = agent(BUSY[busy], replaced=[ls, glob])
        async with heartbeat() as gaps:
            turn = asyncio.ensure_future(asking.say())
            await begun.wait()
            await asyncio.sleep(0.05)  # into the computation: nothing tells when native code is in the middle
            began = time.perf_counter()
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            await asyncio.to_thread(join_sandbox_threads)
            took = time.perf_counter() - began
        assert took < HELD_SECONDS
        assert len(gaps.seconds) >= BEATS
        assert len(asking.interpreter.sessions) == 0
        assert ended == (["glob"] if busy == "a waiting call" else [])

    run(scenario())


def test_nothing_stays_after_200_evals_and_20_stops():
    begun = asyncio.Event()

    @tool
    async def ls(path: str) -> str:
        """Says that the code is running."""
        begun.set()
        return "No files found"

    async def scenario():
        evaluating = agent(*["new Array(1000).fill('text').join()"] * 10)
        looping = agent("await tools.ls({path: '/'}); while (true) {}", replaced=[ls])

        async def some(turns: int, stops: int) -> None:
            for number in range(turns):
                await evaluating.say(thread=f"t{number}")
                evaluating.checkpoints.delete_thread(f"t{number}")
            for number in range(stops):
                begun.clear()
                turn = asyncio.ensure_future(looping.say(thread=f"s{number}"))
                await begun.wait()
                turn.cancel()
                await asyncio.wait([turn])
                looping.checkpoints.delete_thread(f"s{number}")
            join_sandbox_threads()
            evaluating.model._calls.clear()
            looping.model._calls.clear()
            gc.collect()

        await some(5, 3)
        before = resident()
        await some(20, 20)
        assert not sandbox_threads()
        assert len(evaluating.interpreter.sessions) == len(looping.interpreter.sessions) == 0
        assert resident() - before < 8 * MIB

    run(scenario(), seconds=100)


def test_the_loop_is_free_while_sandboxes_are_made_and_compute():
    async def scenario():
        asking = agent("let s = 0; for (let i = 0; i < 3e6; i++) s += i % 7; s")
        async with heartbeat() as gaps:
            await asyncio.gather(*(asking.say(thread=f"t{number}") for number in range(4)))
        assert len(gaps.seconds) >= BEATS

    run(scenario())
