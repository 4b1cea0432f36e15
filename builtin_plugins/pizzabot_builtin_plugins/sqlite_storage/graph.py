"""What LangGraph keeps: its checkpointer and its store, each on a file of its own, opened on first call.

The saver and the store are bound to the loop that opened them (stack.md §8). Imports run in a thread: they take half a
second. The serializer is the strict one: only LangGraph's own list of types is rebuilt from a checkpoint, and what
msgpack cannot write is an error, never another format (CVE-2025-64439, CVE-2026-28277).
"""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pizzabot_builtin_plugins.sqlite_storage.database import check_header, make_private
from pizzabot_builtin_plugins.sqlite_storage.faults import translated
from pizzabot_builtin_plugins.sqlite_storage.readers import Readers
from pizzabot_builtin_plugins.sqlite_storage.writer import Writer
from pizzabot_hookspecs import Unavailable

if TYPE_CHECKING:
    import aiosqlite
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore

T = TypeVar("T")

CHECKPOINTS = "checkpoints.sqlite"
STORE = "store.sqlite"


class OpenedOnce(Generic[T]):
    """A value that concurrent first callers open together; a failed opening is tried again by the next caller."""

    def __init__(self, open_value: Callable[[AsyncExitStack], Awaitable[T]]) -> None:
        self._open = open_value
        self._stack = AsyncExitStack()
        self._opening: asyncio.Task[T] | None = None

    async def get(self) -> T:
        if self._opening is None or (self._opening.done() and self._failed(self._opening)):
            self._opening = asyncio.create_task(self._opened())
        # A caller that is cancelled leaves the opening to the others, and to `close`.
        return await asyncio.shield(self._opening)

    async def close(self) -> None:
        """Close what was opened, also while it is being opened."""
        if self._opening is not None:
            await asyncio.wait([self._opening])
            self._failed(self._opening)
        await self._stack.aclose()

    async def _opened(self) -> T:
        async with AsyncExitStack() as attempt:
            value = await self._open(attempt)
            await self._stack.enter_async_context(attempt.pop_all())
            return value

    @staticmethod
    def _failed(task: asyncio.Task[T]) -> bool:
        return task.cancelled() or task.exception() is not None


class GraphFiles:
    """`checkpointer()` and `store()` on `checkpoints.sqlite` and `store.sqlite` of one folder."""

    def __init__(self, folder: Path, *, busy_timeout_seconds: float, readers: int = 4) -> None:
        self._folder = folder
        self._readers = readers
        self._busy_timeout_seconds = busy_timeout_seconds
        self._checkpointer: OpenedOnce[BaseCheckpointSaver[Any]] = OpenedOnce(self._open_checkpointer)
        self._store: OpenedOnce[BaseStore] = OpenedOnce(self._open_store)

    async def checkpointer(self) -> BaseCheckpointSaver[Any]:
        return await self._checkpointer.get()

    async def store(self) -> BaseStore:
        return await self._store.get()

    async def close(self) -> None:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._checkpointer.close)
            stack.push_async_callback(self._store.close)

    async def _open_checkpointer(self, stack: AsyncExitStack) -> BaseCheckpointSaver[Any]:
        await asyncio.to_thread(importlib.import_module, "pizzabot_builtin_plugins.sqlite_storage.checkpoints")
        from pizzabot_builtin_plugins.sqlite_storage.checkpoints import Checkpoints, open_checkpoints

        path, timeout = self._folder / CHECKPOINTS, self._busy_timeout_seconds
        writer = Writer(path, partial(open_checkpoints, path, busy_timeout_seconds=timeout))
        stack.push_async_callback(writer.close)
        await writer.start()
        readers = Readers(path, size=self._readers, busy_timeout_seconds=timeout)
        stack.push_async_callback(readers.close)
        return Checkpoints(writer, readers)

    async def _open_store(self, stack: AsyncExitStack) -> BaseStore:
        await asyncio.to_thread(importlib.import_module, "langgraph.store.sqlite.aio")
        from langgraph.store.sqlite.aio import AsyncSqliteStore

        path = self._folder / STORE
        try:
            connection = await self._connect(stack, path, isolation_level=None)
            store = AsyncSqliteStore(connection)
            stack.push_async_callback(_end_batches, store)
            await store.setup()
        except (sqlite3.Error, OSError) as error:
            raise translated(error, path) from error
        return store

    async def _connect(self, stack: AsyncExitStack, path: Path, **options: Any) -> aiosqlite.Connection:
        import aiosqlite

        await asyncio.to_thread(_prepare, path)
        connection = await stack.enter_async_context(
            aiosqlite.connect(path, timeout=self._busy_timeout_seconds, **options)
        )
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "fullfsync = ON"):
            await connection.execute_fetchall(f"PRAGMA {pragma}")
        return connection


def _prepare(path: Path) -> None:
    make_private(path)
    check_header(path)


async def _end_batches(store: object) -> None:
    """The store's own task waits for work for ever and has no stop: without this the loop warns when it closes."""
    task: asyncio.Task[None] | None = getattr(store, "_task", None)
    if task is not None:
        task.cancel()
        await asyncio.wait([task])


def not_open(folder: Path) -> Unavailable:
    return Unavailable("storage_closed", f"storage {folder} is not open")
