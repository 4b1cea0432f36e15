"""Every limit of a sandbox, each really exceeded by a real agent: the run goes on, and so does the server."""

from __future__ import annotations

import asyncio
import gc
import time
from dataclasses import replace

import pytest
from langchain_core.tools import tool
from sandboxed import (
    BEATS,
    HELD_SECONDS,
    MIB,
    agent,
    evaluated,
    evaluates,
    heartbeat,
    join_sandbox_threads,
    resident,
    run,
    text,
)

from pizzabot.testing.scripted_model import Gate, Reply
from pizzabot_builtin_plugins.deepagents_runtime.interpreter import bounds, driving, sessions
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.middleware import description
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.outcomes import LOST, STUCK

TIMED_OUT = f"TimeoutError: an eval has {bounds.EVAL_SECONDS:.0f} s, what it waits for included. {LOST}"
FOREVER = "while (true) {}"
CATASTROPHE = "/(a+)+$/.test('a'.repeat(60) + 'b')"
SORTING = "const a = Array.from({length: 3e5}, (_, i) => (i * 7919) % 100003 + ''); while (true) a.slice().sort()"
MICROTASKS = "(function again() { Promise.resolve().then(again) })(); await new Promise(() => {})"


@pytest.mark.parametrize("code", [FOREVER, CATASTROPHE, SORTING, MICROTASKS])
def test_code_that_does_not_end_is_ended_without_the_loop_noticing(code):
    async def scenario():
        asking = agent(f"console.log('begun'); {code}", "typeof a", seconds=0.5)
        async with heartbeat() as gaps:
            began = time.perf_counter()
            first, second = await asking.say()
        assert (first.status, first.content) == ("error", f"begun\n{TIMED_OUT}")
        assert time.perf_counter() - began < HELD_SECONDS
        assert len(gaps.seconds) >= BEATS
        assert (second.status, second.content) == ("success", "undefined")

    run(scenario())


def test_the_time_of_an_eval_covers_what_it_waits_for():
    cancelled = asyncio.Event()

    @tool
    async def ls(path: str) -> str:
        """Never answers."""
        try:
            return await asyncio.Future()
        finally:
            cancelled.set()

    async def scenario():
        assert agent("1").interpreter._seconds == bounds.EVAL_SECONDS == 120
        assert await text("await tools.ls({path: '/'})", seconds=0.2, replaced=[ls]) == TIMED_OUT
        assert cancelled.is_set()

    run(scenario())


BOMBS = {
    "strings": "const a = []; while (true) a.push('x'.repeat(1000) + a.length)",
    "arrays": "const a = []; while (true) a.push(new Array(10000).fill(1))",
    "buffers": "const a = []; while (true) a.push(new Uint8Array(1024 * 1024).fill(7))",
    "one array": "new Array(2e8).fill(1)",
    "one text": "let s = 'abc'; while (true) s += s",
    "json": "JSON.stringify(new Array(5e6).fill('abc'))",
    "objects": "let o = {}; while (true) o = {o, p: [o]}",
    "functions": "const a = []; while (true) a.push(() => a)",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_memory_bomb_ends_in_an_error_within_its_limit(bomb):
    async def scenario():
        await text("1")
        gc.collect()
        before = resident()
        peak = before
        done = asyncio.Event()

        async def watch():
            nonlocal peak
            while not done.is_set():
                peak = max(peak, resident())
                await asyncio.sleep(0.001)

        watching = asyncio.ensure_future(watch())
        first, second = await evaluated(BOMBS[bomb], "'alive'")
        done.set()
        await watching
        assert first.status == "error"
        assert any(words in first.content for words in ("out of memory", "invalid string length", "string too long"))
        assert second.content.endswith("alive")
        assert peak - before <= 1.5 * bounds.MEMORY_BYTES
        join_sandbox_threads()
        assert resident() - before <= 16 * MIB

    run(scenario())


@pytest.mark.parametrize(
    "code",
    [
        "function f() { return f() + 1 } f()",
        "const a = []; a[0] = a; let d = []; for (let i = 0; i < 1e5; i++) d = [d]; JSON.stringify(d)",
        "eval('('.repeat(1e5))",
        "JSON.parse('['.repeat(1e5))",
        "[1].sort.call(new Proxy([], {get: function get(t, k, r) { return Reflect.get(r, k) }}))",
    ],
)
def test_endless_recursion_ends_the_sandbox_and_not_the_run(code):
    async def scenario():
        first, second, third = await evaluated("let kept = 1", code, "typeof kept")
        assert first.status == "success"
        assert (second.status, second.content) == ("error", f"RangeError: the code called itself too deeply. {LOST}")
        assert third.content == "undefined"

    run(scenario())


def test_a_thousand_calls_deep_is_no_problem():
    async def scenario():
        assert await text("function f(n) { return n ? f(n - 1) + 1 : 0 } f(1500)") == "1500"

    run(scenario())


def test_a_text_longer_than_the_engine_allows_is_an_error():
    async def scenario():
        (result,) = await evaluated("'x'.repeat(2 ** 30)")
        assert (result.status, result.content) == ("error", "RangeError: invalid string length (line 1)")

    run(scenario())


def test_a_promise_that_nothing_settles_ends_the_eval_at_once():
    async def scenario():
        first, second = await evaluated("globalThis.kept = 5; await new Promise(() => {})", "kept")
        assert (first.status, first.content) == ("error", STUCK)
        assert second.content == "5"

    run(scenario())


def test_code_over_its_limit_is_refused_without_a_sandbox():
    async def scenario():
        asking = agent("'" + "ü" * (bounds.MAX_CODE_BYTES // 2) + "'")
        (result,) = await asking.say()
        assert result.status == "error"
        assert f"{bounds.MAX_CODE_BYTES} bytes are allowed" in result.content
        (result,) = await evaluated("x" * (bounds.MAX_CODE_BYTES + 1))
        assert f"{bounds.MAX_CODE_BYTES + 1} characters" in result.content
        assert await text("'" + "x" * (bounds.MAX_CODE_BYTES - 11) + "'.length") == str(bounds.MAX_CODE_BYTES - 11)

    run(scenario())


def test_no_more_subagents_work_at_once_than_allowed_and_all_of_them_answer():
    working = most = 0
    full = asyncio.Event()

    @tool
    async def work() -> str:
        """Waits until as many work as may."""
        nonlocal working, most
        working += 1
        most = max(most, working)
        if working == bounds.MAX_CONCURRENT_TASKS:
            full.set()
        await full.wait()
        await asyncio.sleep(0)
        working -= 1
        return "worked"

    def helper(messages):
        if messages[-1].type == "human":
            return Reply(tool_calls=[{"name": "work", "args": {}, "id": f"w{messages[-1].content}"}])
        return Reply("ok")

    async def scenario():
        count = bounds.MAX_CONCURRENT_TASKS + 8
        code = (
            "const one = (_, i) => task({description: '' + i, subagentType: 'helper'});"
            f"const all = Array.from({{length: {count}}}, one);"
            "(await Promise.all(all)).filter((report) => report === 'ok').length"
        )
        assert await text(code, team=helper, team_tools=[work]) == str(count)
        assert most == bounds.MAX_CONCURRENT_TASKS

    run(scenario())


def holding(entered: asyncio.Event, gate: asyncio.Event):
    @tool
    async def ls(path: str) -> str:
        """Answers when it may."""
        entered.set()
        await gate.wait()
        return "No files found"

    return ls


def test_with_all_sandboxes_at_work_an_eval_waits_for_one(monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SANDBOXES", 1)
    entered, gate = asyncio.Event(), asyncio.Event()

    async def scenario():
        first = agent("await tools.ls({path: '/'}); 'first'", replaced=[holding(entered, gate)])
        second = agent("'second'")
        one = asyncio.ensure_future(first.say(thread="one"))
        await entered.wait()
        two = asyncio.ensure_future(second.say(thread="two"))
        while not sessions.room(delegating=False)._waiting:  # noqa: ASYNC110 - nothing else tells
            await asyncio.sleep(0)
        assert not two.done()
        gate.set()
        assert [(await turn)[-1].content for turn in (one, two)] == ["first", "second"]

    run(scenario())


def test_an_eval_that_waited_long_enough_is_told_so(monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SANDBOXES", 1)
    monkeypatch.setattr(sessions, "SANDBOX_WAIT_SECONDS", 0.05)
    entered, gate = asyncio.Event(), asyncio.Event()

    async def scenario():
        one = asyncio.ensure_future(
            agent("await tools.ls({path: '/'}); 'first'", replaced=[holding(entered, gate)]).say(thread="one")
        )
        await entered.wait()
        (result,) = await agent("1").say(thread="two")
        assert (result.status, "No sandbox became free" in result.content) == ("error", True)
        gate.set()
        assert (await one)[-1].content == "first"

    run(scenario())


def test_an_unused_sandbox_makes_room_and_its_agent_is_told(monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SANDBOXES", 1)
    gate = Gate()
    thinking = replace(evaluates("typeof kept", call_id="e1"), text="let me think", gate=gate, gate_before=1)
    turn = [evaluates("globalThis.kept = 1", call_id="e0"), thinking, Reply("done")]

    async def scenario():
        first = agent(says=lambda messages: turn[len(messages) // 2])
        one = asyncio.ensure_future(first.stream(thread="one"))
        await gate.reached.wait()
        assert (await agent("'second'").say(thread="two"))[-1].content == "second"
        gate.open.set()
        await one
        assert (await first.results("one"))[-1].content == f"[{LOST}]\nundefined"

    run(scenario())


def test_sandboxes_that_delegate_are_counted_apart(monkeypatch):
    monkeypatch.setattr(sessions, "MAX_SANDBOXES", 1)
    monkeypatch.setattr(sessions, "MAX_DELEGATING_SANDBOXES", 1)

    def helper(messages):
        if messages[-1].type == "human":
            return Reply(tool_calls=[{"name": "eval", "args": {"code": "6 * 7"}, "id": "inner"}])
        return Reply(f"it is {messages[-1].content}")

    async def scenario():
        code = "await task({description: 'compute', subagentType: 'helper'})"
        assert await text(code, team=helper, team_evals=True) == "it is 42"

    run(scenario())


def test_an_unused_sandbox_is_dropped_after_its_time_and_forgotten_after_it_again():
    async def scenario():
        interpreter = agent("1").interpreter
        async with interpreter.sessions.using("key") as session:
            guest = await session.open(interpreter._new_guest)
        due = session._idle.when() - asyncio.get_running_loop().time()
        assert bounds.IDLE_SECONDS - 1 < due <= bounds.IDLE_SECONDS == 600
        session.expire()
        join_sandbox_threads()
        assert guest._closed
        assert session.lost
        assert len(interpreter.sessions) == 1
        session.expire()
        assert len(interpreter.sessions) == 0

    run(scenario())


def test_a_call_of_the_host_that_does_not_end_when_cancelled_is_left(monkeypatch):
    monkeypatch.setattr(driving, "BRIDGE_STOP_SECONDS", 0.05)
    released = asyncio.Event()

    @tool
    async def ls(path: str) -> str:
        """Does not listen."""
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue
        return "No files found"

    async def scenario():
        assert await text("await tools.ls({path: '/'})", seconds=0.05, replaced=[ls]) == TIMED_OUT
        released.set()

    run(scenario())


def test_the_tool_is_told_in_few_words_with_its_bounds():
    names = ["ls", "read_file", "write_file", "edit_file", "glob", "grep"]
    told = description(names, task=True)
    assert len(told) <= 1_800
    for words in (
        "tools.readFile({filePath, offset?, limit?})",
        "task({description, subagentType})",
        "120 s",
        "64 MiB",
    ):
        assert words in told
    assert "task(" not in description(names, task=False)
