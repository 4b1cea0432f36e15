"""What every conversation test speaks: commands and frames, whatever transport carries them."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, Self

import httpx

CHANNELS = ("values", "messages", "tools", "lifecycle", "input", "checkpoints", "custom")
Frame = dict[str, Any]
EXAMPLES = Path(__file__).parents[2] / "examples"


class Conversation(Protocol):
    async def command(self, thread_id: str, method: str, params: dict[str, Any]) -> dict[str, Any]: ...

    async def state(self, thread_id: str) -> dict[str, Any] | None: ...

    def frames(self, thread_id: str, *, since: int | None = None) -> AsyncIterator[Frame]: ...


class HttpConversation:
    """The wire as stock clients use it: JSON commands and server-sent events."""

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, timeout=30, trust_env=False)
        self._number = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def command(self, thread_id: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        body = {"id": self._number, "method": method, "params": params}
        answer = await self._client.post(f"/threads/{thread_id}/commands", json=body)
        return answer.json()

    async def state(self, thread_id: str) -> dict[str, Any] | None:
        answer = await self._client.get(f"/threads/{thread_id}/state")
        return None if answer.status_code == 404 else answer.json()

    async def frames(self, thread_id: str, *, since: int | None = None) -> AsyncIterator[Frame]:
        body = {"channels": list(CHANNELS)} | ({} if since is None else {"since": since})
        async with self._client.stream("POST", f"/threads/{thread_id}/stream/events", json=body) as answer:
            assert answer.status_code == 200
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line.removeprefix("data: "))


def is_root_end(frame: Frame) -> bool:
    params = frame["params"]
    return frame["method"] == "lifecycle" and params["namespace"] == [] and params["data"]["event"] != "running"


def run_of(frame: Frame) -> str:
    return str(frame["event_id"]).split(":")[1]


def text_of(frames: list[Frame]) -> str:
    deltas = [frame["params"]["data"].get("delta", {}) for frame in frames if frame["method"] == "messages"]
    return "".join(delta.get("text", "") for delta in deltas)


async def say(talk: Conversation, thread_id: str, text: str, **params: Any) -> dict[str, Any]:
    """The envelope of a `run.start` with one message."""
    return await talk.command(
        thread_id, "run.start", {"input": {"messages": [{"role": "user", "content": text}]}, **params}
    )


async def frames_of(talk: Conversation, thread_id: str, run_id: str, *, since: int = 0) -> list[Frame]:
    """The frames of one run, from the log, until it ended."""
    seen: list[Frame] = []
    stream = talk.frames(thread_id, since=since)
    try:
        async for frame in stream:
            if run_of(frame) == run_id:
                seen.append(frame)
                if is_root_end(frame):
                    return seen
    finally:
        await stream.aclose()
    raise AssertionError(f"the stream ended before run {run_id} did: {seen[-3:]}")


async def frame_with(talk: Conversation, thread_id: str, text: str) -> Frame:
    """The first frame whose delta has `text`."""
    stream = talk.frames(thread_id, since=0)
    try:
        async for frame in stream:
            if text in text_of([frame]):
                return frame
    finally:
        await stream.aclose()
    raise AssertionError(f"the stream ended before {text!r} came")


async def ask(talk: Conversation, thread_id: str, text: str, **params: Any) -> list[Frame]:
    """Say something and wait for the run's last frame."""
    answer = await say(talk, thread_id, text, **params)
    assert answer["type"] == "success", answer
    return await frames_of(talk, thread_id, answer["result"]["run_id"])


def texts(state: dict[str, Any] | None) -> list[tuple[str, str]]:
    """The conversation that a state holds, as (type, text)."""
    assert state is not None
    told = []
    for message in state["values"].get("messages", []):
        content = message["content"]
        if isinstance(content, list):
            content = "".join(block.get("text", "") for block in content if block.get("type") == "text")
        told.append((message["type"], content))
    return told


class LinesConversation:
    """The same over `examples/transport-lines`, with the client that it ships."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._number = 0

    async def command(self, thread_id: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        body = {"id": self._number, "method": method, "params": params}
        return (await self._client.call("command", thread_id=thread_id, command=body))["envelope"]

    async def state(self, thread_id: str) -> dict[str, Any] | None:
        from pizzabot_lines.client import Refused

        try:
            return await self._client.call("state", thread_id=thread_id)
        except Refused as refused:
            if refused.code == "no_such_thread":
                return None
            raise

    async def frames(self, thread_id: str, *, since: int | None = None) -> AsyncIterator[Frame]:
        cursor = {} if since is None else {"since": since}
        stream = self._client.events(thread_id, channels=list(CHANNELS), **cursor)
        try:
            async for frame in stream:
                yield frame
        finally:
            await stream.aclose()


@asynccontextmanager
async def conversation(addresses: Sequence[str]) -> AsyncIterator[Conversation]:
    """Over HTTP where the server speaks it, else over lines."""
    http = next((address for address in addresses if address.startswith("http")), None)
    if http is not None:
        async with HttpConversation(http) as talk:
            yield talk
        return
    sys.path.insert(0, str(EXAMPLES / "transport-lines"))
    try:
        from pizzabot_lines.client import LinesClient
    finally:
        sys.path.pop(0)
    client = await LinesClient.connect(addresses[0])
    try:
        yield LinesConversation(client)
    finally:
        await client.close()
