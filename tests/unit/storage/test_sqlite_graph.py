"""The checkpointer and the store: opened on first call, once, off the loop, and closed whatever happened."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL, Unavailable

LIGHT = """
import asyncio, sys
from pathlib import Path
import pizzabot_builtin_plugins.sqlite_storage as plugin, pizzabot_builtin_plugins.memory_storage as memory
assert not {"sqlite3", "pydantic", "orjson", "langgraph", "aiosqlite"} & set(sys.modules)
(offer,), (other,) = plugin.pizzabot_storage_backends(), memory.pizzabot_storage_backends()
assert (offer.name, other.name) == ("sqlite", "memory")
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage
from pizzabot_hookspecs import LOCAL
async def main():
    async with SqliteStorage(Path(sys.argv[1])) as storage:
        await storage.create_thread("t", caller=LOCAL)
asyncio.run(main())
assert not {"langgraph", "langchain_core", "aiosqlite"} & {name.partition(".")[0] for name in sys.modules}
print("light")
"""


def worker_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread is not threading.main_thread()}


def databases(folder: Path) -> set[str]:
    return {file.name for file in folder.glob("*.sqlite")}


def test_a_host_without_a_graph_never_imports_langgraph(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.stdout == "light\n", done.stderr


def test_no_file_is_made_before_the_first_call(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            await storage.create_thread("t", caller=LOCAL)
            assert databases(tmp_path) == {"app.sqlite"}
            await storage.checkpointer()
            assert databases(tmp_path) == {"app.sqlite", "checkpoints.sqlite"}

    asyncio.run(scenario())


def test_everything_is_closed_at_the_end(tmp_path: Path) -> None:
    before = worker_threads()

    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            await storage.create_thread("t", caller=LOCAL)
            await storage.thread("t", caller=LOCAL)
            await storage.checkpointer()
            await (await storage.store()).aput(("a",), "k", {"v": 1})
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
    assert worker_threads() <= before
    assert not list(tmp_path.glob("*-wal")), "the last connection takes the write-ahead log with it"


def test_what_is_half_opened_is_closed_too(tmp_path: Path) -> None:
    before = worker_threads()

    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            calls = [asyncio.create_task(storage.checkpointer()), asyncio.create_task(storage.store())]
            await asyncio.sleep(0)
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(scenario())
    assert worker_threads() <= before


def test_a_cancelled_first_caller_does_not_spoil_it_for_the_others(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            first = asyncio.create_task(storage.checkpointer())
            second = asyncio.create_task(storage.checkpointer())
            await asyncio.sleep(0)
            first.cancel()
            assert await second is await storage.checkpointer()

    asyncio.run(scenario())


@pytest.mark.parametrize("name", ["checkpoints.sqlite", "store.sqlite"])
def test_a_damaged_file_is_named_not_touched_and_the_rest_works(tmp_path: Path, name: str) -> None:
    damage = b"this is not a database" * 400
    (tmp_path / name).write_bytes(damage)

    async def scenario() -> None:
        async with SqliteStorage(tmp_path) as storage:
            broken, sound = storage.checkpointer, storage.store
            if name == "store.sqlite":
                broken, sound = storage.store, storage.checkpointer
            for _ in range(2):
                with pytest.raises(Unavailable, match=name) as caught:
                    await broken()
                assert caught.value.code == "database_damaged"
            await sound()
            await storage.create_thread("t", caller=LOCAL)
            assert (tmp_path / name).read_bytes() == damage
            (tmp_path / name).unlink()
            await broken()

    asyncio.run(scenario())


def test_opening_that_is_cancelled_leaves_no_thread(tmp_path: Path) -> None:
    before = worker_threads()

    async def scenario() -> None:
        storage = SqliteStorage(tmp_path)
        opening = asyncio.create_task(storage.__aenter__())
        while "sqlite-writer" not in worker_threads() - before and not opening.done():  # noqa: ASYNC110 - a thread's birth
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await storage.__aexit__(None, None, None)

    asyncio.run(scenario())
    assert worker_threads() <= before
