"""What the agent costs: a turn's overhead by part, one more skill, a long thread.

    python bench/agent.py

To reach: one skill added to 50, the loop blocked 30 ms at most and the next turn ready in 1 s; a thread of 500 turns
grows by 60 KB a turn at most and its state is read in 50 ms.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from peer.figures import end, figure, machine, spread

from pizzabot.testing.runtime_contract import MemoryGraphStorage, frames_of, said, turn
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, ChosenModel, Roster, RuntimeServices, SubagentSpec

SKILLS = 50
BLOCKED_MS = 30.0
READY_MS = 1000.0
TURNS = 500
GROWTH_KB = 60.0
STATE_MS = 50.0
ROUNDS = 60
SKILL_TEXT = "Do the work in these steps, one after the other, and report what you found. " * 40


def model() -> ScriptedModel:
    return ScriptedModel(script=lambda _messages: Reply("A short answer of eight words or so."))


def skill(number: int) -> SubagentSpec:
    return SubagentSpec(
        name=f"skill-{number}",
        description=f"does the work of kind {number} and reports what it found",
        prompt=f"{number}. {SKILL_TEXT}",
        files={"references/guide.md": SKILL_TEXT.encode()},
    )


async def say(runtime: AgentRuntime, choice: ChosenModel, number: int, *, thread_id: str = "t") -> None:
    message = said(f"question {number}: what about it?", f"u{number}")
    await frames_of(runtime.start(turn(choice, message, thread_id=thread_id, run_id=f"run-{number}")))


def spread_ms(took: Sequence[float]) -> str:
    return spread([one / 1e3 for one in took])


class Gaps:
    """The longest time that the loop did not come round, of a heartbeat every millisecond."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def __aenter__(self) -> Self:
        self._task = asyncio.ensure_future(self._beat())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _beat(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            self.longest = max(self.longest, (now - last - 0.001) * 1000)
            last = now


# -- a turn, by part --------------------------------------------------------------------------------------------------


async def overhead() -> None:
    from langchain.agents import create_agent
    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.memory import InMemorySaver

    from pizzabot.testing.runtime_contract import RecordedIntents
    from pizzabot_builtin_plugins.deepagents_runtime.intents import IntentLedger
    from pizzabot_builtin_plugins.deepagents_runtime.middleware import Workshop, agent_middleware, agent_tools
    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet
    from pizzabot_builtin_plugins.deepagents_runtime.turn_tools import TurnTools

    chat = model()
    stack = [each for each in agent_middleware(chat, ToolSet(), Workshop()) if type(each).__name__ != "Withheld"]
    context = TurnTools(thread_id="t", log=RecordedIntents(), ledger=IntentLedger())

    async def took(middleware: Sequence[Any], tools: Sequence[Any]) -> list[float]:
        graph: Any = create_agent(chat, tools=list(tools), middleware=list(middleware), checkpointer=InMemorySaver())
        times = []
        for number in range(ROUNDS):
            config = {"configurable": {"thread_id": str(number)}}
            began = time.perf_counter()
            await graph.ainvoke({"messages": [HumanMessage("hi")]}, config, context=context)
            times.append((time.perf_counter() - began) * 1000)
        return times[ROUNDS // 6 :]

    bare = statistics.median(await took([], []))
    print(f"a text turn of the bare graph, in memory: p50 {bare:.2f} ms; each part on top of those before it:")
    before = bare
    for count in range(1, len(stack) + 1):
        now = statistics.median(await took(stack[:count], agent_tools(ToolSet())))
        print(f"       {type(stack[count - 1]).__name__:28} {now - before:+.2f} ms")
        before = now
    figure("all of it, ms", before - bare, more=f"{before / bare:.2f} x the bare graph")


# -- one more skill ---------------------------------------------------------------------------------------------------


async def one_more_skill() -> None:
    rosters = [Roster(fingerprint=str(SKILLS), subagents=tuple(skill(number) for number in range(SKILLS)))]
    changed: list[Callable[[], None]] = []
    async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
        await runtime.prepare(
            RuntimeServices(
                graph_storage=MemoryGraphStorage(), roster=lambda: rosters[-1], on_roster_change=changed.append
            )
        )
        choice = chosen(model())
        began = time.perf_counter()
        await say(runtime, choice, 0)
        print(f"the first turn with {SKILLS} skills, all of them built: {(time.perf_counter() - began) * 1000:.0f} ms")
        blocked, ready = [], []
        for number in range(1, 8):
            await say(runtime, choice, number)
            gc.collect()
            more = tuple(skill(each) for each in range(SKILLS + number))
            rosters.append(Roster(fingerprint=str(SKILLS + number), subagents=more))
            began = time.perf_counter()
            async with Gaps() as gaps:
                changed[0]()
                await say(runtime, choice, 100 + number)
                ready.append((time.perf_counter() - began) * 1000)
            blocked.append(gaps.longest)
    figure(
        f"one skill added to {SKILLS}, the loop blocked, ms",
        max(blocked),
        at_most=BLOCKED_MS,
        more=spread_ms(blocked),
    )
    figure(
        "from the change to the end of the next turn, ms",
        max(ready),
        at_most=READY_MS,
        more=spread_ms(ready),
    )


# -- a long thread ----------------------------------------------------------------------------------------------------


async def long_thread() -> None:
    from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
    from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage

    with tempfile.TemporaryDirectory(prefix="pizzabot-bench-") as folder:
        storage = SqliteStorage(Path(folder), SqliteSettings(), clock=time.time)
        async with storage, DeepAgentsRuntime(RuntimeSettings()) as runtime:
            roster = Roster(fingerprint="1", subagents=tuple(skill(number) for number in range(3)))
            await runtime.prepare(RuntimeServices(graph_storage=storage, roster=lambda: roster))
            choice = chosen(model())
            await say(runtime, choice, 0)
            before = size_of(folder)
            took = []
            for number in range(1, TURNS):
                began = time.perf_counter()
                await say(runtime, choice, number)
                took.append((time.perf_counter() - began) * 1000)
            grown = (size_of(folder) - before) / 1024 / TURNS
            reads = []
            for _ in range(ROUNDS):
                began = time.perf_counter()
                await runtime.state("t", caller=LOCAL)
                reads.append((time.perf_counter() - began) * 1000)
    print(f"{TURNS} turns on SQLite: one turn {spread_ms(took)}; the last 50 {spread_ms(took[-50:])}")
    figure("growth of the checkpoints, KB a turn", grown, at_most=GROWTH_KB)
    figure("state of the thread, ms", statistics.median(reads), at_most=STATE_MS, more=spread_ms(reads))


def size_of(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def main() -> None:
    print(machine())
    DeepAgentsRuntime(RuntimeSettings())  # what the libraries read of the environment as they are imported
    for part in (overhead, one_more_skill, long_thread):
        asyncio.run(part())
    print(end())


if __name__ == "__main__":
    main()
