"""A small HTTP/1.1 client for both servers: it takes so little that on two cores the server is what is measured."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

TEXT = "hello there my friend"
TURN_SECONDS = 30.0
MAX_ANSWER_BYTES = 1_000_000


@dataclass(frozen=True)
class Turn:
    """Seconds from the POST of `run.start` to the first event, and to the last one."""

    first_event: float
    whole: float


class Connection:
    """One connection that is kept open. A stream takes it to its end."""

    def __init__(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._port = port
        self._reader = reader
        self._writer = writer

    @classmethod
    @asynccontextmanager
    async def open(cls, port: int) -> AsyncIterator[Self]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield cls(port, reader, writer)
        finally:
            writer.close()

    async def post(self, path: str, body: Any) -> Any:
        """The JSON answer; raises `RuntimeError` for any status but 200."""
        headers = await self._ask(path, body)
        if b"content-length" in headers:
            answer = await self._reader.readexactly(int(headers[b"content-length"]))
        else:
            answer = b"".join([chunk async for chunk in self._chunks()])
        return json.loads(answer)

    async def events(self, path: str, body: Any) -> AsyncIterator[bytes]:
        """The `data` of each server-sent event."""
        await self._ask(path, body)
        waiting = b""
        async for chunk in self._chunks():
            *events, waiting = (waiting + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
            for event in events:
                for line in event.split(b"\n"):
                    if line.startswith(b"data:"):
                        yield line[5:]

    async def _ask(self, path: str, body: Any) -> dict[bytes, bytes]:
        content = json.dumps(body).encode()
        self._writer.write(
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(content)}\r\n\r\n".encode()
            + content
        )
        status, *lines = (await self._reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
        if status.split()[1] != b"200":
            raise RuntimeError(f"POST {path}: {status.decode()} {(await self._reader.read(500)).decode()}")
        pairs = (line.partition(b":") for line in lines)
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    async def _chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self._reader.readline(), 16):
            if size > MAX_ANSWER_BYTES:
                raise RuntimeError(f"a chunk of {size} bytes")
            yield await self._reader.readexactly(size)
            await self._reader.readexactly(2)
        await self._reader.readline()


async def turn(port: int, commands: Connection) -> Turn:
    """A new thread, one short text, its events to the end; raises unless the text was said back."""
    async with asyncio.timeout(TURN_SECONDS):
        thread_id = str(uuid.uuid4())
        await commands.post("/threads", {"thread_id": thread_id})
        async with Connection.open(port) as stream:
            began = time.perf_counter()
            message = {"role": "user", "content": TEXT}
            params = {"assistant_id": "agent", "input": {"messages": [message]}}
            reply = await commands.post(
                f"/threads/{thread_id}/commands", {"id": 1, "method": "run.start", "params": params}
            )
            if reply["type"] != "success":
                raise RuntimeError(f"run.start was refused: {reply}")
            events = stream.events(f"/threads/{thread_id}/stream/events", {"channels": ["lifecycle", "messages"]})
            return await _followed(events, began)


async def _followed(events: AsyncIterator[bytes], began: float) -> Turn:
    first, said = 0.0, ""
    async for data in events:
        first = first or time.perf_counter() - began
        params = json.loads(data)["params"]
        what = params["data"].get("event")
        if what == "content-block-delta":
            said += params["data"]["delta"].get("text", "")
        elif what in ("completed", "failed") and params["namespace"] == []:
            if what == "failed" or said != TEXT:
                raise RuntimeError(f"the run ended with {data!r} after {said!r}")
            return Turn(first, time.perf_counter() - began)
    raise RuntimeError("the stream ended before the run did")


async def turns_for(port: int, *, at_once: int, seconds: float) -> tuple[float, list[Turn]]:
    """Runs per second, and each of them, of `at_once` clients that start a run when their last one has ended."""
    began = time.perf_counter()
    ended: list[Turn] = []

    async def client() -> None:
        async with Connection.open(port) as commands:
            while time.perf_counter() - began < seconds:
                ended.append(await turn(port, commands))

    await asyncio.gather(*(client() for _ in range(at_once)))
    return len(ended) / (time.perf_counter() - began), ended


async def single_turns(port: int, count: int) -> list[Turn]:
    """One after another, on a server that has nothing else to do."""
    async with Connection.open(port) as commands:
        return [await turn(port, commands) for _ in range(count)]
