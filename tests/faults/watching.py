"""What clients saw and what the log holds: a client that keeps every frame, and the log read past the server."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from servers import Server
from talking import Frame, HttpConversation, frames_of, run_of, say, text_of

SCENE_SECONDS = 60.0
FINAL = {"success", "error", "timeout", "interrupted", "cancelled", "needs_attention"}


@dataclass(frozen=True)
class Event:
    """A row of the log. `root`: it has no namespace."""

    seq: int
    run_id: str
    method: str
    root: bool
    data: Any

    @property
    def is_root_end(self) -> bool:
        return self.method == "lifecycle" and self.root and self.data["event"] != "running"


class Client(HttpConversation):
    """A client that can also look into the inbox and answer."""

    async def inbox(self) -> list[dict[str, Any]]:
        return (await self._client.get("/inbox")).json()["interrupts"]

    async def waiting(self, thread_id: str) -> list[dict[str, Any]]:
        return (await self._client.get(f"/threads/{thread_id}/interrupts")).json()["interrupts"]

    async def respond(self, thread_id: str, *answers: tuple[str, Any]) -> dict[str, Any]:
        responses = [{"interrupt_id": name, "response": answer} for name, answer in answers]
        params = responses[0] if len(responses) == 1 else {"responses": responses}
        return await self.command(thread_id, "input.respond", params)

    async def healthy(self) -> bool:
        return (await self._client.get("/ping")).status_code == 200


class Record:
    """Every frame that one client saw, over all its connections."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.frames: list[Frame] = []
        self._news = asyncio.Condition()

    @property
    def cursor(self) -> int:
        return self.frames[-1]["seq"] if self.frames else 0

    async def add(self, frame: Frame) -> None:
        async with self._news:
            self.frames.append(frame)
            self._news.notify_all()

    async def until(self, told: Callable[[Frame], bool]) -> Frame:
        """The first frame for which `told` holds, waiting for it."""
        async with self._news:
            await self._news.wait_for(lambda: any(map(told, self.frames)))
        return next(filter(told, self.frames))


@asynccontextmanager
async def connected(client: Client, record: Record) -> AsyncIterator[Record]:
    """Reads on from the record's cursor until the block ends or the server is gone."""

    async def read() -> None:
        stream = client.frames(record.thread_id, since=record.cursor)
        try:
            async for frame in stream:
                await record.add(frame)
        except httpx.TransportError:
            return
        finally:
            await stream.aclose()

    reading = asyncio.create_task(read())
    try:
        yield record
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


@asynccontextmanager
async def watched(server: Server, thread_id: str) -> AsyncIterator[tuple[Client, Record]]:
    """A client that talks on a thread and keeps what it sees."""
    async with Client(server.http) as client, connected(client, Record(thread_id)) as record:
        yield client, record


async def begun(client: Client, thread_id: str, text: str, **params: Any) -> str:
    """The id of an admitted run."""
    answer = await say(client, thread_id, text, **params)
    assert answer["type"] == "success", answer
    return str(answer["result"]["run_id"])


async def answered(client: Client, thread_id: str, *answers: tuple[str, Any]) -> list[Frame]:
    """Answer, and the frames of the run that goes on."""
    answer = await client.respond(thread_id, *answers)
    assert answer["type"] == "success", answer
    return await frames_of(client, thread_id, answer["result"]["run_id"])


async def next_message_works(client: Client, thread_id: str) -> None:
    run_id = await begun(client, thread_id, "and then?")
    assert text_of(await frames_of(client, thread_id, run_id)) == "and then?"


def ending(frames: list[Frame]) -> tuple[str, str | None]:
    data = frames[-1]["params"]["data"]
    return data["event"], data.get("code")


def done(server: Server) -> list[str]:
    """What tools did, in order."""
    path = server.folder / "done.txt"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def play(scene: Any) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(SCENE_SECONDS):
            return await scene

    return asyncio.run(bounded())


def stored_log(data_root: Path, thread_id: str) -> list[Event]:
    """Every event, read from the file itself."""
    with closing(sqlite3.connect(f"file:{data_root / 'app.sqlite'}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT seq, run_id, method, namespace, payload FROM run_events WHERE thread_id = ? ORDER BY seq",
            (thread_id,),
        ).fetchall()
    return [Event(*row[:3], root=row[3] is None, data=json.loads(row[4])) for row in rows]


def stored_runs(data_root: Path, thread_id: str) -> dict[str, str]:
    """Status by run id, in the order of admission."""
    with closing(sqlite3.connect(f"file:{data_root / 'app.sqlite'}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT run_id, status FROM runs WHERE thread_id = ? ORDER BY rowid", (thread_id,)
        ).fetchall()
    return dict(rows)


def check_log(server: Server, thread_id: str, *records: Record) -> list[Event]:
    """Every claim of durable-runs about a log whose runs have all ended, and about who read along; the log."""
    log = stored_log(server.data_root, thread_id)
    assert [event.seq for event in log] == list(range(1, len(log) + 1))
    runs = stored_runs(server.data_root, thread_id)
    assert set(runs.values()) <= FINAL, runs
    assert Counter(event.run_id for event in log if event.is_root_end) == dict.fromkeys(runs, 1)
    for record in records:
        seen = [_told(frame) for frame in record.frames]
        assert [frame[0] for frame in seen] == list(range(1, len(seen) + 1)), "a client missed a frame or got one twice"
        assert seen == [(event.seq, event.run_id, event.method, event.data) for event in log[: len(seen)]]
    return log


def _told(frame: Frame) -> tuple[int, str, str, Any]:
    return frame["seq"], run_of(frame), frame["method"], frame["params"]["data"]


async def caught_up(client: Client, record: Record, *, server: Server) -> None:
    """Reconnect with the record's cursor and read to the end of the log; then client and log must agree."""
    last = len(stored_log(server.data_root, record.thread_id))
    async with connected(client, record):
        await record.until(lambda frame: frame["seq"] == last)
    assert len(check_log(server, record.thread_id, record)) == last
