"""The threads of file operations: how many run and wait, and that a long search leaves room for what is quick."""

import asyncio
import threading

import pytest

from pizzabot.host.files import pool as pools
from pizzabot.host.files.pool import THREADS, WALKS, FilePool
from pizzabot_hookspecs import Unavailable


def test_no_more_than_a_thousand_operations_wait(monkeypatch):
    monkeypatch.setattr(pools, "MAX_WAITING", 3)

    async def main():
        pool = FilePool()
        go_on = threading.Event()
        running = [asyncio.create_task(pool.run(go_on.wait)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable) as caught:
            await pool.run(go_on.wait)
        assert caught.value.code == "files_busy"
        go_on.set()
        assert await asyncio.gather(*running) == [True] * 3
        assert await pool.run(lambda: "again") == "again"
        pool.close()

    asyncio.run(main())


def test_searches_leave_threads_for_what_is_quick():
    async def main():
        pool, go_on, begun = FilePool(), threading.Event(), threading.Semaphore(0)

        def search():
            begun.release()
            return go_on.wait()

        searches = [asyncio.create_task(pool.walk(search)) for _ in range(THREADS + 3)]
        for _ in range(WALKS):
            await asyncio.to_thread(begun.acquire)
        async with asyncio.timeout(20):
            assert await pool.run(lambda: "quick") == "quick"
        assert not begun.acquire(blocking=False)
        searches[-1].cancel()
        go_on.set()
        results = await asyncio.gather(*searches, return_exceptions=True)
        assert results[:-1] == [True] * (THREADS + 2)
        assert await pool.walk(lambda: "again") == "again"
        pool.close()

    asyncio.run(main())


def test_an_operation_that_fails_makes_room_again(monkeypatch):
    monkeypatch.setattr(pools, "MAX_WAITING", 1)

    async def main():
        pool = FilePool()
        for work in (pool.run, pool.walk):
            with pytest.raises(ZeroDivisionError):
                await work(lambda: 1 / 0)
        assert await pool.walk(lambda: "room") == "room"
        pool.close()

    asyncio.run(main())
