"""What SQLite storage costs: durable trivial runs a second, CPU per event, replay of 10,000 events, p50 and p99.

`python bench/storage.py [--folder DIR]`; the folder should lie on the disk that is to be measured.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import NewEvent, NewRun, RunStatus

RUNS = 2000
AT_ONCE = 200
BATCHES = 400
BATCH = 32
REPLAYED = 10_000
REPEATS = 15


def event(number: int) -> NewEvent:
    data = b'{"event":"content-block-delta","index":0,"content":{"type":"text","text":"word %d"}}' % number
    return NewEvent(
        method="messages", data=data, timestamp=1_700_000_000_000 + number, namespace=("model:1",), node="m"
    )


async def trivial_run(storage: SqliteStorage, number: int) -> float:
    began = time.perf_counter()
    run_id = f"run-{number}"
    text = {"messages": [{"role": "user", "content": "hello"}]}
    new = NewRun(run_id=run_id, thread_id=f"thread-{number}", input=text, options={}, fingerprint="f")
    await storage.admit_run(new, caller=LOCAL)
    run = await storage.claim_run(run_id, server_id="bench", caller=LOCAL)
    assert run is not None
    for _ in range(3):
        await storage.append_events(run_id, run.epoch, [event(0), event(1)], caller=LOCAL)
    await storage.finish_run(run_id, run.epoch, [event(9)], status=RunStatus.SUCCESS, caller=LOCAL)
    return time.perf_counter() - began


async def runs_per_second(storage: SqliteStorage, first: int, at_once: int, count: int) -> None:
    numbers = iter(range(first, first + count))
    took: list[float] = []

    async def worker() -> None:
        for number in numbers:
            took.append(await trivial_run(storage, number))  # noqa: PERF401

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    print(
        f"runs, {at_once} at once: {count / seconds:.0f}/s, CPU {cpu / count * 1e3:.2f} ms/run, one run {spread(took)}"
    )


async def event_cost(storage: SqliteStorage) -> None:
    new = NewRun(run_id="long", thread_id="long", input={}, options={}, fingerprint="f")
    await storage.admit_run(new, caller=LOCAL)
    run = await storage.claim_run("long", server_id="bench", caller=LOCAL)
    assert run is not None
    batches = [[event(number) for number in range(BATCH)] for _ in range(BATCHES)]
    took: list[float] = []
    cpu = time.process_time()
    for batch in batches:
        began = time.perf_counter()
        await storage.append_events("long", run.epoch, batch, caller=LOCAL)
        took.append(time.perf_counter() - began)
    cpu = time.process_time() - cpu
    print(f"append of {BATCH} events: CPU {cpu / BATCHES / BATCH * 1e3:.4f} ms/event, {spread(took)}")


async def replay(storage: SqliteStorage) -> None:
    took: list[float] = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        events = await storage.events("long", after=0, limit=REPLAYED, caller=LOCAL)
        took.append(time.perf_counter() - began)
        assert len(events) == REPLAYED
    print(f"replay of {REPLAYED} events: {spread(took)}")


async def small_read(storage: SqliteStorage) -> None:
    took: list[float] = []
    for _ in range(500):
        began = time.perf_counter()
        await storage.active_run("long", caller=LOCAL)
        took.append(time.perf_counter() - began)
    print(f"active_run: {spread(took)}")


def spread(took: list[float]) -> str:
    cuts = statistics.quantiles(took, n=100)
    return f"p50 {cuts[49] * 1e3:.2f} ms, p99 {cuts[98] * 1e3:.2f} ms"


def machine() -> str:
    return (
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


async def main(folder: Path) -> None:
    print(machine())
    async with SqliteStorage(folder) as storage:
        for number in range(20):
            await trivial_run(storage, number)  # imports and caches are not what is measured
        await runs_per_second(storage, 1_000_000, 1, 300)
        await runs_per_second(storage, 1_500_000, 8, 500)
        await runs_per_second(storage, 2_000_000, AT_ONCE, RUNS)
        await event_cost(storage)
        await small_read(storage)
    async with SqliteStorage(folder) as storage:
        await replay(storage)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to make a temporary data root; default: the system's")
    arguments = parser.parse_args()
    sys.setswitchinterval(0.001)  # as the server does (architecture §6)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        asyncio.run(main(Path(temporary) / "data"))
