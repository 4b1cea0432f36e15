"""Reads: a few threads with connections that cannot write. A long one holds up neither the loop nor a write."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TypeVar

from pizzabot_builtin_plugins.sqlite_storage.database import open_reader
from pizzabot_builtin_plugins.sqlite_storage.faults import translated
from pizzabot_hookspecs import Unavailable

T = TypeVar("T")


class Readers:
    """`size` threads, each read in a snapshot of its own. Further callers wait in their own coroutine."""

    def __init__(self, path: Path, *, size: int, busy_timeout_seconds: float) -> None:
        self._path = path
        self._busy_timeout_seconds = busy_timeout_seconds
        self._slots = asyncio.Semaphore(size)
        self._threads = ThreadPoolExecutor(size, thread_name_prefix="sqlite-reader")
        self._idle: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._closing = False

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Call `work` with a connection, in a thread, and return its result."""
        async with self._slots:
            if self._closing:
                raise Unavailable("storage_closed", f"database {self._path} is not open")
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, work)

    async def close(self) -> None:
        """Wait for the reads that run, then close the connections. Safe to call twice."""
        self._closing = True
        await asyncio.to_thread(self._close)

    def _read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            connection = self._connection()
            try:
                return work(connection)
            finally:
                self._idle.put(connection)
        except Exception as error:
            raise translated(error, self._path) from error

    def _connection(self) -> sqlite3.Connection:
        try:
            return self._idle.get_nowait()
        except Empty:
            return open_reader(self._path, busy_timeout_seconds=self._busy_timeout_seconds)

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return
