"""What SQLite storage costs: durable runs, decisions, intents and files a second, CPU per event, replay of 10,000
events, and the files of a branch.

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
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.file_storage import FileVersion, NewFileVersion
from pizzabot_hookspecs.interrupts import Decision, InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import MergedEvents, NewEvent, NewRun, RunStatus, StoredEvent, ThreadCopy
from pizzabot_hookspecs.wire import JsonValue

RUNS = 2000
AT_ONCE = 200
BATCHES = 400
BATCH = 32
REPLAYED = 10_000
REPEATS = 15
CALLS = 2000
PATHS = 10_000
VERSIONS = 3
TURNS = 2000


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


async def decisions_per_second(storage: SqliteStorage, count: int) -> None:
    """Each is one interrupt decided and the run that goes on admitted, on the disk before it is acknowledged."""
    asked = [NewInterrupt(interrupt_id="i", kind=InterruptKind.APPROVAL, payload={"action_requests": [{}]})]
    for number in range(count):
        run_id, thread_id = f"asks-{number}", f"asked-{number}"
        new = NewRun(run_id=run_id, thread_id=thread_id, input={}, options={}, fingerprint="f")
        await storage.admit_run(new, caller=LOCAL)
        await storage.finish_run(run_id, 0, [event(0)], status=RunStatus.INTERRUPTED, interrupts=asked, caller=LOCAL)

    async def decide(number: int) -> None:
        new = NewRun(run_id=f"goes-on-{number}", thread_id=f"asked-{number}", input={}, options={}, fingerprint="f")
        answer: JsonValue = {"decisions": [{"type": "approve"}]}
        await storage.decide([Decision(interrupt_id="i", answer=answer)], new, by="bench", caller=LOCAL)

    await calls_per_second("decisions", decide, count)


async def intents_per_second(storage: SqliteStorage, count: int) -> None:
    """Each is an intent opened, on the disk before it is acknowledged, and closed."""
    epochs = []
    for number in range(AT_ONCE):
        new = NewRun(run_id=f"tools-{number}", thread_id=f"tools-{number}", input={}, options={}, fingerprint="f")
        await storage.admit_run(new, caller=LOCAL)
        run = await storage.claim_run(new.run_id, server_id="bench", caller=LOCAL)
        assert run is not None
        epochs.append(run.epoch)

    async def tool(number: int) -> None:
        run_id, epoch, call_id = f"tools-{number % AT_ONCE}", epochs[number % AT_ONCE], f"call-{number}"
        await storage.open_intent(run_id, epoch, call_id=call_id, tool="pay", namespace=("tools:1",), caller=LOCAL)
        await storage.close_intent(run_id, epoch, call_id, caller=LOCAL)

    await calls_per_second("intents, opened and closed", tool, count)


async def files_per_second(storage: SqliteStorage, count: int) -> None:
    """Each is a version with its fact, on the disk before it is acknowledged."""
    await storage.create_thread("edited", caller=LOCAL)

    async def edit(number: int) -> None:
        path, digest = f"/notes/{number % 100}.md", f"{number:064x}"
        new = NewFileVersion(
            thread_id="edited", path=path, sha256=digest, size=9, media_type="text/markdown", author="agent"
        )
        await storage.put_file(new, event(number), caller=LOCAL)

    await calls_per_second("files", edit, count)


async def files_of_a_branch(storage: SqliteStorage) -> None:
    """Each turn wrote a few of the files; a branch has every other turn."""
    files = [
        FileVersion(
            thread_id="full",
            path=f"/folder-{path % 100}/file-{path}.md",
            version=version,
            sha256=f"{path * VERSIONS + version:064x}",
            size=1_000,
            media_type="text/markdown",
            author="agent",
            turn_id=f"turn-{(path + version) % (2 * TURNS)}",
            run_id=None,
            seq=1,
            created_at=1_700_000_000.25,
        )
        for path in range(PATHS)
        for version in range(1, VERSIONS + 1)
    ]
    log = [StoredEvent(seq=1, thread_id="full", run_id=None, method="custom", data=b"{}", timestamp=1)]
    began = time.perf_counter()
    await storage.adopt_thread(ThreadCopy(thread_id="full", title="full", events=log, files=files), caller=LOCAL)
    print(f"adopting {len(files)} versions of files: {(time.perf_counter() - began) * 1e3:.0f} ms")
    for turns in (None, [f"turn-{number}" for number in range(0, 2 * TURNS, 2)]):
        took: list[float] = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            found = await storage.files("full", turns=turns, caller=LOCAL)
            took.append(time.perf_counter() - began)
        of = "all turns" if turns is None else f"{len(turns)} turns"
        print(f"files of {of}, {len(found)} of {PATHS} paths with {VERSIONS} versions: {spread(took)}")
    digests = [file.sha256 for file in files if file.sha256][::6]
    began = time.perf_counter()
    used = await storage.used_blobs(digests)
    print(f"used_blobs of {len(used)} digests: {(time.perf_counter() - began) * 1e3:.1f} ms")


async def calls_per_second(what: str, call: Callable[[int], Awaitable[None]], count: int) -> None:
    """The first quarter one after the other, the rest many at once."""
    alone = count // 4
    for at_once, numbers in ((1, iter(range(alone))), (AT_ONCE, iter(range(alone, count)))):
        took: list[float] = []

        async def worker(numbers: Iterator[int] = numbers, took: list[float] = took) -> None:
            for number in numbers:
                began = time.perf_counter()
                await call(number)
                took.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(at_once)))
        print(f"{what}, {at_once} at once: {len(took) / (time.perf_counter() - began):.0f}/s, each {spread(took)}")


async def merging_cost(storage: SqliteStorage) -> None:
    """What a round of retention looks through and does: many threads whose only run stays as it is, one long log."""
    began = time.perf_counter()
    found = await storage.mergeable_runs(ended_before=time.time() + 1, limit=200, caller=LOCAL)
    looked = time.perf_counter() - began
    ranges = [MergedEvents(first_seq=seq, last_seq=seq + 99, data=b"{}") for seq in range(101, BATCH * BATCHES, 100)]
    await storage.finish_run("long", 1, [event(9)], status=RunStatus.SUCCESS, caller=LOCAL)
    began = time.perf_counter()
    await storage.merge_events("long", ranges, caller=LOCAL)
    merged = time.perf_counter() - began
    print(f"merging: looking {looked * 1e3:.1f} ms ({len(found)} found), {len(ranges)} ranges {merged * 1e3:.1f} ms")


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
        await decisions_per_second(storage, CALLS)
        await intents_per_second(storage, CALLS)
        await files_per_second(storage, CALLS)
        await files_of_a_branch(storage)
    async with SqliteStorage(folder) as storage:
        await replay(storage)
        await merging_cost(storage)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="where to make a temporary data root; default: the system's")
    arguments = parser.parse_args()
    sys.setswitchinterval(0.001)  # as the server does (architecture §6)
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        asyncio.run(main(Path(temporary) / "data"))
