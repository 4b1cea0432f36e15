"""`SqliteStorage`: the contract's `Storage` on the SQLite files of one folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pizzabot_builtin_plugins.sqlite_storage import adoption, preferences, threads
from pizzabot_builtin_plugins.sqlite_storage.file_storage import SqliteFiles
from pizzabot_builtin_plugins.sqlite_storage.graph import not_open
from pizzabot_builtin_plugins.sqlite_storage.interrupt_storage import SqliteInterrupts
from pizzabot_builtin_plugins.sqlite_storage.run_storage import SqliteRuns
from pizzabot_builtin_plugins.sqlite_storage.transcript_storage import SqliteTranscripts
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import Thread, ThreadCopy, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore


class SqliteStorage(SqliteRuns, SqliteInterrupts, SqliteTranscripts, SqliteFiles):
    """Open with `async with`, on one loop, once. The lock on the data root is the host's (support.data_root).

    Opening raises `NotPermitted` `data_root_not_writable` and `Unavailable` `schema_too_new`, `database_damaged`,
    `storage_failed`; every method `Unavailable` `storage_failed`, `database_damaged`, `storage_closed`.
    """

    @property
    def shared(self) -> bool:
        """False: the data root belongs to one server. Fencing holds all the same, with two engines on one file."""
        return False

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

    async def threads(
        self, *, caller: Caller, limit: int = 200, offset: int = 0, status: ThreadStatus | None = None
    ) -> Sequence[Thread]:
        return await self._read(partial(threads.threads, caller=caller, limit=limit, offset=offset, status=status))

    async def pin_model(self, thread_id: str, model_id: str | None, /, *, caller: Caller) -> None:
        await self._write(partial(threads.pin_model, thread_id=thread_id, model_id=model_id, caller=caller))

    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        return await self._write(partial(threads.delete_thread, thread_id=thread_id, caller=caller))

    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        own = replace(copy, runs=tuple(copy.runs), events=tuple(copy.events), files=tuple(copy.files))
        return await self._write(partial(adoption.adopt_thread, copy=own, caller=caller, now=self._clock()))

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
