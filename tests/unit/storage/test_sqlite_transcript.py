"""The index of a transcript reads no body, and the newest fact is found in an index: in any thread, however long."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.sqlite_storage import facts, transcript
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, Unavailable
from pizzabot_hookspecs.storage_backends import (
    NewEvent,
    NewRun,
    Run,
    RunStatus,
    StoredEvent,
    ThreadCopy,
    TurnRow,
)

TURNS = 500
PAGE = 4096


def plan_of(folder: Path, query: str) -> list[str]:
    async def opened() -> None:
        async with SqliteStorage(folder):
            pass

    asyncio.run(opened())
    with closing(sqlite3.connect(folder / "app.sqlite")) as connection:
        parameters = (0,) * query.count("?")
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", parameters)]


def test_the_places_of_the_turns_are_read_from_an_index_that_covers_them_in_its_order(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, transcript._PLACES)
    (step,) = [step for step in plan if "transcript_turns" in step]
    assert step.startswith("SEARCH")
    assert "COVERING INDEX transcript_turns_by_place (thread_id=?)" in step
    assert not any("TEMP B-TREE" in step for step in plan), "nothing is sorted"


@pytest.mark.parametrize("ids", [1, transcript.IDS_PER_SELECT])
def test_turns_are_found_by_their_ids(tmp_path: Path, ids: int) -> None:
    (step,) = plan_of(tmp_path, transcript.turns_query(ids))
    assert "SEARCH" in step
    assert "(thread_id=? AND turn_id=?)" in step


def test_the_newest_fact_is_one_step_in_an_index_of_the_events_with_a_name(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, facts._NEWEST)
    assert any("COVERING INDEX run_events_named (thread_id=? AND name=?)" in step for step in plan), plan
    assert not any("SCAN" in step and "CONSTANT" not in step for step in plan), plan


def test_the_index_is_read_without_the_table_in_which_the_bodies_lie(tmp_path: Path) -> None:
    """The table is destroyed: whoever looks into it is told so."""

    async def filled() -> None:
        async with SqliteStorage(tmp_path) as storage:
            await storage.create_thread("t", caller=LOCAL)
            rows = [
                TurnRow(turn_id=f"turn-{seq}", seq=seq, rev=seq, parent_id=None, settled=True, body=b"x" * 5_000)
                for seq in range(1, TURNS + 1)
            ]
            assert await storage.put_transcript("t", rows, after=0, cursor=TURNS, summary=b"", caller=LOCAL)

    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            index = await storage.transcript_index("t", caller=LOCAL)
            assert [turn.seq for turn in index.turns] == list(range(1, TURNS + 1))
            with pytest.raises(Unavailable) as caught:
                await storage.transcript_turns("t", ["turn-1"], caller=LOCAL)
            assert caught.value.code == "database_damaged"

    asyncio.run(filled())
    with closing(sqlite3.connect(tmp_path / "app.sqlite")) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'transcript_turns'").fetchone()
    content = bytearray((tmp_path / "app.sqlite").read_bytes())
    content[(root - 1) * PAGE : root * PAGE] = b"\xa5" * PAGE
    (tmp_path / "app.sqlite").write_bytes(content)
    asyncio.run(scenario())


def test_a_fact_is_found_in_a_long_log_in_as_many_steps_as_in_a_short_one(tmp_path: Path) -> None:
    def steps(connection: sqlite3.Connection, thread_id: str) -> int:
        taken = [0]

        def count() -> int:
            taken[0] += 1
            return 0

        connection.set_progress_handler(count, 1)
        facts.latest_fact(connection, thread_id, ["pizzabot.turn", "pizzabot.head"], caller=LOCAL)
        connection.set_progress_handler(None, 1)
        return taken[0]

    async def filled() -> None:
        async with SqliteStorage(tmp_path) as storage:
            word = NewEvent(method="messages", data=b"word", timestamp=1)
            turn = NewEvent(method="custom", data=b"{}", timestamp=1, name="pizzabot.turn")
            for thread_id, count, first in (("short", 1, turn), ("long", 20_000, turn), ("without", 20_000, word)):
                await storage.create_thread(thread_id, caller=LOCAL)
                await storage.append_facts(thread_id, [first, *[word] * count], caller=LOCAL)

    asyncio.run(filled())
    with closing(sqlite3.connect(tmp_path / "app.sqlite", isolation_level=None)) as connection:
        steps(connection, "short")  # which reads the schema, too
        assert 0 < steps(connection, "long") <= steps(connection, "short")
        assert 0 < steps(connection, "without") <= steps(connection, "short")


def test_facts_survive_power_loss_when_they_are_acknowledged(tmp_path: Path) -> None:
    async def scenario() -> None:
        statements: list[str] = []
        async with SqliteStorage(tmp_path) as storage:
            assert storage._writer is not None
            await storage.create_thread("t", caller=LOCAL)
            await storage._writer.run(lambda connection: connection.set_trace_callback(statements.append))
            await storage.append_facts("t", [NewEvent(method="custom", data=b"{}", timestamp=1)], caller=LOCAL)
        levels = [statement.split()[-1] for statement in statements if statement.startswith("PRAGMA synchronous")]
        assert levels == ["FULL"]

    asyncio.run(scenario())


def test_reads_of_the_transcript_go_on_while_another_process_holds_the_database(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            await storage.create_thread("t", caller=LOCAL)
            row = TurnRow(turn_id="a", seq=1, rev=1, parent_id=None, settled=True, body=b"{}")
            assert await storage.put_transcript("t", [row], after=0, cursor=1, summary=b"", caller=LOCAL)
            with closing(sqlite3.connect(tmp_path / "app.sqlite", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                assert (await storage.transcript_index("t", caller=LOCAL)).cursor == 1
                assert list(await storage.transcript_turns("t", ["a"], caller=LOCAL)) == [row]
                assert await storage.latest_fact("t", ["pizzabot.turn"], caller=LOCAL) is None
                other.execute("ROLLBACK")
            assert storage._readers is not None
            assert not await storage._readers.run(lambda connection: connection.in_transaction)

    asyncio.run(scenario())


def test_a_copy_of_50_000_events_is_stored_in_seconds_and_reads_go_on_meanwhile(tmp_path: Path) -> None:
    data = b'{"event":"content-block-delta","index":0,"content":{"type":"text","text":"word"}}'
    runs = [
        Run(
            run_id=f"r{number}",
            thread_id="copy",
            owner="",
            status=RunStatus.SUCCESS,
            input={},
            options={},
            created_at=1.0,
            started_at=2.0,
            ended_at=3.0,
        )
        for number in range(100)
    ]
    events = [
        StoredEvent(seq=seq, thread_id="copy", run_id=f"r{seq // 500}", method="messages", data=data, timestamp=seq)
        for seq in range(1, 50_000)
    ]

    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            new = NewRun(run_id="r", thread_id="t", input={}, options={}, fingerprint="f")
            await storage.admit_run(new, caller=LOCAL)
            began = time.perf_counter()
            copy = ThreadCopy(thread_id="copy", title="copy", runs=runs, events=events)
            adopting = asyncio.create_task(storage.adopt_thread(copy, caller=LOCAL))
            reads = 0
            while not adopting.done():
                assert await storage.run("r", caller=LOCAL) is not None
                reads += 1
            assert (await adopting).next_seq == 50_000
            assert time.perf_counter() - began < 10, "it takes 0.2 s on an idle machine"
            assert reads > 1

    asyncio.run(scenario())
