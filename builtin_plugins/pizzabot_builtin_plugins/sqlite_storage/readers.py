"""Reads: a few threads with connections that cannot write. A long one holds up neither the loop nor a write.

Threads and a queue of our own: an executor's way there and back costs the loop twice as much as a short read does.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from pizzabot_builtin_plugins.sqlite_storage.database import open_reader
from pizzabot_builtin_plugins.sqlite_storage.faults import translated
from pizzabot_builtin_plugins.sqlite_storage.writer import settle
from pizzabot_hookspecs import Unavailable

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Read:
    work: Callable[[sqlite3.Connection], Any]
    future: asyncio.Future[Any]


class Readers:
    """`size` threads, each with a connection, begun when they are needed. Further callers wait in their coroutine."""

    def __init__(self, path: Path, *, size: int, busy_timeout_seconds: float) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._slots = asyncio.Semaphore(size)
        self._queue: SimpleQueue[_Read | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._reading = 0
        self._closing = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` with a connection, in a thread, and return its result. Its slot is free when the thread is."""
        await self._slots.acquire()
        if self._closing:
            self._slots.release()
            raise Unavailable("storage_closed", f"database {self._path} is not open")
        self._reading += 1
        if self._reading > len(self._threads):
            self._begin_thread()
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._queue.put(_Read(work, future))
        result: T = await future
        return result

    async def close(self) -> None:
        """Finish the reads that were begun, then close the connections. Safe to call twice."""
        if not self._closing:
            self._closing = True
            for _ in self._threads:
                self._queue.put(None)
        if self._threads:
            await asyncio.to_thread(self._join)

    def _begin_thread(self) -> None:
        name = f"sqlite-reader-{len(self._threads)}"
        thread = threading.Thread(target=self._main, args=(asyncio.get_running_loop(),), name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _main(self, loop: asyncio.AbstractEventLoop) -> None:
        connection: sqlite3.Connection | None = None
        while (read := self._queue.get()) is not None:
            result, error = None, None
            try:
                if not read.future.cancelled():
                    connection = connection or open_reader(self._path, busy_timeout_seconds=self._busy_timeout_seconds)
                    result = read.work(connection)
            except Exception as raised:  # noqa: BLE001 - raised where the read is awaited
                error = self._fault(raised)
            try:
                loop.call_soon_threadsafe(self._deliver, read.future, result, error)
            except RuntimeError:  # the loop is closed: nobody awaits any more
                break
            del read, result, error  # a page of the log is not kept until the next read
        if connection is not None:
            connection.close()

    def _fault(self, error: Exception) -> Exception:
        fault = translated(error, self._path)
        if fault is not error:
            fault.__cause__ = error
        return fault

    def _deliver(self, future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
        self._reading -= 1
        self._slots.release()
        settle(future, result, error)
