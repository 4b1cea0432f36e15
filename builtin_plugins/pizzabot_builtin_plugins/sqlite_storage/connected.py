"""Opening and closing the files of one folder, and handing work to the writer or to a reader."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from pizzabot_builtin_plugins.sqlite_storage.database import APP_DATABASE, open_database
from pizzabot_builtin_plugins.sqlite_storage.graph import GraphFiles, not_open
from pizzabot_builtin_plugins.sqlite_storage.readers import Readers
from pizzabot_builtin_plugins.sqlite_storage.rows import Connection
from pizzabot_builtin_plugins.sqlite_storage.schema import MIGRATIONS, Migration
from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
from pizzabot_builtin_plugins.sqlite_storage.writer import Writer
from pizzabot_hookspecs.support.data_root import prepare_data_root

T = TypeVar("T")


class Connected:
    """Base of the parts of `SqliteStorage`. `Unavailable` `storage_closed` for whoever comes before or after."""

    def __init__(
        self,
        data_root: Path,
        settings: SqliteSettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
        migrations: Sequence[Migration] = MIGRATIONS,
    ) -> None:
        self._folder = data_root
        self._settings = settings or SqliteSettings()
        self._clock = clock
        self._migrations = migrations
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._graph: GraphFiles | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(prepare_data_root, self._folder)
        async with AsyncExitStack() as stack:
            path = self._folder / APP_DATABASE
            timeout = self._settings.busy_timeout_seconds
            writer = Writer(path, partial(self._connect, path))
            stack.push_async_callback(writer.close)
            await writer.start()
            readers = Readers(path, size=self._settings.readers, busy_timeout_seconds=timeout)
            stack.push_async_callback(readers.close)
            graph = GraphFiles(self._folder, busy_timeout_seconds=timeout, readers=self._settings.readers)
            stack.push_async_callback(graph.close)
            self._stack = stack.pop_all()
        self._writer, self._readers, self._graph = writer, readers, graph
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer = self._readers = self._graph = None
        await self._stack.aclose()

    def _connect(self, path: Path) -> Connection:
        return open_database(
            path,
            busy_timeout_seconds=self._settings.busy_timeout_seconds,
            migrations=self._migrations,
            now=self._clock(),
        )

    async def _write(self, work: Callable[[Connection], T], *, durable: bool = False) -> T:
        """`durable`: on the disk when this returns, so that it survives power loss and not only kill -9."""
        if self._writer is None:
            raise not_open(self._folder)
        return await self._writer.run(work, durable=durable)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        if self._readers is None:
            raise not_open(self._folder)
        return await self._readers.run(work)
