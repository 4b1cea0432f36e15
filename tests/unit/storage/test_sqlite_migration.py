"""A database that version 1 of the schema wrote, with its rows, is migrated and goes on as if nothing had been.

`app_version_1.sql` is what `sqlite3 app.sqlite .dump` said of a database that the program of that version had filled.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.sqlite_storage.schema import MIGRATIONS
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, SYSTEM, Caller, Conflict
from pizzabot_hookspecs.interrupts import Decision, InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import (
    CancelReason,
    MergedEvents,
    Multitask,
    NewEvent,
    NewRun,
    Run,
    RunStatus,
    StoredEvent,
    Thread,
    ThreadStatus,
    TranscriptIndex,
    TurnRow,
)

VERSION_1 = Path(__file__).with_name("app_version_1.sql")
ANNA = Caller(owner="anna")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "app.sqlite")
    connection.executescript(VERSION_1.read_text(encoding="utf-8"))
    connection.close()
    return tmp_path


def new_run(run_id: str, **fields: object) -> NewRun:
    values: dict[str, object] = {"input": {}, "options": {}, "fingerprint": "same"} | fields
    return NewRun(run_id=run_id, thread_id="t", **values)  # type: ignore[arg-type]


async def ended(storage: SqliteStorage, run: Run, status: RunStatus = RunStatus.SUCCESS) -> None:
    end = [NewEvent(method="lifecycle", data=b"{}", timestamp=1)]
    await storage.finish_run(run.run_id, run.epoch, end, status=status, caller=SYSTEM)


def schema_of(database: Path) -> list[tuple[str, ...]]:
    connection = sqlite3.connect(database)
    try:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [
            (table, *map(str, row[1:])) for table in tables for row in connection.execute(f"PRAGMA table_info({table})")
        ]
        indexes = connection.execute("SELECT name, coalesce(sql, '') FROM sqlite_master WHERE type = 'index'")
        return sorted(columns) + sorted(indexes.fetchall())
    finally:
        connection.close()


def test_every_row_of_version_1_is_read_as_it_was(folder: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(folder) as storage:
            thread = await storage.thread("t", caller=LOCAL)
            assert thread is not None
            assert (thread.title, thread.metadata, thread.next_seq) == ("Pizza", {"tags": ["a"]}, 8)
            events = await storage.events("t", after=0, limit=100, caller=LOCAL)
            assert [event.data for event in events] == [
                b'{"text":"%s"}' % text for text in (b"one", b"two", b"three", b"turn", b"end", b"bad", b"going")
            ]
            assert (events[0].namespace, events[3].name) == (("model:1",), "pizzabot.turn")
            assert await storage.latest_fact("t", ["pizzabot.turn"], caller=LOCAL) == events[3]
            assert await storage.transcript_index("t", caller=LOCAL) == TranscriptIndex(turns=[])
            run = await storage.run("ended", caller=LOCAL)
            assert run is not None
            assert (run.status, run.idempotency_key, run.lease_until) == (RunStatus.SUCCESS, "key", None)
            assert run.input == {"messages": [{"role": "user", "content": "čaj for ended 🫖"}]}
            unfinished = {run.run_id: run for run in await storage.unfinished_runs(caller=SYSTEM)}
            assert list(unfinished) == ["running", "second", "third", "first", "hers"]
            assert unfinished["running"].cancel_reason is CancelReason.SUPERSEDED
            assert await storage.setting("theme", caller=LOCAL) == {"dark": True}
            assert list(await storage.open_interrupts(caller=SYSTEM)) == []
            again = await storage.admit_run(new_run("x", idempotency_key="key"), caller=LOCAL)
            assert (again.created, again.run.run_id, again.last_seq) == (False, "ended", 0)

    asyncio.run(scenario())


def test_the_queue_of_version_1_keeps_its_order_and_resumes_go_in_front(folder: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(folder) as storage:
            assert await storage.waiting_runs("t", caller=LOCAL) == 3
            old = await storage.claim_run("running", server_id="new", takeover=True, lease_seconds=60, caller=SYSTEM)
            assert old is not None
            assert (old.epoch, old.attempt, old.server_id) == (2, 2, "new")
            assert old.lease_until is not None
            await storage.open_intent("running", old.epoch, call_id="call", tool="pay", namespace=(), caller=SYSTEM)
            asked = NewInterrupt(interrupt_id="what-now", kind=InterruptKind.RECOVERY, payload={})
            await storage.finish_run(
                "running", old.epoch, [], status=RunStatus.NEEDS_ATTENTION, interrupts=[asked], caller=SYSTEM
            )
            with pytest.raises(Conflict, match="waits for an answer"):
                await storage.admit_run(new_run("x", multitask=Multitask.ENQUEUE), caller=LOCAL)
            decisions = [Decision(interrupt_id="what-now", answer={"choice": "retry"})]
            await storage.decide(decisions, new_run("resume"), by="phone", caller=LOCAL)
            order = []
            while (front := await storage.next_pending("t", caller=LOCAL)) is not None:
                run = await storage.claim_run(front.run_id, server_id="new", caller=SYSTEM)
                assert run is not None
                await ended(storage, run)
                order.append(run.run_id)
            assert order == ["resume", "first", "second", "third"]

    asyncio.run(scenario())


def test_runs_of_version_1_are_merged_like_others(folder: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(folder) as storage:
            found = await storage.mergeable_runs(ended_before=2e9, limit=9, caller=SYSTEM)
            assert [run.run_id for run in found] == ["ended", "failed"]
            await storage.merge_events("ended", [MergedEvents(first_seq=1, last_seq=3, data=b"x")], caller=SYSTEM)
            events = await storage.events("t", after=0, limit=100, caller=LOCAL)
            assert [(event.seq, event.data) for event in events][:2] == [(3, b"x"), (4, b'{"text":"turn"}')]
            found = await storage.mergeable_runs(ended_before=2e9, limit=9, caller=SYSTEM)
            assert [run.run_id for run in found] == ["failed"]

    asyncio.run(scenario())


def test_a_migrated_database_has_the_schema_of_a_new_one_and_a_copy_of_the_old_one(folder: Path) -> None:
    async def opened(path: Path) -> None:
        async with SqliteStorage(path):
            pass

    asyncio.run(opened(folder))
    asyncio.run(opened(folder / "new"))
    assert schema_of(folder / "app.sqlite") == schema_of(folder / "new" / "app.sqlite")
    (copy,) = folder.glob("app.before-migration.app1.*")
    connection = sqlite3.connect(copy)
    dumped = set(connection.iterdump())
    connection.close()
    before = sqlite3.connect(":memory:")
    before.executescript(VERSION_1.read_text(encoding="utf-8"))
    assert dumped == set(before.iterdump())
    before.close()


def test_threads_of_version_1_say_what_their_runs_and_questions_are(folder: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(folder) as storage:
            found = {thread.thread_id: thread.status for thread in await storage.threads(caller=SYSTEM)}
            assert found == {"t": ThreadStatus.BUSY, "hers": ThreadStatus.BUSY}
            assert {thread.thread_id for thread in await storage.threads(caller=LOCAL, status=ThreadStatus.BUSY)} == {
                thread.thread_id for thread in await storage.threads(caller=LOCAL)
            }

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(1, MIGRATIONS[-1].version))
def test_a_database_of_any_earlier_version_gets_the_schema_of_a_new_one_and_is_copied_before(
    tmp_path: Path, version: int
) -> None:
    async def opened(path: Path, steps: int) -> None:
        async with SqliteStorage(path, migrations=MIGRATIONS[:steps]) as storage:
            await storage.put_setting("version", steps, caller=LOCAL)

    asyncio.run(opened(tmp_path / "old", version))
    asyncio.run(opened(tmp_path / "old", len(MIGRATIONS)))
    asyncio.run(opened(tmp_path / "new", len(MIGRATIONS)))
    assert schema_of(tmp_path / "old" / "app.sqlite") == schema_of(tmp_path / "new" / "app.sqlite")
    (copy,) = (tmp_path / "old").glob(f"app.before-migration.app{version}.*")
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT value FROM settings WHERE key = 'version'").fetchall() == [(str(version),)]
    connection.close()


def test_everything_of_version_3_is_there_after_the_migration_and_can_have_facts_and_a_transcript(
    tmp_path: Path,
) -> None:
    async def everything(storage: SqliteStorage) -> tuple[list[Thread], list[Run | None], list[list[StoredEvent]]]:
        threads = list(await storage.threads(caller=SYSTEM))
        runs = [await storage.run(f"r{number}", caller=SYSTEM) for number in range(4)]
        logs = [list(await storage.events(t.thread_id, after=0, limit=9_999, caller=SYSTEM)) for t in threads]
        return threads, runs, logs

    async def filled() -> tuple[list[Thread], list[Run | None], list[list[StoredEvent]]]:
        async with SqliteStorage(tmp_path, migrations=MIGRATIONS[:3]) as storage:
            for number, status in enumerate((RunStatus.SUCCESS, RunStatus.ERROR, RunStatus.INTERRUPTED)):
                await storage.admit_run(new_run(f"r{number}", message_id=f"m{number}"), caller=LOCAL)
                run = await storage.claim_run(f"r{number}", server_id="s", caller=LOCAL)
                assert run is not None
                turn = NewEvent(method="custom", data=b"%d" % number, timestamp=1, name="pizzabot.turn")
                text = NewEvent(method="messages", data=b"word", timestamp=1, namespace=("model:1",), node="model")
                await storage.append_events(run.run_id, run.epoch, [turn, *[text] * 200], caller=LOCAL)
                await ended(storage, run, status)
            await storage.admit_run(new_run("r3", multitask=Multitask.ENQUEUE), caller=LOCAL)
            await storage.create_thread("hers", caller=ANNA, title="Pizza", metadata={"a": [1]})
            await storage.put_setting("theme", "dark", caller=LOCAL)
            return await everything(storage)

    async def scenario() -> None:
        before = await filled()
        async with SqliteStorage(tmp_path) as storage:
            assert await everything(storage) == before
            assert await storage.setting("theme", caller=LOCAL) == "dark"
            newest = await storage.latest_fact("t", ["pizzabot.turn", "pizzabot.head"], caller=LOCAL)
            assert newest is not None
            assert (newest.seq, newest.run_id, newest.data) == (405, "r2", b"2")
            head = NewEvent(method="custom", data=b"{}", timestamp=1, name="pizzabot.head")
            assert await storage.append_facts("t", [head], caller=LOCAL) == 607
            row = TurnRow(turn_id="m0", seq=1, rev=202, parent_id=None, settled=True, body=b"{}")
            assert await storage.put_transcript("t", [row], after=0, cursor=607, summary=b"", caller=LOCAL)
            assert await storage.delete_thread("t", caller=LOCAL)
            assert await storage.transcript_index("t", caller=LOCAL) == TranscriptIndex()

    asyncio.run(scenario())


def test_attachments_of_version_5_belong_to_the_thread_that_they_belonged_to(tmp_path: Path) -> None:
    async def filled() -> None:
        async with SqliteStorage(tmp_path, migrations=MIGRATIONS[:5]) as storage:
            await storage.create_thread("t", caller=LOCAL)

    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            free, claimed = [await storage.attachment(name, caller=LOCAL) for name in ("free", "of t")]
            assert free is not None
            assert claimed is not None
            assert (free.thread_id, free.filename, claimed.thread_id, claimed.size) == (None, "a.png", "t", 7)
            assert await storage.thread_attachments("t", caller=LOCAL) == [claimed]
            assert await storage.delete_thread("t", caller=LOCAL)
            assert await storage.attachment("of t", caller=LOCAL) is None
            assert await storage.attachment("free", caller=LOCAL) == free

    asyncio.run(filled())
    connection = sqlite3.connect(tmp_path / "app.sqlite")
    connection.executemany(
        "INSERT INTO attachments VALUES (?, 'local', ?, 'a.png', 'image/png', 7, '2026-12-01T00:00:00.000000+00:00')",
        [("free", None), ("of t", "t")],
    )
    connection.commit()
    connection.close()
    asyncio.run(scenario())


def test_a_database_of_a_migrated_program_is_refused_by_the_program_of_version_1(folder: Path) -> None:
    async def opened(steps: int) -> None:
        async with SqliteStorage(folder, migrations=MIGRATIONS[:steps]):
            pass

    asyncio.run(opened(len(MIGRATIONS)))
    with pytest.raises(Exception, match=f"schema version {MIGRATIONS[-1].version} of app, this program knows 1"):
        asyncio.run(opened(1))
