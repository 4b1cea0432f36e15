"""What must be stored, is: after 20 s behind another process, and once there is room again on a disk that was full."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.interrupts import Decision, InterruptKind, InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import NewEvent, NewRun, RunStatus

HELD_SECONDS = 20.0


def new_run(run_id: str, thread_id: str) -> NewRun:
    return NewRun(run_id=run_id, thread_id=thread_id, input={}, options={}, fingerprint="f")


def batch(*texts: str) -> list[NewEvent]:
    return [NewEvent(method="messages", data=text.encode(), timestamp=1) for text in texts]


def asked(name: str) -> NewInterrupt:
    return NewInterrupt(interrupt_id=name, kind=InterruptKind.APPROVAL, payload={})


async def claimed(storage: SqliteStorage, run_id: str, thread_id: str) -> int:
    await storage.admit_run(new_run(run_id, thread_id), caller=LOCAL)
    run = await storage.claim_run(run_id, server_id="s", caller=LOCAL)
    assert run is not None
    return run.epoch


def test_everything_waits_20_seconds_for_another_process_and_then_succeeds(tmp_path: Path) -> None:
    assert SqliteSettings().busy_timeout_seconds > HELD_SECONDS, "the default covers it"

    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            asks = await claimed(storage, "asks", "asked")
            await storage.finish_run(
                "asks", asks, [], status=RunStatus.INTERRUPTED, interrupts=[asked("one")], caller=LOCAL
            )
            goes_on, ends = await claimed(storage, "goes-on", "a"), await claimed(storage, "ends", "b")
            with closing(sqlite3.connect(tmp_path / "app.sqlite", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                began = time.monotonic()
                writes = [
                    asyncio.create_task(write)
                    for write in (
                        storage.decide(
                            [Decision(interrupt_id="one", answer=1)], new_run("resume", "asked"), by="me", caller=LOCAL
                        ),
                        storage.append_events("goes-on", goes_on, batch("waited"), caller=LOCAL),
                        storage.open_intent("goes-on", goes_on, call_id="c", tool="pay", namespace=(), caller=LOCAL),
                        storage.finish_run(
                            "ends", ends, batch("x"), status=RunStatus.ERROR, interrupts=[asked("two")], caller=LOCAL
                        ),
                        storage.admit_run(new_run("new", "c"), caller=LOCAL),
                        storage.renew_leases("s", lease_seconds=60.0, caller=LOCAL),
                    )
                ]
                released = asyncio.Event()
                timer = threading.Timer(HELD_SECONDS, asyncio.get_running_loop().call_soon_threadsafe, (released.set,))
                timer.start()
                for _ in range(200):
                    assert await storage.run("goes-on", caller=LOCAL) is not None, "reads go on meanwhile"
                await released.wait()
                assert not any(write.done() for write in writes)
                other.execute("ROLLBACK")
                answers = await asyncio.gather(*writes)
                assert time.monotonic() - began >= HELD_SECONDS
                timer.join()
            assert answers[0].created
            assert answers[1] == 1
            assert answers[5] == {"goes-on"}
            one = await storage.interrupt("one", caller=LOCAL)
            assert one is not None
            assert one.state is InterruptState.DECIDED
            assert [found.interrupt_id for found in await storage.open_interrupts(caller=LOCAL)] == ["two"]
            assert [intent.call_id for intent in await storage.open_intents("goes-on", caller=LOCAL)] == ["c"]

    asyncio.run(scenario())


DISK_FULL = """
import asyncio, resource, sys
from pathlib import Path
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, Unavailable
from pizzabot_hookspecs.interrupts import Decision, InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import NewEvent, NewRun, RunStatus

NAMES = [f"i{number}" for number in range(40)]

def room(path, size):
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

async def refused(call):
    try:
        answer = await call
    except Unavailable as error:
        assert error.code == "storage_failed", error.code
        assert "disk" in error.detail, error.detail
        return
    raise AssertionError(f"answered {answer!r} though the disk is full")

def new(run_id, thread_id):
    return NewRun(run_id=run_id, thread_id=thread_id, input={"text": "x" * 5000}, options={}, fingerprint="f")

async def main(path):
    decisions = [Decision(interrupt_id=name, answer={"text": name * 200}) for name in NAMES]
    batch = [NewEvent(method="m", data=b"x" * 1000, timestamp=1)] * 20
    async with SqliteStorage(path) as storage:
        await storage.admit_run(new("asks", "asked"), caller=LOCAL)
        await storage.admit_run(new("r", "busy"), caller=LOCAL)
        asked = [NewInterrupt(interrupt_id=name, kind=InterruptKind.APPROVAL, payload={}) for name in NAMES]
        await storage.finish_run("asks", 0, batch, status=RunStatus.INTERRUPTED, interrupts=asked, caller=LOCAL)
        before = await storage.open_interrupts(limit=1000, caller=LOCAL)
        room(path, (path / "app.sqlite-wal").stat().st_size)
        for _ in range(3):
            await refused(storage.decide(decisions, new("resume", "asked"), by="me", caller=LOCAL))
            await refused(storage.append_events("r", 0, batch, caller=LOCAL))
            await refused(storage.open_intent("r", 0, call_id="c", tool="pay", namespace=(), caller=LOCAL))
            await refused(storage.finish_run("r", 0, batch, status=RunStatus.ERROR, interrupts=asked, caller=LOCAL))
            answers = await asyncio.gather(
                refused(storage.decide(decisions, new("resume", "asked"), by="me", caller=LOCAL)),
                refused(storage.append_events("r", 0, batch, caller=LOCAL)),
            )
            assert await storage.open_interrupts(limit=1000, caller=LOCAL) == before
            assert await storage.run("resume", caller=LOCAL) is None
            assert await storage.open_intents("r", caller=LOCAL) == []
            assert len(await storage.events("busy", after=0, limit=1000, caller=LOCAL)) == 0
        room(path, None)
        assert await storage.append_events("r", 0, batch, caller=LOCAL) == 1
        assert (await storage.decide(decisions, new("resume", "asked"), by="me", caller=LOCAL)).created
    async with SqliteStorage(path) as storage:
        assert await storage.open_interrupts(caller=LOCAL) == []
        decided = [await storage.interrupt(name, caller=LOCAL) for name in NAMES]
        assert [interrupt.answer["text"] for interrupt in decided] == [name * 200 for name in NAMES]
        assert (await storage.next_pending("asked", caller=LOCAL)).run_id == "resume"
        events = await storage.events("busy", after=0, limit=1000, caller=LOCAL)
        assert [event.seq for event in events] == list(range(1, 21))
    print("nothing lost", flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_decision_on_a_full_disk_is_refused_whole_and_works_when_there_is_room(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DISK_FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "nothing lost\n", done.stderr
