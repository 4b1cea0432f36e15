"""Files, attachments and grants in SQLite: which index answers, what reaches the disk, and a database without them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.sqlite_storage import attachments, workspace
from pizzabot_builtin_plugins.sqlite_storage.schema import MIGRATIONS
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, InvalidRequest
from pizzabot_hookspecs.file_storage import Attachment, FileVersion, FolderGrant, NewFileVersion
from pizzabot_hookspecs.storage_backends import NewEvent, NewRun, Run, StoredEvent

FACT = NewEvent(method="custom", data=b"{}", timestamp=1, name="pizzabot.file")
VERSION_WITHOUT_FILES = 4
KEY = "(thread_id=? AND path=?)"


def new_file(path: str = "/a", *, thread_id: str = "t", size: int = 1, run_id: str | None = None) -> NewFileVersion:
    return NewFileVersion(
        thread_id=thread_id, path=path, sha256="f" * 64, size=size, media_type="text/plain", author="agent",
        run_id=run_id,
    )  # fmt: skip


def attachment() -> Attachment:
    return Attachment(
        id="a", owner="local", thread_id=None, filename="a.png", media_type="image/png", size=1, created_at=1.5
    )


def grant() -> FolderGrant:
    return FolderGrant(id="g", owner="local", label="work", path="/work", read_only=True, created_at=1.5)


def plan_of(folder: Path, query: str) -> list[str]:
    async def opened() -> None:
        async with SqliteStorage(folder):
            pass

    asyncio.run(opened())
    with closing(sqlite3.connect(folder / "app.sqlite")) as connection:
        parameters = ("[]",) * query.count("?")
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", parameters)]


@pytest.mark.parametrize("of_turns", [False, True])
def test_the_files_of_a_branch_are_one_walk_through_the_rows_of_the_thread(tmp_path: Path, of_turns: bool) -> None:
    plan = plan_of(tmp_path, workspace.files_query(of_path=False, of_turns=of_turns))
    assert "SEARCH workspace_files USING PRIMARY KEY (thread_id=?)" in plan
    assert not any("TEMP B-TREE" in step for step in plan), "nothing is sorted or grouped"


@pytest.mark.parametrize(
    ("query", "step"),
    [
        (workspace.files_query(of_path=True, of_turns=True), f"USING PRIMARY KEY {KEY}"),
        (workspace._VERSIONS, f"USING PRIMARY KEY {KEY}"),
        (workspace._NEXT_VERSION, f"USING PRIMARY KEY {KEY}"),
        (workspace._OF_RUN, "USING INDEX workspace_files_by_run (thread_id=? AND run_id=?)"),
        (workspace._USED, "USING COVERING INDEX workspace_files_by_blob (sha256=?)"),
        (attachments._OF_THREAD, "INDEX sqlite_autoindex_attachment_threads_1 (thread_id=?)"),
    ],
)
def test_one_path_a_run_a_blob_and_the_attachments_of_a_thread_are_found_in_an_index(
    tmp_path: Path, query: str, step: str
) -> None:
    plan = plan_of(tmp_path, query)
    assert any(step in found for found in plan), plan
    assert not any(found in ("SCAN workspace_files", "SCAN attachments") for found in plan), plan


CALLS: dict[str, Callable[[SqliteStorage], Awaitable[object]]] = {
    "put_file": lambda storage: storage.put_file(new_file(), FACT, caller=LOCAL),
    "add_attachment": lambda storage: storage.add_attachment(attachment(), caller=LOCAL),
    "claim_attachments": lambda storage: storage.claim_attachments("t", ["a"], caller=LOCAL),
    "add_folder_grant": lambda storage: storage.add_folder_grant(grant(), caller=LOCAL),
    "delete_folder_grant": lambda storage: storage.delete_folder_grant("g", caller=LOCAL),
}


@pytest.mark.parametrize("what", CALLS)
def test_what_was_stored_or_taken_away_survives_power_loss_when_it_is_acknowledged(tmp_path: Path, what: str) -> None:
    async def scenario() -> None:
        statements: list[str] = []
        async with SqliteStorage(tmp_path) as storage:
            assert storage._writer is not None
            await storage.create_thread("t", caller=LOCAL)
            await storage._writer.run(lambda connection: connection.set_trace_callback(statements.append))
            await CALLS[what](storage)
        levels = [statement.split()[-1] for statement in statements if statement.startswith("PRAGMA synchronous")]
        assert levels == ["FULL"]

    asyncio.run(scenario())


def test_a_file_that_cannot_be_stored_takes_its_fact_back_and_nothing_of_its_neighbours(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            await storage.create_thread("t", caller=LOCAL)
            sizes = [1, 2**70, 2, 2**70, 3]
            calls = [storage.put_file(new_file(size=size), FACT, caller=LOCAL) for size in sizes]
            answers = await asyncio.gather(*calls, return_exceptions=True)
            made = [(answer.size, answer.version, answer.seq) for answer in answers if isinstance(answer, FileVersion)]
            assert made == [(1, 1, 1), (2, 2, 2), (3, 3, 3)]
            refused = [answer for answer in answers if isinstance(answer, InvalidRequest)]
            assert [answer.code for answer in refused] == ["invalid_number"] * 2
            assert [event.seq for event in await storage.events("t", after=0, limit=9, caller=LOCAL)] == [1, 2, 3]

    asyncio.run(scenario())


def test_a_database_without_files_is_as_it_was_after_the_migration_and_can_have_them(tmp_path: Path) -> None:
    async def everything(storage: SqliteStorage) -> tuple[Run | None, list[StoredEvent]]:
        log = await storage.events("t", after=0, limit=9, caller=LOCAL)
        return await storage.run("r", caller=LOCAL), list(log)

    async def filled() -> tuple[Run | None, list[StoredEvent]]:
        async with SqliteStorage(tmp_path, migrations=MIGRATIONS[:VERSION_WITHOUT_FILES]) as storage:
            new = NewRun(run_id="r", thread_id="t", input={}, options={}, fingerprint="f")
            await storage.admit_run(new, caller=LOCAL)
            await storage.claim_run("r", server_id="s", caller=LOCAL)
            await storage.append_events("r", 1, [FACT], caller=LOCAL)
            return await everything(storage)

    async def scenario() -> None:
        before = await filled()
        async with SqliteStorage(tmp_path) as storage:
            assert await everything(storage) == before
            assert list(await storage.files("t", turns=None, caller=LOCAL)) == []
            made = await storage.put_file(new_file(run_id="r"), FACT, epoch=1, caller=LOCAL)
            assert (made.version, made.seq) == (1, 2)
            await storage.add_attachment(attachment(), caller=LOCAL)
            await storage.claim_attachments("t", ["a"], caller=LOCAL)
            await storage.add_folder_grant(grant(), caller=LOCAL)
            assert await storage.delete_thread("t", caller=LOCAL)
            assert await storage.attachment("a", caller=LOCAL) is None
            assert list(await storage.folder_grants(caller=LOCAL)) == [grant()]

    asyncio.run(scenario())
