"""What our normaliser costs per streamed token, beside LangGraph's own cost, in one run: `python bench/normaliser.py`.

To reach: at most 50 microseconds a token for the normaliser alone (architecture §6 allows normaliser, log and one
observer 150 together). Prints p50 and p99 over the rounds, and the machine.
"""

from __future__ import annotations

import asyncio
import platform
import statistics
import time
from collections.abc import Iterable
from typing import Any

TOKENS = 2_000
ROUNDS = 9
TO_REACH_US = 50.0


async def native_events(graph: Any, thread_id: str) -> list[Any]:
    """LangGraph's own events of one turn of `TOKENS` tokens: iterating them is the bare cost."""
    from langchain_core.messages import HumanMessage

    from pizzabot_builtin_plugins.deepagents_runtime.streaming import open_stream
    from pizzabot_builtin_plugins.deepagents_runtime.thread_memory import thread_config

    stream, _ = await open_stream(graph, {"messages": [HumanMessage("go", id="u1")]}, thread_config(thread_id))
    return [event async for event in stream]


def normalise(events: Iterable[Any]) -> int:
    from pizzabot_builtin_plugins.deepagents_runtime.normaliser import Normaliser

    normaliser = Normaliser()
    return sum(len(list(normaliser.feed(event))) for event in events) + len(normaliser.close())


async def measure() -> tuple[list[float], list[float], int]:
    """Microseconds a token of bare iteration and of normalising the same events, and the number of frames."""
    from langgraph.checkpoint.memory import InMemorySaver

    from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
    from pizzabot_builtin_plugins.deepagents_runtime.graph_building import build_graph
    from pizzabot_builtin_plugins.deepagents_runtime.middleware import Workshop
    from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ToolSet

    model = ScriptedModel(script=lambda _: Reply(pieces=["token "] * TOKENS))
    graph = build_graph(chosen(model), tools=ToolSet(), workshop=Workshop(), checkpointer=InMemorySaver())
    await native_events(graph, "warm-up")
    bare, ours, frames = [], [], 0
    for number in range(ROUNDS):
        started = time.perf_counter()
        events = await native_events(graph, f"thread-{number}")
        bare.append((time.perf_counter() - started) / TOKENS * 1e6)
        started = time.perf_counter()
        frames = normalise(events)
        ours.append((time.perf_counter() - started) / TOKENS * 1e6)
    return bare, ours, frames


def row(name: str, values: list[float]) -> str:
    return f"{name:<28} p50 {statistics.median(values):8.2f}   p99 {max(values):8.2f}   us a token"


def main() -> int:
    from pizzabot_builtin_plugins.deepagents_runtime import loading

    loading.set_environment(tracing=False)
    bare, ours, frames = asyncio.run(measure())
    print(
        f"{platform.platform()}, Python {platform.python_version()}; {TOKENS} tokens, {ROUNDS} rounds, {frames} frames"
    )
    print(row("LangGraph v3, deep agent", bare))
    print(row("normaliser", ours))
    reached = statistics.median(ours) <= TO_REACH_US
    print(f"to reach: {TO_REACH_US:.0f} us a token: {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1


if __name__ == "__main__":
    raise SystemExit(main())
