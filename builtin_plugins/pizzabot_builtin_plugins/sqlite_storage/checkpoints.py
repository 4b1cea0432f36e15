# ruff: noqa: TID253 - imported by `graph`, in a thread, when a checkpointer is asked for
"""The checkpointer: LangGraph's own SQL, each operation one hop to the writer's thread or to a reader's.

LangGraph's asynchronous saver crosses to its thread 35 times a run and commits each write by itself, under one lock
that a listing keeps while it is paused (langgraph#8558). Here what waits at the same moment is committed together,
and reads have connections of their own. The file is the same: either saver goes on with what the other one wrote.
"""

from __future__ import annotations

import asyncio
import copy
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from pizzabot_builtin_plugins.sqlite_storage.database import (
    CACHED_STATEMENTS,
    WAL_KEPT_BYTES,
    check_header,
    make_private,
)
from pizzabot_builtin_plugins.sqlite_storage.faults import translated

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        DeltaChannelHistory,
    )

    from pizzabot_builtin_plugins.sqlite_storage.readers import Readers
    from pizzabot_builtin_plugins.sqlite_storage.writer import Writer

T = TypeVar("T")

LISTED_AT_ONCE = 32
"""Checkpoints that a listing holds in memory; it reads on when these are taken."""


def open_checkpoints(path: Path, *, busy_timeout_seconds: float) -> sqlite3.Connection:
    """The writer's connection, with LangGraph's tables. Blocks; raises as `faults` says."""
    try:
        make_private(path)
        check_header(path)
        connection = sqlite3.connect(
            path,
            timeout=busy_timeout_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=CACHED_STATEMENTS,
        )
        try:
            for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "fullfsync = ON"):
                connection.execute(f"PRAGMA {pragma}").fetchone()
            connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}").fetchone()
            SqliteSaver(connection).setup()
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise translated(error, path) from error
    return connection


class Checkpoints(AsyncSqliteSaver):
    """A saver for one loop, on a writer and readers that are its opener's to close.

    Callable from other threads as its parent is; the parent's own connection and lock are not there. Every method
    raises `Unavailable` `storage_failed`, `database_damaged`, `storage_closed`. A write that is handed over is stored
    whole, also when whoever awaits it is cancelled.
    """

    def __init__(self, writer: Writer, readers: Readers) -> None:
        serde = JsonPlusSerializer(allowed_msgpack_modules=None)
        BaseCheckpointSaver.__init__(self, serde=serde)
        self.loop = asyncio.get_running_loop()
        self.is_setup = True
        self._writer = writer
        self._readers = readers
        self._sql = _Sql(serde)

    async def setup(self) -> None:
        """Nothing: the tables are there since the opening."""

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._read(lambda sql: sql.get_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's word
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Newest first. Between two of its reads it holds no connection and no snapshot, however long it is paused."""
        left, at_once = limit, LISTED_AT_ONCE
        while left is None or left > 0:
            wanted = at_once if left is None else min(at_once, left)
            found = await self._read(partial(_listed, config=config, filter=filter, before=before, limit=wanted))
            ended = len(found) < wanted or wanted == left
            page = found if ended else _before_the_last_id(found)
            for checkpoint in page:
                yield checkpoint
            if ended:
                return
            if page:
                before, left = page[-1].config, None if left is None else left - len(page)
            else:
                at_once *= 2

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._write(lambda sql: sql.put(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._write(lambda sql: sql.put_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._write(lambda sql: sql.delete_thread(thread_id))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._read(lambda sql: sql.get_delta_channel_history(config=config, channels=channels))

    async def _read(self, work: Callable[[_Sql], T]) -> T:
        def in_a_snapshot(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN")
            try:
                return work(self._sql.on(connection, self.serde))
            finally:
                connection.execute("ROLLBACK")

        return await self._readers.run(in_a_snapshot)

    async def _write(self, work: Callable[[_Sql], T]) -> T:
        """Serialize here and now, as the values are at this moment; then execute the statements, once or again."""
        statements = _Statements()
        result = work(self._sql.on(statements, self.serde))
        await self._writer.run(statements.run)
        return result


class _Sql(SqliteSaver):
    """LangGraph's statements, handed to a connection whose transactions are somebody else's."""

    def __init__(self, serde: Any) -> None:
        BaseCheckpointSaver.__init__(self, serde=serde)
        self.is_setup = True

    def on(self, connection: Any, serde: Any) -> _Sql:
        bound = copy.copy(self)
        bound.conn, bound.serde = connection, serde
        return bound

    @contextmanager
    def cursor(self, transaction: bool = True) -> Iterator[Any]:  # noqa: ARG002, FBT001, FBT002 - LangGraph's signature
        with closing(self.conn.cursor()) as cursor:
            yield cursor


class _Statements:
    """Stands for a connection: keeps what is to be executed, with its values serialized."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, Sequence[Any]]] = []

    def cursor(self) -> _Statements:
        return self

    def close(self) -> None:
        """A cursor's, of which there is none."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> None:
        self._kept.append((statement, (values,)))

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        self._kept.append((statement, rows))

    def run(self, connection: sqlite3.Connection) -> None:
        for statement, rows in self._kept:
            connection.executemany(statement, rows)


def _listed(sql: _Sql, **asked: Any) -> Sequence[CheckpointTuple]:
    return list(sql.list(**asked))


def _before_the_last_id(found: Sequence[CheckpointTuple]) -> Sequence[CheckpointTuple]:
    """Without those of the last id: more of them may follow, of other threads, and a listing goes on before an id."""
    last = found[-1].config["configurable"]["checkpoint_id"]
    return [item for item in found if item.config["configurable"]["checkpoint_id"] != last]
