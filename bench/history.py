"""What it costs to show a long thread: its state and 20 entries of its history, beside LangGraph's own readers.

    python bench/history.py [--quick] [--folder DIR]

The thread has 1,000 messages, of which every fifth answer calls a tool, on SQLite with the saver of the storage plugin.
The peer is the same graph over the same file, asked by `aget_state` and `aget_state_history`. To reach: state in 50 ms,
20 entries in 200 ms, and no gap of the event loop over 10 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from peer.figures import end, figure, machine, spread

from pizzabot.testing.runtime_contract import frames_of, said, turn
from pizzabot.testing.scripted_model import Reply, ScriptedModel, chosen
from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import RuntimeServices
from pizzabot_hookspecs.wire import ThreadState

MESSAGES = 1000
ENTRIES = 20
STATE_MS = 50.0
HISTORY_MS = 200.0
GAP_MS = 10.0
HEARTBEAT_SECONDS = 0.001
IDLE_SECONDS = 0.025
THREAD = "long"
ANSWER = "A paragraph of an answer, as long as those that people get from a model. " * 8


@dataclass
class Heart:
    """Beats on the loop; `gaps` are how late it was, in seconds."""

    gaps: list[float] = field(default_factory=list)

    async def beat(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self.gaps.append(time.perf_counter() - began - HEARTBEAT_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Measured:
    took: list[float]
    gap: float


async def measured(call: Callable[[], Awaitable[Any]], repeats: int) -> Measured:
    """Seconds of each call, and how long the loop was held up at worst. The first call is not counted."""
    await call()
    heart = Heart()
    beating = asyncio.ensure_future(heart.beat())
    took = []
    for _ in range(repeats):
        await asyncio.sleep(HEARTBEAT_SECONDS * 5)
        began = time.perf_counter()
        await call()
        took.append(time.perf_counter() - began)
    await asyncio.sleep(HEARTBEAT_SECONDS * 5)
    beating.cancel()
    return Measured(took=took, gap=max(heart.gaps))


async def long_thread(runtime: DeepAgentsRuntime, messages: int) -> None:
    """Turns of a question and an answer until there are so many messages; the tool calls are written in between."""
    model = ScriptedModel(script=lambda _asked: Reply(ANSWER, pieces=[ANSWER]))
    count = number = 0
    while count < messages:
        number += 1
        await frames_of(runtime.start(turn(chosen(model), said(f"question {number}", f"u{number}"), thread_id=THREAD)))
        model.__pydantic_private__["_calls"].clear()  # type: ignore[index]
        count += 2
        if number % 5 == 0 and count < messages - 2:
            await _tool_call(runtime, number)
            count += 2


async def _tool_call(runtime: DeepAgentsRuntime, number: int) -> None:
    call = {"name": "look", "id": f"call-{number}", "args": {"what": "the weather"}, "type": "tool_call"}
    pair = [
        AIMessage("", tool_calls=[call], id=f"a{number}"),
        ToolMessage("sunny", tool_call_id=f"call-{number}", name="look", id=f"t{number}"),
    ]
    values: Any = {"messages": [message.model_dump() for message in pair]}
    await runtime.update_state(THREAD, values, as_node="tools", checkpoint_id=None, caller=LOCAL)


async def show(storage: SqliteStorage, folder: Path, effort: int) -> None:
    async with DeepAgentsRuntime(RuntimeSettings()) as runtime:
        await runtime.prepare(RuntimeServices(graph_storage=storage))
        await long_thread(runtime, MESSAGES)
        graph = runtime._engine.reader  # type: ignore[union-attr]
        config: Any = {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}

        async def state() -> ThreadState | None:
            return await runtime.state(THREAD, caller=LOCAL)

        async def history(before: str | None = None) -> Any:
            return await runtime.history(THREAD, limit=ENTRIES, before=before, namespace=(), caller=LOCAL)

        async def peer_history() -> list[Any]:
            return [entry async for entry in graph.aget_state_history(config, limit=ENTRIES)]

        shown = await state()
        assert shown is not None
        messages: Any = shown["values"]["messages"]
        entries = await history()
        middle = entries[ENTRIES // 2]["checkpoint"]["checkpoint_id"]
        print(f"{len(messages)} messages, {len(entries)} entries, file {_size(folder):.0f} MB")
        idle = await measured(lambda: asyncio.sleep(IDLE_SECONDS), effort)
        figure("an idle loop, longest gap, ms", idle.gap * 1e3, more="what the machine's other work does to it")
        _told("state", await measured(state, effort), STATE_MS)
        _told(f"{ENTRIES} entries", await measured(history, effort), HISTORY_MS)
        _told(f"{ENTRIES} entries before one", await measured(lambda: history(middle), effort), HISTORY_MS)
        _told("peer, aget_state", await measured(lambda: graph.aget_state(config), effort))
        _told(f"peer, aget_state_history, {ENTRIES} entries", await measured(peer_history, max(3, effort // 5)))


def _told(name: str, result: Measured, limit: float | None = None) -> None:
    figure(f"{name}, ms", statistics.median(result.took) * 1e3, at_most=limit, more=spread(result.took))
    figure(f"{name}, longest gap of the loop, ms", result.gap * 1e3, at_most=None if limit is None else GAP_MS)


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.glob("checkpoints.sqlite*")) / 1e6


async def main(effort: int, folder: Path) -> None:
    print(machine())
    async with SqliteStorage(folder) as storage:
        await show(storage, folder, effort)
    print(end())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 repeats instead of 100")
    parser.add_argument("--folder", type=Path, help="where the files lie; a temporary one unless given")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as temporary:
        asyncio.run(main(10 if given.quick else 100, Path(temporary)))
