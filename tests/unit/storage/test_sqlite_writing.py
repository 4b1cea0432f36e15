"""Writing under trouble: another process holds the file, the disk is full, an awaiter is gone, many write at once."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.sqlite_storage import writer
from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest, Unavailable
from pizzabot_hookspecs.interrupts import Decision, InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import CancelReason, NewEvent, NewRun, RunStatus


def new_run(run_id: str, thread_id: str = "t") -> NewRun:
    return NewRun(run_id=run_id, thread_id=thread_id, input={}, options={}, fingerprint="f")


def batch(text: str, size: int = 3) -> list[NewEvent]:
    return [NewEvent(method="messages", data=text.encode(), timestamp=1)] * size


async def started(storage: SqliteStorage, run_id: str = "r", thread_id: str = "t") -> int:
    await storage.admit_run(new_run(run_id, thread_id), caller=LOCAL)
    run = await storage.claim_run(run_id, server_id="s", caller=LOCAL)
    assert run is not None
    return run.epoch


@contextmanager
def held(database: Path) -> Iterator[sqlite3.Connection]:
    """A real second connection that holds the right to write until it is rolled back, at the latest at the end."""
    connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        connection.close()


async def handed_over(storage: SqliteStorage, count: int) -> None:
    """Let the loop turn until the writing thread has that many writes, the one that it is busy with included."""
    assert storage._writer is not None
    while writer.WRITES_WAITING - storage._writer._slots._value < count:  # noqa: ASYNC110 - the semaphore tells nobody
        await asyncio.sleep(0)


def test_a_lock_that_outlasts_the_busy_timeout_is_an_error_and_the_next_write_works(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path, SqliteSettings(busy_timeout_seconds=0.1)) as storage:
            epoch = await started(storage)
            with held(tmp_path / "app.sqlite"):
                writes = [storage.append_events("r", epoch, batch("no"), caller=LOCAL) for _ in range(5)]
                for error in await asyncio.gather(*writes, return_exceptions=True):
                    assert isinstance(error, Unavailable)
                    assert error.code == "storage_failed"
                    assert "busy_timeout_seconds" in error.detail
                    assert str(tmp_path / "app.sqlite") in error.detail
            assert await storage.append_events("r", epoch, batch("yes"), caller=LOCAL) == 1

    asyncio.run(scenario())


def test_a_write_that_was_handed_over_is_stored_though_its_awaiter_is_cancelled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            epoch = await started(storage)
            with held(tmp_path / "app.sqlite"):
                first = asyncio.create_task(storage.append_events("r", epoch, batch("one"), caller=LOCAL))
                await handed_over(storage, 1)
                second = asyncio.create_task(storage.append_events("r", epoch, batch("two"), caller=LOCAL))
                await handed_over(storage, 2)
                for task in (first, second):
                    task.cancel()
                answers = await asyncio.gather(first, second, return_exceptions=True)
                assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 2
            assert await storage.append_events("r", epoch, batch("three"), caller=LOCAL) == 7
            events = await storage.events("t", after=0, limit=100, caller=LOCAL)
            assert [event.data for event in events] == [b"one"] * 3 + [b"two"] * 3 + [b"three"] * 3

    asyncio.run(scenario())


def test_closing_stores_what_was_handed_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            epoch = await started(storage)
            tasks = [
                asyncio.create_task(storage.append_events("r", epoch, batch(str(number)), caller=LOCAL))
                for number in range(100)
            ]
            await asyncio.sleep(0)
        assert sorted(await asyncio.gather(*tasks)) == list(range(1, 300, 3))
        async with SqliteStorage(tmp_path) as storage:
            assert (await storage.log_bounds("t", caller=LOCAL)).last_seq == 300

    asyncio.run(scenario())


def test_waiting_writes_are_committed_together_and_each_fails_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        beyond_64_bits = NewEvent(method="m", data=b"", timestamp=1 << 70)
        async with SqliteStorage(tmp_path) as storage:
            epochs = {name: await started(storage, name, f"t-{name}") for name in "abcd"}
            with held(tmp_path / "app.sqlite"):
                first = asyncio.create_task(storage.pin_model("t-a", "x", caller=LOCAL))
                await handed_over(storage, 1)
                writes = [
                    storage.append_events("a", epochs["a"], batch("good"), caller=LOCAL),
                    storage.append_events("b", epochs["b"] + 1, batch("stale"), caller=LOCAL),
                    storage.pin_model("t-d", "lone \ud83d surrogate", caller=LOCAL),
                    storage.append_events("d", epochs["d"], [*batch("torn"), beyond_64_bits], caller=LOCAL),
                    storage.append_events("b", epochs["b"], batch("good"), caller=LOCAL),
                ]
                tasks = [asyncio.create_task(write) for write in writes]
                await handed_over(storage, 1 + len(tasks))
            answers = await asyncio.gather(first, *tasks, return_exceptions=True)
            assert answers[1] == 1
            assert isinstance(answers[2], Conflict)
            assert isinstance(answers[3], InvalidRequest)
            assert answers[3].code == "invalid_text"
            assert isinstance(answers[4], InvalidRequest)
            assert answers[4].code == "invalid_number"
            assert answers[5] == 1
            for name, count in (("a", 3), ("b", 3), ("d", 0)):
                assert len(await storage.events(f"t-{name}", after=0, limit=10, caller=LOCAL)) == count

    asyncio.run(scenario())


def test_a_group_of_writes_is_one_transaction(tmp_path: Path) -> None:
    async def scenario() -> None:
        statements: list[str] = []
        async with SqliteStorage(tmp_path) as storage:
            assert storage._writer is not None
            epoch = await started(storage)
            await storage._writer.run(lambda connection: connection.set_trace_callback(statements.append))
            with held(tmp_path / "app.sqlite"):
                tasks = [asyncio.create_task(storage.append_events("r", epoch, batch("0"), caller=LOCAL))]
                await handed_over(storage, 1)
                tasks += [
                    asyncio.create_task(storage.append_events("r", epoch, batch("n"), caller=LOCAL)) for _ in range(40)
                ]
                await handed_over(storage, 41)
            await asyncio.gather(*tasks)
            assert 1 <= statements.count("BEGIN IMMEDIATE") <= 2

    asyncio.run(scenario())


def test_what_a_person_said_or_a_tool_announced_is_on_the_disk_before_it_is_acknowledged(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            assert storage._writer is not None
            statements: list[str] = []
            await storage._writer.run(lambda connection: connection.set_trace_callback(statements.append))
            await storage.admit_run(new_run("r"), caller=LOCAL)
            assert _levels(statements) == ["FULL"]
            run = await storage.claim_run("r", server_id="s", caller=LOCAL)
            assert run is not None
            assert _levels(statements) == ["FULL", "NORMAL"]
            await storage.append_events("r", run.epoch, batch("x"), caller=LOCAL)
            assert _levels(statements) == ["FULL", "NORMAL"]
            await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            assert _levels(statements) == ["FULL", "NORMAL", "FULL"]
            await storage.close_intent("r", run.epoch, "call", caller=LOCAL)
            assert _levels(statements) == ["FULL", "NORMAL", "FULL", "NORMAL"]
            await storage.open_intent("r", run.epoch, call_id="call", tool="pay", namespace=(), caller=LOCAL)
            assert _levels(statements) == ["FULL", "NORMAL", "FULL", "NORMAL", "FULL"]
            asked = NewInterrupt(interrupt_id="one", kind=InterruptKind.INPUT, payload={})
            await storage.finish_run(
                "r", run.epoch, batch("x"), status=RunStatus.INTERRUPTED, interrupts=[asked], caller=LOCAL
            )
            assert _levels(statements) == ["FULL", "NORMAL"] * 3
            await storage.decide(
                [Decision(interrupt_id="one", answer="yes")], new_run("resume"), by="phone", caller=LOCAL
            )
            assert _levels(statements) == ["FULL", "NORMAL"] * 3 + ["FULL"]

    asyncio.run(scenario())


def _levels(statements: list[str]) -> list[str]:
    return [statement.split()[-1] for statement in statements if statement.startswith("PRAGMA synchronous")]


def test_no_more_writes_wait_than_the_limit_and_all_are_done(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            assert storage._writer is not None
            epoch = await started(storage)
            with held(tmp_path / "app.sqlite"):
                tasks = [
                    asyncio.create_task(storage.append_events("r", epoch, batch("x", 1), caller=LOCAL))
                    for _ in range(writer.WRITES_WAITING + 200)
                ]
                await handed_over(storage, writer.WRITES_WAITING)
                for _ in range(20):
                    await asyncio.sleep(0)
                assert storage._writer._queue.qsize() <= writer.WRITES_WAITING
            assert sorted(await asyncio.gather(*tasks)) == list(range(1, writer.WRITES_WAITING + 201))

    asyncio.run(scenario())


def test_a_long_read_holds_up_neither_writes_nor_other_reads(tmp_path: Path) -> None:
    async def scenario() -> None:
        entered, leave = threading.Event(), threading.Event()

        def long_read(connection: sqlite3.Connection) -> int:
            rows = connection.execute("SELECT seq FROM run_events")
            rows.fetchone()
            entered.set()
            assert leave.wait(60)
            return 1 + len(rows.fetchall())

        async with SqliteStorage(tmp_path) as storage:
            assert storage._readers is not None
            epoch = await started(storage)
            await storage.append_events("r", epoch, batch("x"), caller=LOCAL)
            read = asyncio.create_task(storage._readers.run(long_read))
            assert await asyncio.to_thread(entered.wait, 60)
            for _ in range(50):
                await storage.append_events("r", epoch, batch("y"), caller=LOCAL)
            assert (await storage.log_bounds("t", caller=LOCAL)).last_seq == 153
            leave.set()
            assert await read == 3, "and it sees the log as it was when it began"

    asyncio.run(scenario())


def test_no_more_reads_run_than_there_are_readers(tmp_path: Path) -> None:
    async def scenario() -> None:
        leave = threading.Event()
        entered: list[int] = []

        def blocked(_connection: sqlite3.Connection) -> None:
            entered.append(1)
            assert leave.wait(60)

        async with SqliteStorage(tmp_path, SqliteSettings(readers=2)) as storage:
            assert storage._readers is not None
            reads = [asyncio.create_task(storage._readers.run(blocked)) for _ in range(50)]
            while len(entered) < 2:  # noqa: ASYNC110 - set in a thread
                await asyncio.sleep(0)
            assert storage._readers._queue.qsize() == 0, "the others wait in their own coroutine"
            leave.set()
            await asyncio.gather(*reads)
            assert len(entered) == 50

    asyncio.run(scenario())


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            assert storage._readers is not None
            with pytest.raises(Unavailable, match="readonly"):
                await storage._readers.run(lambda connection: connection.execute("DELETE FROM threads"))

    asyncio.run(scenario())


DISK_FULL = """
import asyncio, resource, sys
from pathlib import Path
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, Unavailable
from pizzabot_hookspecs.storage_backends import NewEvent, NewRun

async def main(path):
    async with SqliteStorage(path) as storage:
        await storage.admit_run(NewRun(run_id="r", thread_id="t", input={}, options={}, fingerprint="f"), caller=LOCAL)
        batch = [NewEvent(method="m", data=b"x" * 1000, timestamp=1)] * 20
        stored = 0
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        codes = set()
        for _ in range(5):
            writes = [storage.append_events("r", 0, batch, caller=LOCAL) for _ in range(40)]
            for answer in await asyncio.gather(*writes, return_exceptions=True):
                if isinstance(answer, int):
                    stored += 20
                else:
                    assert isinstance(answer, Unavailable), repr(answer)
                    codes.add(answer.code)
        assert codes == {"storage_failed"}, codes
        assert stored, "nothing fitted at all"
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert await storage.append_events("r", 0, batch, caller=LOCAL) == stored + 1
    async with SqliteStorage(path) as storage:
        events = await storage.events("t", after=0, limit=100_000, caller=LOCAL)
        assert [event.seq for event in events] == list(range(1, stored + 21))
    print("all stored", flush=True)

asyncio.run(main(Path(sys.argv[1])))
"""


def test_a_disk_that_takes_no_more_is_an_error_and_the_next_write_works_when_it_does(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DISK_FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "all stored\n", done.stderr
