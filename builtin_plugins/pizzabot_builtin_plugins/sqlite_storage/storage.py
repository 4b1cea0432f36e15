"""`SqliteStorage`: the contract's `Storage` on the SQLite files of one folder."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pizzabot_builtin_plugins.sqlite_storage import admission, events, preferences, runs, threads
from pizzabot_builtin_plugins.sqlite_storage.database import APP_DATABASE, open_database
from pizzabot_builtin_plugins.sqlite_storage.graph import GraphFiles, not_open
from pizzabot_builtin_plugins.sqlite_storage.readers import Readers
from pizzabot_builtin_plugins.sqlite_storage.rows import Connection
from pizzabot_builtin_plugins.sqlite_storage.schema import MIGRATIONS, Migration
from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
from pizzabot_builtin_plugins.sqlite_storage.writer import Writer
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import (
    Admission,
    CancelReason,
    LogBounds,
    NewEvent,
    NewRun,
    Run,
    RunStatus,
    StoredEvent,
    Thread,
)
from pizzabot_hookspecs.support.data_root import prepare_data_root
from pizzabot_hookspecs.wire import JsonValue

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore

T = TypeVar("T")


class SqliteStorage:
    """Open with `async with`, on one loop, once. The lock on the data root is the host's (support.data_root).

    Opening raises `NotPermitted` `data_root_not_writable` and `Unavailable` `schema_too_new`, `database_damaged`,
    `storage_failed`; every method `Unavailable` `storage_failed`, `database_damaged`, `storage_closed`.
    """

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
            graph = GraphFiles(self._folder, busy_timeout_seconds=timeout)
            stack.push_async_callback(graph.close)
            self._stack = stack.pop_all()
        self._writer, self._readers, self._graph = writer, readers, graph
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer = self._readers = self._graph = None
        await self._stack.aclose()

    # Threads

    async def create_thread(
        self,
        thread_id: str,
        /,
        *,
        caller: Caller,
        title: str = threads.DEFAULT_TITLE,
        source: str = threads.DEFAULT_SOURCE,
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Thread:
        work = partial(
            threads.create_thread,
            thread_id=thread_id,
            caller=caller,
            now=self._clock(),
            title=title,
            source=source,
            metadata=metadata,
        )
        return await self._write(work)

    async def thread(self, thread_id: str, /, *, caller: Caller) -> Thread | None:
        return await self._read(partial(threads.thread, thread_id=thread_id, caller=caller))

    async def threads(self, *, caller: Caller, limit: int = 200) -> Sequence[Thread]:
        return await self._read(partial(threads.threads, caller=caller, limit=limit))

    async def pin_model(self, thread_id: str, model_id: str | None, /, *, caller: Caller) -> None:
        await self._write(partial(threads.pin_model, thread_id=thread_id, model_id=model_id, caller=caller))

    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        return await self._write(partial(threads.delete_thread, thread_id=thread_id, caller=caller))

    # Runs

    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        return await self._write(partial(admission.admit_run, new=new, caller=caller, now=self._clock()), durable=True)

    async def claim_run(self, run_id: str, /, *, server_id: str, takeover: bool = False, caller: Caller) -> Run | None:
        work = partial(
            runs.claim_run, run_id=run_id, server_id=server_id, takeover=takeover, caller=caller, now=self._clock()
        )
        return await self._write(work)

    async def append_events(self, run_id: str, epoch: int, new: Sequence[NewEvent], /, *, caller: Caller) -> int:
        batch = tuple(new)
        return await self._write(partial(events.append, run_id=run_id, epoch=epoch, events=batch, caller=caller))

    async def finish_run(
        self,
        run_id: str,
        epoch: int,
        new: Sequence[NewEvent],
        /,
        *,
        status: RunStatus,
        error_code: str | None = None,
        error: str | None = None,
        caller: Caller,
    ) -> int:
        runs.check_final(status)
        batch, now = tuple(new), self._clock()

        def finish(connection: Connection) -> int:
            seq = events.append(connection, run_id, epoch, batch, caller=caller)
            runs.end_run(connection, run_id, status=status, error_code=error_code, error=error, now=now)
            return seq

        return await self._write(finish)

    async def request_cancel(self, run_id: str, /, *, reason: CancelReason, caller: Caller) -> Run | None:
        work = partial(runs.request_cancel, run_id=run_id, reason=reason, caller=caller, now=self._clock())
        return await self._write(work, durable=True)

    async def run(self, run_id: str, /, *, caller: Caller) -> Run | None:
        return await self._read(partial(runs.run, run_id=run_id, caller=caller))

    async def active_run(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        return await self._read(partial(runs.active_run, thread_id=thread_id, caller=caller))

    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        return await self._read(partial(runs.next_pending, thread_id=thread_id, caller=caller))

    async def unfinished_runs(self, *, caller: Caller) -> Sequence[Run]:
        return await self._read(partial(runs.unfinished_runs, caller=caller))

    # The log, settings, what LangGraph keeps

    async def events(self, thread_id: str, /, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        return await self._read(partial(events.events, thread_id=thread_id, after=after, limit=limit, caller=caller))

    async def log_bounds(self, thread_id: str, /, *, caller: Caller) -> LogBounds:
        return await self._read(partial(events.log_bounds, thread_id=thread_id, caller=caller))

    async def setting(self, key: str, /, *, caller: Caller) -> JsonValue:
        return await self._read(partial(preferences.setting, key=key, caller=caller))

    async def put_setting(self, key: str, value: JsonValue, /, *, caller: Caller) -> None:
        await self._write(partial(preferences.put_setting, key=key, value=value, caller=caller, now=self._clock()))

    async def checkpointer(self) -> BaseCheckpointSaver[Any]:
        if self._graph is None:
            raise not_open(self._folder)
        return await self._graph.checkpointer()

    async def store(self) -> BaseStore:
        if self._graph is None:
            raise not_open(self._folder)
        return await self._graph.store()

    def _connect(self, path: Path) -> Connection:
        return open_database(
            path,
            busy_timeout_seconds=self._settings.busy_timeout_seconds,
            migrations=self._migrations,
            now=self._clock(),
        )

    async def _write(self, work: Callable[[Connection], T], *, durable: bool = False) -> T:
        if self._writer is None:
            raise not_open(self._folder)
        return await self._writer.run(work, durable=durable)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        if self._readers is None:
            raise not_open(self._folder)
        return await self._readers.run(work)
