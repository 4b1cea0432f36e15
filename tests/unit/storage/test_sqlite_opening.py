"""Opening the SQLite storage: private files, migrations with a copy, refusal of what it must not touch."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pizzabot_builtin_plugins.sqlite_storage.schema import MIGRATIONS, Migration
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, NotPermitted, PizzabotError, Unavailable
from pizzabot_hookspecs.storage_backends import NewEvent, NewRun

KNOWN = MIGRATIONS[-1].version
STEPS = [("app", version) for version in range(1, KNOWN + 1)]
NEXT = Migration(
    component="app",
    version=KNOWN + 1,
    statements=("ALTER TABLE threads ADD COLUMN next_column TEXT", "CREATE TABLE f (x)"),
)
BROKEN = Migration(
    component="app",
    version=KNOWN + 1,
    statements=("ALTER TABLE threads ADD COLUMN next_column TEXT", "CREATE TABLE threads (x)"),
)
PAGE = 4096


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


async def opened(path: Path, migrations: tuple[Migration, ...] = MIGRATIONS) -> None:
    async with SqliteStorage(path, migrations=migrations):
        pass


async def filled(path: Path, events: int = 500) -> None:
    async with SqliteStorage(path) as storage:
        await storage.create_thread("kept", caller=LOCAL, title="Pizza")
        new = NewRun(run_id="r", thread_id="t", input={}, options={}, fingerprint="f")
        await storage.admit_run(new, caller=LOCAL)
        batch = [NewEvent(method="messages", data=b"x" * 300, timestamp=1)] * events
        await storage.append_events("r", 0, batch, caller=LOCAL)


def refusal(path: Path, migrations: tuple[Migration, ...] = MIGRATIONS) -> PizzabotError:
    with pytest.raises(PizzabotError) as caught:
        asyncio.run(opened(path, migrations))
    assert "\n" not in caught.value.detail
    return caught.value


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def versions(database: Path) -> list[tuple[str, int]]:
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT component, version FROM migrations ORDER BY 1, 2").fetchall()
    finally:
        connection.close()


def copies(path: Path) -> list[Path]:
    return sorted(path.glob("app.before-migration.*"))


@pytest.mark.usefixtures("open_umask")
def test_every_database_file_is_for_its_user_only_whatever_the_umask(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path / "data") as storage:
            await storage.create_thread("t", caller=LOCAL)
            await (await storage.store()).aput(("a",), "k", {"v": 1})
            await (await storage.checkpointer()).adelete_thread("t")
            files = {file.name: mode(file) for file in (tmp_path / "data").iterdir()}
        names = {f"{name}.sqlite{tail}" for name in ("app", "store", "checkpoints") for tail in ("", "-wal", "-shm")}
        assert files == dict.fromkeys(names, 0o600)
        assert mode(tmp_path / "data") == 0o700

    asyncio.run(scenario())


def test_files_that_were_open_to_others_are_closed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    asyncio.run(filled(tmp_path))
    (tmp_path / "app.sqlite").chmod(0o666)
    asyncio.run(opened(tmp_path))
    assert mode(tmp_path / "app.sqlite") == 0o600
    assert mode(tmp_path) == 0o700


def test_each_database_is_in_wal_mode_with_the_settings_that_were_decided(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            assert storage._writer is not None
            checkpoints: Any = await storage.checkpointer()
            for writer, keys in ((storage._writer, 1), (checkpoints._writer, 0)):
                found = await writer.run(
                    lambda connection: [
                        connection.execute(f"PRAGMA {name}").fetchone()[0]
                        for name in ("journal_mode", "synchronous", "fullfsync", "busy_timeout", "foreign_keys")
                    ]
                )
                assert found == ["wal", 1, 1, 30_000, keys]
            store: Any = await storage.store()
            for name, value in (("journal_mode", "wal"), ("synchronous", 1), ("busy_timeout", 30_000)):
                assert list(await store.conn.execute_fetchall(f"PRAGMA {name}")) == [(value,)]

    asyncio.run(scenario())


def test_a_new_database_has_the_known_version_and_no_copy(tmp_path: Path) -> None:
    asyncio.run(opened(tmp_path))
    assert versions(tmp_path / "app.sqlite") == STEPS
    assert copies(tmp_path) == []


def test_opening_an_up_to_date_database_copies_and_changes_nothing(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path))
    before = (tmp_path / "app.sqlite").read_bytes()
    asyncio.run(opened(tmp_path))
    assert (tmp_path / "app.sqlite").read_bytes() == before
    assert copies(tmp_path) == []


def test_an_older_database_is_copied_then_migrated_with_its_rows(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path))

    async def scenario() -> None:
        async with SqliteStorage(tmp_path, migrations=(*MIGRATIONS, NEXT)) as storage:
            thread = await storage.thread("kept", caller=LOCAL)
            assert thread is not None
            assert thread.title == "Pizza"

    asyncio.run(scenario())
    assert versions(tmp_path / "app.sqlite") == [*STEPS, ("app", KNOWN + 1)]
    (copy,) = copies(tmp_path)
    assert mode(copy) == 0o600
    assert versions(copy) == STEPS
    connection = sqlite3.connect(copy)
    assert connection.execute("SELECT count(*) FROM run_events").fetchone() == (500,)
    connection.close()


def test_the_copy_can_be_put_back_and_opened_by_the_older_program(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path))
    asyncio.run(opened(tmp_path, (*MIGRATIONS, NEXT)))
    (copy,) = copies(tmp_path)
    copy.rename(tmp_path / "app.sqlite")
    asyncio.run(opened(tmp_path))


def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path))
    error = refusal(tmp_path, (*MIGRATIONS, BROKEN))
    assert (type(error), error.code) == (Unavailable, "storage_failed")
    assert versions(tmp_path / "app.sqlite") == STEPS
    asyncio.run(opened(tmp_path, (*MIGRATIONS, NEXT)))
    assert versions(tmp_path / "app.sqlite") == [*STEPS, ("app", KNOWN + 1)]
    assert len(copies(tmp_path)) == 2


def test_a_newer_schema_is_refused_by_name_and_not_touched(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path))
    asyncio.run(opened(tmp_path, (*MIGRATIONS, NEXT)))
    before = (tmp_path / "app.sqlite").read_bytes()
    error = refusal(tmp_path)
    assert (type(error), error.code) == (Unavailable, "schema_too_new")
    for part in (str(tmp_path / "app.sqlite"), f"version {KNOWN + 1}", f"knows {KNOWN}", "install the newer"):
        assert part in error.detail
    assert (tmp_path / "app.sqlite").read_bytes() == before


def test_two_programs_that_migrate_at_once_apply_each_step_once(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path))

    async def scenario() -> None:
        await asyncio.gather(*(opened(tmp_path, (*MIGRATIONS, NEXT)) for _ in range(4)))

    asyncio.run(scenario())
    assert versions(tmp_path / "app.sqlite") == [*STEPS, ("app", KNOWN + 1)]


def _no_database(content: bytes) -> bytes:
    return b"this is not a database" + content[22:]


def _first_page_garbled(content: bytes) -> bytes:
    return content[:100] + b"\xa5" * (PAGE - 100) + content[PAGE:]


def _cut(content: bytes) -> bytes:
    return content[: PAGE + 10]


def _shorter_than_a_header(_content: bytes) -> bytes:
    return b"SQLite"


@pytest.mark.parametrize("damage", [_no_database, _first_page_garbled, _cut, _shorter_than_a_header])
def test_a_damaged_database_is_refused_by_name_and_not_touched(tmp_path: Path, damage: object) -> None:
    assert callable(damage)
    asyncio.run(filled(tmp_path))
    database = tmp_path / "app.sqlite"
    database.write_bytes(damage(database.read_bytes()))
    before = database.read_bytes()
    error = refusal(tmp_path)
    assert (type(error), error.code) == (Unavailable, "database_damaged")
    assert str(database) in error.detail
    assert "restore a copy" in error.detail
    assert database.read_bytes() == before


def test_damage_that_opening_cannot_see_is_named_when_it_is_met(tmp_path: Path) -> None:
    asyncio.run(filled(tmp_path))
    database = tmp_path / "app.sqlite"
    connection = sqlite3.connect(database)
    roots = "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'run_events'"
    pages = [row[0] for row in connection.execute(roots)]
    connection.close()
    content = bytearray(database.read_bytes())
    for page in pages:
        content[(page - 1) * PAGE : page * PAGE] = b"\xa5" * PAGE
    database.write_bytes(content)

    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            with pytest.raises(Unavailable) as caught:
                await storage.events("t", after=0, limit=10, caller=LOCAL)
            assert caught.value.code == "database_damaged"
            with pytest.raises(Unavailable) as caught:
                await storage.append_events("r", 0, [NewEvent(method="m", data=b"", timestamp=0)], caller=LOCAL)
            assert caught.value.code == "database_damaged"
            assert await storage.thread("kept", caller=LOCAL) is not None, "the rest still works"

    asyncio.run(scenario())


def test_a_database_of_another_program_is_refused_and_not_touched(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "app.sqlite")
    connection.execute("CREATE TABLE threads (id)")
    connection.close()
    before = (tmp_path / "app.sqlite").read_bytes()
    assert refusal(tmp_path).code == "database_damaged"
    assert (tmp_path / "app.sqlite").read_bytes() == before


def test_a_folder_in_the_databases_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.sqlite").mkdir()
    assert refusal(tmp_path).code == "storage_failed"


def test_a_data_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    error = refusal(tmp_path / "file")
    assert (type(error), error.code) == (NotPermitted, "data_root_not_writable")


def test_an_empty_file_is_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "app.sqlite").touch()
    asyncio.run(filled(tmp_path))


def test_the_databases_own_rows_are_iso_8601_in_utc(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path, clock=lambda: 1_700_000_000.25) as storage:
            made = await storage.create_thread("t", caller=LOCAL)
            assert made.created_at == 1_700_000_000.25

    asyncio.run(scenario())
    connection = sqlite3.connect(tmp_path / "app.sqlite")
    stored = connection.execute("SELECT created_at FROM threads").fetchone()
    connection.close()
    assert stored == ("2023-11-14T22:13:20.250000+00:00",)
