"""`Archive`: conversations and recordings in one SQLite file, used from one thread of its own.

Every method is a coroutine and returns when its transaction is on the disk. SQLite needs no server and is in the
standard library; a file per thread would do as well, and would need its own answer to half-written files.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from pizzabot_hookspecs import Unavailable
from pizzabot_replay import tables
from pizzabot_replay.messages import Stored
from pizzabot_replay.tables import Conversation, Recording

T = TypeVar("T")


class Archive:
    """Open with `async with`. Raises `Unavailable` `replay_file_unusable`, naming the file and the cause."""

    def __init__(self, path: Path, *, clock: Callable[[], float], max_recordings: int) -> None:
        self._path = path
        self._clock = clock
        self._max_recordings = max_recordings
        # One worker: SQLite's connection stays in its thread, and writes need no lock.
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="replay-archive")
        self._connection: sqlite3.Connection | None = None

    async def __aenter__(self) -> Self:
        try:
            self._connection = await self._in_worker(lambda: tables.connect(self._path))
        except BaseException:
            self._worker.shutdown(wait=False)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._in_worker(connection.close)
        self._worker.shutdown(wait=False)

    async def conversation(self, thread_id: str) -> Conversation:
        return await self._run(lambda connection: tables.conversation(connection, thread_id))

    async def add(self, thread_id: str, messages: Sequence[Stored], *, keep: int | None = None) -> Conversation:
        """Append messages whose ids are new, after cutting the conversation to its first `keep` messages."""
        now = self._clock()
        return await self._run(lambda connection: tables.add(connection, thread_id, messages, keep=keep, now=now))

    async def answer(self, thread_id: str, message: Stored, recording: Recording | None) -> Conversation:
        """Append an answer and keep its recording, both or neither."""
        now = self._clock()

        def work(connection: sqlite3.Connection) -> Conversation:
            if recording is not None:
                tables.record(connection, recording, now=now, limit=self._max_recordings)
            return tables.add(connection, thread_id, [message], keep=None, now=now)

        return await self._run(work)

    async def recording(self, digest: str) -> Recording | None:
        return await self._run(lambda connection: tables.recording(connection, digest))

    async def forget(self, thread_id: str) -> None:
        await self._run(lambda connection: tables.forget(connection, thread_id))

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection = self._connection
        if connection is None:
            raise Unavailable("replay_file_unusable", f"{self._path} is not open: the runtime was closed")

        def transaction() -> T:
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                return work(connection)

        return await self._in_worker(transaction)

    async def _in_worker(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except (sqlite3.Error, OSError) as error:
            way_out = "check the disk, or move the file away to begin anew"
            detail = f"{self._path} cannot be used: {error}; {way_out}"
            raise Unavailable("replay_file_unusable", detail) from error
