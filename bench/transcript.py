"""What a transcript costs where it is stored: a thread of 10,000 turns on SQLite, read and rebuilt.

    python bench/transcript.py

To reach (issue 5): the newest page in 50 ms, with nothing in memory; 100,000 events rebuilt in 10 s without blocking
the event loop. A turn is a question and an answer of a few tokens, 10 events with its facts.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog
from fold import Log
from peer.figures import end, figure, machine, spread

from pizzabot.host.transcripts.checking import fault_of_rows
from pizzabot.host.transcripts.keeping import TranscriptKeeper
from pizzabot.host.transcripts.reading import TranscriptReader
from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import Run, RunStatus, Storage, ThreadCopy

TURNS = 10_000
TOKENS = 1
PAGE_MS = 50.0
REBUILD_SECONDS = 10.0
ROUNDS = 15
GAP_MS = 50.0
"""A wait of the loop that a person would begin to feel."""


def long_thread() -> ThreadCopy:
    log = Log()
    for _ in range(TURNS):
        log.turn(TOKENS, works=False)
    named = [replace(event, name=_name(event.data)) if event.method == "custom" else event for event in log.events]
    ids = dict.fromkeys(str(event.run_id) for event in named)
    at: dict[str, Any] = {"created_at": 1.0, "started_at": 1.0, "ended_at": 2.0}
    runs = [
        Run(run_id=one, thread_id="t", owner="local", status=RunStatus.SUCCESS, input={}, options={}, **at)
        for one in ids
    ]
    return ThreadCopy(thread_id="t", title="long", runs=runs, events=named)


def _name(data: bytes) -> str:
    return data.split(b'"', 4)[3].decode()


@asynccontextmanager
async def gaps() -> AsyncIterator[list[float]]:
    """The longest wait of the loop, in ms, beyond the 1 ms that it was asked for."""
    longest = [0.0]

    async def watch() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest[0] = max(longest[0], (time.perf_counter() - before) * 1e3 - 1)

    watching = asyncio.create_task(watch())
    try:
        yield longest
    finally:
        watching.cancel()


async def timed(read: Callable[[], Awaitable[Any]]) -> list[float]:
    took = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        await read()
        took.append(time.perf_counter() - began)
    return took


def show(name: str, took: list[float], at_most: float) -> None:
    figure(name, sorted(took)[len(took) // 2] * 1e3, at_most=at_most, more=spread(took))


async def _stored(storage: Storage) -> int:
    """Store the thread; how many events it has. Nothing of it stays in memory, where collections would look at it."""
    copy = long_thread()
    await storage.adopt_thread(copy, caller=LOCAL)
    return len(copy.events)


async def measure(storage: Storage) -> None:
    count = await _stored(storage)
    gc.collect()
    keeper = TranscriptKeeper(storage, logger=structlog.get_logger())
    async with gaps() as longest:
        began = time.perf_counter()
        async for _ in keeper.rebuild("t"):
            pass
        took = time.perf_counter() - began
    figure(f"s to rebuild {count:,} events", took, at_most=REBUILD_SECONDS)
    figure("ms, longest wait of the loop meanwhile", longest[0], at_most=GAP_MS)
    if (fault := await fault_of_rows(storage, "t")) is not None:
        raise SystemExit(f"the rows are not what the log folds to: {fault}")

    async def cold(**args: Any) -> Any:
        return await TranscriptReader(storage).page("t", **args, caller=LOCAL)

    async with gaps() as longest:
        show(f"ms for the newest page of {TURNS:,} turns, nothing in memory", await timed(cold), PAGE_MS)
    figure("ms, longest wait of the loop meanwhile", longest[0], at_most=GAP_MS)
    middle = count // 2
    show("ms for a page around the middle", await timed(lambda: cold(around_seq=middle)), PAGE_MS)
    warm = TranscriptReader(storage)
    await warm.page("t", caller=LOCAL)
    show("ms for the newest page once more", await timed(lambda: warm.page("t", caller=LOCAL)), PAGE_MS)


async def main() -> None:
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        async with SqliteStorage(Path(folder), SqliteSettings()) as storage:
            await measure(storage)
    print(end())


if __name__ == "__main__":
    asyncio.run(main())
