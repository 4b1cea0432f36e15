"""A thread's status is found in indexes, and a clock that moves back does not change which run ended last."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from pathlib import Path
from typing import Any

import pytest

from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_builtin_plugins.sqlite_storage import threads
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import Multitask, NewEvent, NewRun, Run, RunStatus, Storage, ThreadStatus

Opened = Callable[[Path, Callable[[], float]], AbstractAsyncContextManager[Any]]

FOR_ONE = ("runs_active", "runs_queue", "interrupts_open_by_thread", "runs_by_beginning")
CHOOSING = {
    None: "threads_by_activity",
    ThreadStatus.IDLE: "threads_by_activity",
    ThreadStatus.BUSY: "runs_unfinished",
    ThreadStatus.INTERRUPTED: "interrupts_open_by_thread",
    ThreadStatus.ERROR: "runs_failed",
}
"""The index that a page of these threads is chosen in."""


def new_run(run_id: str) -> NewRun:
    return NewRun(run_id=run_id, thread_id="t", input={}, options={}, fingerprint="same", multitask=Multitask.ENQUEUE)


async def started(storage: Storage, run_id: str) -> Run:
    await storage.admit_run(new_run(run_id), caller=LOCAL)
    run = await storage.claim_run(run_id, server_id="server", caller=LOCAL)
    assert run is not None
    return run


async def ended(storage: Storage, run: Run, status: RunStatus) -> None:
    end = [NewEvent(method="lifecycle", data=b"{}", timestamp=1)]
    await storage.finish_run(run.run_id, run.epoch, end, status=status, caller=LOCAL)


async def status_of(storage: Storage) -> ThreadStatus:
    thread = await storage.thread("t", caller=LOCAL)
    assert thread is not None
    return thread.status


def plan_of(folder: Path, query: str) -> list[str]:
    async def opened() -> None:
        async with SqliteStorage(folder):
            pass

    asyncio.run(opened())
    with closing(sqlite3.connect(folder / "app.sqlite")) as connection:
        parameters = (0,) * query.count("?")
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {query}", parameters)]


@pytest.mark.parametrize(("status", "index"), CHOOSING.items())
def test_a_page_of_an_owners_threads_is_chosen_in_an_index(
    tmp_path: Path, status: ThreadStatus | None, index: str
) -> None:
    plan = plan_of(tmp_path, threads.page_query(own=True, status=status))
    assert any(index in step for step in plan), plan
    walked = [step for step in plan if step.startswith("SCAN")]
    assert all(index in step and status for step in walked), "only the few that can be so are walked through"
    assert any("INTEGER PRIMARY KEY" in step for step in plan), "only the rows of the page are read whole"


@pytest.mark.parametrize("query", [threads._ONE, threads.page_query(own=True, status=None)])
def test_the_status_of_one_thread_is_four_steps_in_indexes(tmp_path: Path, query: str) -> None:
    plan = plan_of(tmp_path, query)
    for index in FOR_ONE:
        assert any(step.startswith("SEARCH") and f" {index} (thread_id=?)" in step for step in plan), plan
    assert not any(step.startswith("SCAN") for step in plan), plan


@pytest.mark.parametrize(
    "opened",
    [
        lambda path, clock: SqliteStorage(path, clock=clock),
        lambda _, clock: MemoryStorage(clock=clock),
    ],
    ids=["sqlite", "memory"],
)
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (RunStatus.ERROR, RunStatus.SUCCESS, ThreadStatus.IDLE),
        (RunStatus.SUCCESS, RunStatus.TIMEOUT, ThreadStatus.ERROR),
    ],
)
def test_which_run_ended_last_does_not_depend_on_the_clock(
    tmp_path: Path, opened: Opened, first: RunStatus, second: RunStatus, expected: ThreadStatus
) -> None:
    times = iter(range(2_000_000_000, 0, -1_000))

    async def scenario() -> None:
        async with opened(tmp_path, lambda: float(next(times))) as storage:
            await ended(storage, await started(storage, "one"), first)
            await ended(storage, await started(storage, "two"), second)
            assert await status_of(storage) is expected

    asyncio.run(scenario())
