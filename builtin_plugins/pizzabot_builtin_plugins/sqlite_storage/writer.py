"""The one thread that writes: callers queue up, and all that wait at the same moment are committed together.

Each write is atomic by itself (a savepoint), and is acknowledged after the commit of its group. A write that was handed
over runs to its end even if the one who awaits it is cancelled.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from pizzabot_builtin_plugins.sqlite_storage.faults import translated
from pizzabot_hookspecs import Unavailable

T = TypeVar("T")

WRITES_WAITING = 1024
"""Writes that are handed over and not yet committed; further callers wait in their own coroutine."""

GROUP_LIMIT = 64
"""Writes of one transaction: large enough to share one fsync, small enough to keep each one's wait short."""


@dataclass(frozen=True, slots=True)
class _Write:
    work: Callable[[sqlite3.Connection], Any]
    durable: bool
    future: asyncio.Future[Any]


@dataclass(frozen=True, slots=True)
class _Outcome:
    write: _Write
    result: Any = None
    error: Exception | None = None


class Writer:
    """Owns the writing connection. `start` and `close` once each, on the loop that calls `run`."""

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        self._path = path
        self._connect = connect
        self._queue: SimpleQueue[_Write | None] = SimpleQueue()
        self._slots = asyncio.Semaphore(WRITES_WAITING)
        self._thread = threading.Thread(target=self._main, name="sqlite-writer", daemon=True)
        self._closing = True
        self._durable = False

    async def start(self) -> None:
        """Open the connection, in the thread; raises what `connect` raises."""
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._thread.start()
        try:
            await self._opened
        except asyncio.CancelledError:
            self._queue.put(None)
            raise
        self._closing = False

    async def run(self, work: Callable[[sqlite3.Connection], T], *, durable: bool = False) -> T:
        """Call `work` with the connection, inside a transaction, and return its result once that is committed.

        `work` must have no effect but on the database: it is called again when its group had to be taken back.
        `durable`: the commit reaches the disk before this returns, so that it survives power loss too.
        """
        await self._slots.acquire()
        if self._closing:
            self._slots.release()
            raise Unavailable("storage_closed", f"database {self._path} is not open")
        future = self._loop.create_future()
        self._queue.put(_Write(work, durable, future))
        result: T = await future
        return result

    async def close(self) -> None:
        """Finish what was handed over, then close the connection. Safe to call twice."""
        if not self._closing:
            self._closing = True
            self._queue.put(None)
        if self._thread.ident is not None:
            await asyncio.to_thread(self._thread.join)

    def _main(self) -> None:
        try:
            connection = self._connect()
        except Exception as error:  # noqa: BLE001 - raised where the opening is awaited
            self._call(settle, self._opened, None, error)
            return
        self._call(settle, self._opened, None, None)
        try:
            self._serve(connection)
        finally:
            connection.close()

    def _serve(self, connection: sqlite3.Connection) -> None:
        ending = False
        while not ending:
            write = self._queue.get()
            if write is None:
                return
            group = [write]
            while len(group) < GROUP_LIMIT:
                try:
                    write = self._queue.get_nowait()
                except Empty:
                    break
                if write is None:
                    ending = True
                    break
                group.append(write)
            self._call(self._deliver, self._settled(connection, group))

    def _settled(self, connection: sqlite3.Connection, group: list[_Write]) -> list[_Outcome]:
        try:
            return self._commit(connection, group)
        except Exception as error:  # noqa: BLE001 - the thread outlives whatever happens, and every awaiter is answered
            self._take_back(connection)
            return self._failed(group, error)

    def _failed(self, group: list[_Write], error: Exception) -> list[_Outcome]:
        return [_Outcome(write, error=translated(error, self._path)) for write in group]

    def _commit(self, connection: sqlite3.Connection, group: list[_Write]) -> list[_Outcome]:
        try:
            self._set_durability(connection, durable=any(write.durable for write in group))
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            return self._failed(group, error)
        try:
            outcomes = [self._attempt(connection, write) for write in group]
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._take_back(connection)
            if len(group) > 1:
                # The engine may have undone the whole transaction: each gets its own, so that one fault stays one.
                return [outcome for write in group for outcome in self._commit(connection, [write])]
            return self._failed(group, error)
        return outcomes

    def _attempt(self, connection: sqlite3.Connection, write: _Write) -> _Outcome:
        connection.execute("SAVEPOINT one_write")
        try:
            outcome = _Outcome(write, result=write.work(connection))
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - raised where the write is awaited
            connection.execute("ROLLBACK TO one_write")
            outcome = _Outcome(write, error=translated(error, self._path))
        connection.execute("RELEASE one_write")
        return outcome

    def _set_durability(self, connection: sqlite3.Connection, *, durable: bool) -> None:
        if durable is not self._durable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    @staticmethod
    def _take_back(connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            with suppress(sqlite3.Error):
                connection.execute("ROLLBACK")

    def _call(self, function: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:
            # The loop is closed: nobody awaits any more, what was committed stays.
            return

    def _deliver(self, outcomes: list[_Outcome]) -> None:
        for outcome in outcomes:
            self._slots.release()
            settle(outcome.write.future, outcome.result, outcome.error)


def settle(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    """Answer whoever awaits, unless they have gone."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
