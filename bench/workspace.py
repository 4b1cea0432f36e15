"""A thread's files: writes, and lists and pages of a workspace as full as it may be. `python bench/workspace.py`.

On a real SQLite file and a real disk; the loop's longest pause is printed beside each figure.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import structlog

from pizzabot.host.files.pool import FilePool
from pizzabot.host.runs.hub import Hub
from pizzabot.host.transcripts.reading import TranscriptReader
from pizzabot.host.workspace.area import WorkspaceArea
from pizzabot.host.workspace.parts import FileParts
from pizzabot.host.workspace.place import Place
from pizzabot.host.workspace.usage import MAX_PATHS
from pizzabot.host.workspace.use_case import HostWorkspace
from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL

WRITES = 300
TIMES = 7
TICK = 0.002


class NobodyRuns:
    def still(self, thread_id: str, /) -> Any:
        raise AssertionError(thread_id)


async def longest_pause(done: asyncio.Event) -> float:
    longest, before = 0.0, time.perf_counter()
    while not done.is_set():
        await asyncio.sleep(TICK)
        now = time.perf_counter()
        longest, before = max(longest, now - before - TICK), now
    return longest


async def measured(name: str, work: Callable[[], Awaitable[Any]], times: int = TIMES) -> None:
    done = asyncio.Event()
    watching = asyncio.create_task(longest_pause(done))
    took = []
    for _ in range(times):
        began = time.perf_counter()
        await work()
        took.append(time.perf_counter() - began)
    done.set()
    p95 = sorted(took)[int(len(took) * 0.95)]
    typical = statistics.median(took)
    paused = await watching
    print(f"{name:<44} p50 {typical * 1000:8.2f} ms   p95 {p95 * 1000:8.2f} ms   loop {paused * 1000:6.1f} ms")


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        async with SqliteStorage(root, SqliteSettings()) as storage:
            await storage.create_thread("t", caller=LOCAL)
            parts = FileParts(
                storage=storage,
                hub=Hub(),
                turns=TranscriptReader(storage),
                data_root=root,
                pool=FilePool(),
                clock=time.time,
                logger=structlog.get_logger(),
            )
            area = WorkspaceArea(parts.versions, Place(thread_id="t", caller=LOCAL))
            workspace = HostWorkspace(parts.versions, parts.paths, parts.changes, NobodyRuns())
            number = iter(range(10**9))

            async def write() -> None:
                one = next(number)
                await area.write(f"/f{one % 100}/{one}.md", f"content {one}".encode() * 50)

            await measured(f"a new file of 600 bytes ({WRITES} of them)", write, WRITES)

            async def again() -> None:
                await area.write("/f0/0.md", b"content 0" * 50)

            await measured("the same content again", again, WRITES)

            async def change() -> None:
                await area.write("/f0/0.md", f"changed {next(number)}".encode())

            await measured("another version of a file", change, WRITES)
            await asyncio.gather(*(write() for _ in range(MAX_PATHS - WRITES)))
            print(f"{MAX_PATHS} files:")
            await measured("another version of a file", change, 50)
            await measured("list of /", lambda: area.list("/"))
            await measured("a page of 100", lambda: workspace.page("t", caller=LOCAL))
            await measured("find **/*1.md", lambda: area.find("**/*1.md", limit=100))
            await measured("search for a text that 111 files have", lambda: area.search("content 12", limit=1_000), 3)
            await measured("one file", lambda: area.read("/f0/0.md", max_bytes=10_000))


if __name__ == "__main__":
    sys.setswitchinterval(0.001)  # as the server does (architecture §6)
    asyncio.run(main())
