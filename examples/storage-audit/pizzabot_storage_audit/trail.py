"""The trail: lines of JSON in rotated files, written by one task beside the storage, never on the event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pizzabot_hookspecs import Caller, Logger
from pizzabot_storage_audit.files import RotatedFile

MAX_WAITING = 1_000
"""Lines that may wait for the disk. When it cannot keep up, the calls that are written down wait, too."""


class AuditTrail:
    """`write` is cheap: it puts a line in a queue. Closing waits until every line is in its file."""

    def __init__(
        self, folder: Path, *, max_bytes: int, max_files: int, clock: Callable[[], float], logger: Logger
    ) -> None:
        self._file = RotatedFile(folder, max_bytes=max_bytes, max_files=max_files)
        self._clock = clock
        self._logger = logger
        self._waiting: asyncio.Queue[str | None] = asyncio.Queue(MAX_WAITING)
        self._writer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._file.prepare)
        self._writer = asyncio.create_task(self._write_what_waits(), name="audit trail")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            await self._waiting.put(None)
            await self._writer

    async def write(self, event: str, caller: Caller, **facts: str | int | bool | None) -> None:
        """One line: when, what, on whose behalf, and `facts`. Never the text of a message."""
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        line = {"at": at, "event": event, "caller": caller.owner, "request_id": caller.request_id, **facts}
        await self._waiting.put(json.dumps(line))

    async def _write_what_waits(self) -> None:
        ended = False
        while not ended:
            lines = [await self._waiting.get()]
            while not self._waiting.empty():
                lines.append(self._waiting.get_nowait())
            ended = lines[-1] is None
            await self._write_lines([line for line in lines if line is not None])

    async def _write_lines(self, lines: Sequence[str]) -> None:
        try:
            await asyncio.to_thread(self._file.append, lines)
        except OSError as error:
            # A full disk must not stop conversations: what could not be written is said in the log.
            self._logger.error("audit.not_written", lines=len(lines), cause=str(error))
