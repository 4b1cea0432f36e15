"""A small client: `call` for an answer, `events` for a thread's log, `activity` for what changes on all threads.

Only the standard library.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from itertools import count
from typing import Any

LINE_BYTES = 64 * 1024 * 1024
WAITING_LINES = 256
"""Of one subscription. When nobody takes them, nothing more is read, and the server ends what is slow."""


class Refused(Exception):
    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code


class LinesClient:
    """Made by `connect("unix:/path/lines.sock")` or `connect("tcp://127.0.0.1:7000", token="…")`; closed by `close`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Queue[dict[str, Any]]] = {}
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, address: str, token: str | None = None) -> LinesClient:
        if address.startswith("unix:"):
            return cls(*await asyncio.open_unix_connection(address.removeprefix("unix:"), limit=LINE_BYTES))
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        client = cls(*await asyncio.open_connection(host, int(port), limit=LINE_BYTES))
        await client.call("hello", token=token)
        return client

    async def call(self, op: str, **params: Any) -> Any:
        number = self._send(op, params)
        return (await self._next(number, last=True))["result"]

    async def events(self, thread_id: str, **params: Any) -> AsyncGenerator[dict[str, Any], None]:
        """Frames as they come, from `since`, else from the start of the thread's latest run."""
        async with aclosing(self._followed("events", "frame", {"thread_id": thread_id, **params})) as frames:
            async for frame in frames:
                yield frame

    async def activity(self) -> AsyncGenerator[dict[str, Any], None]:
        """All threads and what waits for a person as they are now, then what changes."""
        async with aclosing(self._followed("activity", "activity", {})) as told:
            async for change in told:
                yield change

    async def _followed(self, op: str, key: str, params: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        number = self._send(op, params)
        try:
            while "end" not in (said := await self._next(number)):
                if key in said:
                    yield said[key]
        finally:
            if (unread := self._waiting.pop(number, None)) is not None and not self._reading.done():
                while not unread.empty():
                    unread.get_nowait()
                with suppress(Refused):
                    await self.call("unsubscribe", subscription=number)

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()

    def _send(self, op: str, params: dict[str, Any]) -> int:
        number = next(self._ids)
        self._waiting[number] = asyncio.Queue(WAITING_LINES)
        self._writer.write(json.dumps({"id": number, "op": op, **params}).encode() + b"\n")
        return number

    async def _next(self, number: int, *, last: bool = False) -> dict[str, Any]:
        said = await self._waiting[number].get()
        if last or "end" in said or "error" in said:
            self._waiting.pop(number, None)
        if "error" in said:
            raise Refused(said["error"]["code"], said["error"]["detail"])
        return said

    async def _read(self) -> None:
        gone: dict[str, Any] = {"error": {"code": "disconnected", "detail": "the server has gone"}}
        with suppress(ConnectionError):
            while text := await self._reader.readline():
                said = json.loads(text)
                if said["id"] is None:
                    gone = said  # about the connection as a whole: it ends after this
                elif said["id"] in self._waiting:
                    await self._waiting[said["id"]].put(said)
        for waiting in list(self._waiting.values()):
            await waiting.put(gone)
