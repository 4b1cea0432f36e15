"""What every part of the contract works with: the served host, and reading frames until something is there."""

from __future__ import annotations

import asyncio
import functools
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any, ClassVar, TypeVar

from pizzabot.testing.scripted_host import ScriptedHost
from pizzabot.testing.transport_contract.clients import FrameDict, TransportClient
from pizzabot_hookspecs import Caller, PizzabotError
from pizzabot_hookspecs.storage_backends import StoredEvent

EVERYTHING = ("values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom")
TERMINAL = ("completed", "failed", "interrupted")
SOMEBODY_ELSE = Caller(owner="somebody-else")

Self_ = TypeVar("Self_", bound="ServedContract")


def within_patience(test: Callable[[Self_], Awaitable[None]]) -> Callable[[Self_], None]:
    """Runs an async test of the suite, and fails it when it takes longer than `patience`."""

    @functools.wraps(test)
    def run(self: Self_) -> None:
        async def limited() -> None:
            async with asyncio.timeout(self.patience):
                await test(self)

        asyncio.run(limited())

    return run


class ServedContract(ABC):
    """How a client is made, and how long a test may take."""

    patience: ClassVar[float] = 20.0

    @abstractmethod
    def client(self, host: ScriptedHost) -> AbstractAsyncContextManager[TransportClient]:
        """Serve `host` on the transport under test and yield a client of it."""
        ...

    @asynccontextmanager
    async def served(self) -> AsyncIterator[tuple[ScriptedHost, TransportClient]]:
        async with ScriptedHost() as host, self.client(host) as client:
            yield host, client


def start(text: str, *, command_id: int = 1) -> dict[str, Any]:
    messages = [{"type": "human", "content": text}]
    return {"id": command_id, "method": "run.start", "params": {"input": {"messages": messages}}}


def frame_of(event: StoredEvent) -> FrameDict:
    """What a client must see of a stored event (design/wire.md §3.2)."""
    params = {"namespace": list(event.namespace), "timestamp": event.timestamp, "data": json.loads(event.data)}
    if event.node is not None:
        params["node"] = event.node
    return {
        "type": "event",
        "event_id": event.event_id,
        "seq": event.seq,
        "method": event.method,
        "params": params,
    }


async def say(host: ScriptedHost, client: TransportClient, thread_id: str, text: str) -> None:
    """Say something and wait until the answer is complete."""
    answer = await client.command(thread_id, start(text))
    assert answer["type"] == "success", answer
    await host.settled(thread_id)


@asynccontextmanager
async def listening(
    host: ScriptedHost, client: TransportClient, thread_id: str, *, since: int | None = None
) -> AsyncIterator[Callable[[], Awaitable[FrameDict]]]:
    """A connection that is attached, and a function that waits for its next frame."""
    async with aclosing(client.events(thread_id, channels=EVERYTHING, since=since)) as frames:
        pending = [asyncio.ensure_future(anext(frames))]

        async def next_frame() -> FrameDict:
            return await (pending.pop() if pending else anext(frames))

        try:
            await host.observed(thread_id)
            yield next_frame
        finally:
            for read in pending:
                read.cancel()
            await asyncio.gather(*pending, return_exceptions=True)


async def first_frames(
    client: TransportClient,
    number: int,
    thread_id: str,
    *,
    channels: Sequence[str] = EVERYTHING,
    namespaces: Sequence[Sequence[str]] = (),
    depth: int | None = None,
    since: int | None = None,
) -> list[FrameDict]:
    found: list[FrameDict] = []
    events = client.events(thread_id, channels=channels, namespaces=namespaces, depth=depth, since=since)
    async with aclosing(events) as frames:
        async for frame in frames:
            found.append(frame)
            if len(found) == number:
                return found
    return found


async def replayed(
    client: TransportClient, thread_id: str, host: ScriptedHost, *, since: int | None = None
) -> list[FrameDict]:
    """Frames up to the last one that is stored now."""
    last = host.events(thread_id)[-1].seq
    found: list[FrameDict] = []
    async with aclosing(client.events(thread_id, channels=EVERYTHING, since=since)) as frames:
        async for frame in frames:
            found.append(frame)
            if frame["seq"] >= last:
                break
    return found


async def until_terminal(client: TransportClient, thread_id: str) -> list[FrameDict]:
    found: list[FrameDict] = []
    async with aclosing(client.events(thread_id, channels=EVERYTHING)) as frames:
        async for frame in frames:
            found.append(frame)
            if frame["method"] == "lifecycle" and frame["params"]["data"]["event"] in TERMINAL:
                break
    return found


async def ended(next_frame: Callable[[], Awaitable[FrameDict]]) -> bool:
    try:
        await next_frame()
    except StopAsyncIteration:
        return True
    return False


async def code_of(refused: Awaitable[object]) -> str:
    try:
        result = await refused
    except PizzabotError as error:
        return error.code
    raise AssertionError(f"it was not refused, it answered {str(result)[:200]}")
