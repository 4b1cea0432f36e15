"""Two engines on one file: one holds a thread at a time, and who was replaced writes nothing more. And its indexes."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.sqlite_storage import decisions, events, intents, interrupts, merging, runs
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, Conflict
from pizzabot_hookspecs.interrupts import InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import Multitask, NewEvent, NewRun, RunStatus

ASKED = NewInterrupt(interrupt_id="late", kind=InterruptKind.INPUT, payload={})


def new_run(run_id: str) -> NewRun:
    return NewRun(run_id=run_id, thread_id="t", input={}, options={}, fingerprint="f", multitask=Multitask.ENQUEUE)


def batch(text: str) -> list[NewEvent]:
    return [NewEvent(method="messages", data=text.encode(), timestamp=1)] * 3


def test_an_engine_that_was_replaced_writes_nothing_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as first, SqliteStorage(tmp_path) as second:
            await first.admit_run(new_run("r"), caller=LOCAL)
            old = await first.claim_run("r", server_id="first", caller=LOCAL)
            assert old is not None
            await first.append_events("r", old.epoch, batch("first"), caller=LOCAL)
            await first.open_intent("r", old.epoch, call_id="a", tool="pay", namespace=(), caller=LOCAL)
            new = await second.claim_run("r", server_id="second", takeover=True, caller=LOCAL)
            assert new is not None
            for late in (
                first.append_events("r", old.epoch, batch("late"), caller=LOCAL),
                first.finish_run("r", old.epoch, batch("late"), status=RunStatus.SUCCESS, caller=LOCAL),
                first.finish_run("r", old.epoch, [], status=RunStatus.INTERRUPTED, interrupts=[ASKED], caller=LOCAL),
                first.open_intent("r", old.epoch, call_id="b", tool="pay", namespace=(), caller=LOCAL),
                first.open_intent("r", old.epoch, call_id="a", tool="pay", namespace=(), caller=LOCAL),
                first.close_intent("r", old.epoch, "a", caller=LOCAL),
                first.close_intent("r", old.epoch, "b", caller=LOCAL),
            ):
                with pytest.raises(Conflict) as caught:
                    await late
                assert caught.value.code == "lease_lost"
            assert await first.renew_leases("first", lease_seconds=60.0, caller=LOCAL) == frozenset()
            assert [intent.call_id for intent in await first.open_intents("r", caller=LOCAL)] == ["a"]
            assert list(await first.open_interrupts(caller=LOCAL)) == []
            await second.close_intent("r", new.epoch, "a", caller=LOCAL)
            await second.finish_run("r", new.epoch, batch("second"), status=RunStatus.SUCCESS, caller=LOCAL)
            for storage in (first, second):
                stored = await storage.events("t", after=0, limit=100, caller=LOCAL)
                assert [event.data for event in stored] == [b"first"] * 3 + [b"second"] * 3

    asyncio.run(scenario())


def test_of_claims_by_two_engines_one_succeeds(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as first, SqliteStorage(tmp_path) as second:
            names = [f"r{number}" for number in range(20)]
            for name in names:
                await first.admit_run(new_run(name), caller=LOCAL)
            claims = await asyncio.gather(
                *(
                    storage.claim_run(name, server_id=server, caller=LOCAL)
                    for name in names
                    for storage, server in ((first, "first"), (second, "second"))
                )
            )
            assert sum(claim is not None for claim in claims) == 1

    asyncio.run(scenario())


def test_two_engines_that_append_to_one_thread_leave_no_gap(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as first, SqliteStorage(tmp_path) as second:
            for name in ("a", "b"):
                await first.admit_run(new_run(name), caller=LOCAL)

            async def write(storage: SqliteStorage, name: str) -> list[int]:
                return [await storage.append_events(name, 0, batch(name), caller=LOCAL) for _ in range(60)]

            seqs = await asyncio.gather(write(first, "a"), write(second, "b"))
            assert sorted(seqs[0] + seqs[1]) == list(range(1, 360, 3))
            stored = await first.events("t", after=0, limit=1000, caller=LOCAL)
            assert [event.seq for event in stored] == list(range(1, 361))
            for name, firsts in zip("ab", seqs, strict=True):
                assert all(stored[seq - 1 + part].data == name.encode() for seq in firsts for part in range(3))

    asyncio.run(scenario())


def test_the_database_itself_refuses_a_second_active_run(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            for name in ("a", "b"):
                await storage.admit_run(new_run(name), caller=LOCAL)

    asyncio.run(scenario())
    connection = sqlite3.connect(tmp_path / "app.sqlite")
    connection.execute("UPDATE runs SET status = 'running' WHERE run_id = 'a'")
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute("UPDATE runs SET status = 'cancelling' WHERE run_id = 'b'")
    connection.close()


@pytest.mark.parametrize(
    ("query", "parameters", "index"),
    [
        (runs._ACTIVE, 3, "runs_active"),
        (runs._FRONT, 3, "runs_queue"),
        (runs._STOPPED, 3, "runs_stopped"),
        (runs._RESUMES, 1, "runs_queue"),
        (runs._RELEASE, 4, "runs_active"),
        (runs._UNFINISHED, 2, "runs_unfinished"),
        (runs._WAITING, 3, "runs_queue"),
        (runs._RENEW, 4, "runs_active"),
        (merging._MERGEABLE, 4, "runs_unmerged"),
        (merging._MERGEABLE, 4, "runs_by_beginning"),
        (runs._STOP_RESUMES, 3, "runs_queue"),
        (interrupts._WITHDRAW, 2, "interrupts_open_by_thread"),
        (interrupts._PENDING, 2, "interrupts_open_by_thread"),
        (interrupts._OF_THREAD, 4, "interrupts_open_by_thread"),
        (interrupts._OWN, 2, "interrupts_open "),
        (decisions._DECIDE, 5, "sqlite_autoindex_interrupts_1"),
        (intents._OF_RUN, 3, "intents_open"),
        (intents._CLOSE, 3, "sqlite_autoindex_intents_1"),
        (events._READ, 6, "sqlite_autoindex_run_events_1"),
        (events._BOUNDS, 3, "runs_by_beginning"),
    ],
)
def test_a_query_uses_its_index_and_sorts_nothing(tmp_path: Path, query: str, parameters: int, index: str) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path):
            pass

    asyncio.run(scenario())
    connection = sqlite3.connect(tmp_path / "app.sqlite")
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", (0,) * parameters)]
    connection.close()
    assert any(index in step for step in plan), plan
    assert not any("TEMP B-TREE FOR ORDER BY" in step for step in plan), plan
