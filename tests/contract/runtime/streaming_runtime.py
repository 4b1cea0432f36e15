"""A runtime without a graph, for the tests of the contract: it streams the model and keeps threads in the store."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.agent_runtimes import RuntimeServices, Turn
from pizzabot_hookspecs.wire import Frame, ThreadState


class StreamingRuntime:
    """Correct as it is; `test_contract_finds_faults` makes it wrong, one method at a time."""

    def __init__(self) -> None:
        self.store: Any = None

    async def prepare(self, services: RuntimeServices, /) -> None:
        self.store = await services.graph_storage.store()

    def start(self, turn: Turn, /) -> StreamingRun:
        return StreamingRun(self, turn)

    async def load(self, thread_id: str) -> list[dict[str, Any]] | None:
        item = await self.store.aget(("threads",), thread_id)
        return None if item is None else list(item.value["messages"])

    async def save(self, thread_id: str, messages: list[dict[str, Any]]) -> None:
        await self.store.aput(("threads",), thread_id, {"messages": messages})

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState | None:
        messages = await self.load(thread_id)
        if messages is None:
            return None
        checkpoint = {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": f"{thread_id}-{len(messages)}"}
        return {
            "values": {"messages": messages},
            "next": [],
            "tasks": [],
            "metadata": {},
            "created_at": "2026-01-01T00:00:00+00:00",
            "checkpoint": checkpoint,
            "parent_checkpoint": None,
            "interrupts": [],
        }

    async def forget(self, thread_id: str, /, *, caller: Caller) -> None:
        await self.store.adelete(("threads",), thread_id)


class StreamingRun:
    def __init__(self, runtime: StreamingRuntime, turn: Turn) -> None:
        self.runtime, self.turn = runtime, turn
        self.stopped = asyncio.Event()
        self.done = asyncio.Event()
        self.begun = False
        self.pieces: list[str] = []
        self.id = f"answer-{uuid.uuid4()}"

    def frame(self, method: Any, data: Any, namespace: tuple[str, ...] = ()) -> Frame:
        return Frame(method=method, data=data, timestamp=int(time.time() * 1000), namespace=namespace)

    def message(self, event: str, **more: Any) -> Frame:
        return self.frame("messages", {"event": event, "run_id": "call-1", **more}, ("model_request:1",))

    async def stop(self) -> None:
        self.stopped.set()
        if self.begun:
            await self.done.wait()

    def __aiter__(self) -> AsyncIterator[Frame]:
        return self.frames()

    async def frames(self) -> AsyncIterator[Frame]:
        self.begun = True
        try:
            async for frame in self.answer():
                yield frame
        finally:
            self.done.set()

    async def answer(self) -> AsyncIterator[Frame]:
        history = await self.runtime.load(self.turn.thread_id) or []
        known = {message["id"] for message in history}
        history += [
            {"type": "human", "id": message.id, "content": message.text}
            for message in self.turn.messages
            if message.id not in known
        ]
        finished = self.turn.recover and history[-1]["type"] == "ai"
        if finished and self.turn.told is not None and history[-1]["id"] not in self.turn.told:
            self.id = history[-1]["id"]
            for frame in self.told(history[-1]["content"]):
                yield frame
        if not finished:
            await self.runtime.save(self.turn.thread_id, history)
            if not self.stopped.is_set():
                async for frame in self.say(history):
                    yield frame
            if self.pieces:
                history.append(self.spoken())
                await self.runtime.save(self.turn.thread_id, history)
        yield self.frame("values", {"messages": history})

    def told(self, text: str) -> list[Frame]:
        return [
            self.message("message-start", role="ai", id=self.id),
            self.message("content-block-start", index=0, content={"type": "text", "text": ""}),
            self.message("content-block-delta", index=0, delta={"type": "text-delta", "text": text}),
            self.message("content-block-finish", index=0, content={"type": "text", "text": text}),
            self.message("message-finish"),
        ]

    def spoken(self) -> dict[str, Any]:
        metadata = {"cancelled": True} if self.stopped.is_set() else {}
        return {"type": "ai", "id": self.id, "content": "".join(self.pieces), "response_metadata": metadata}

    async def say(self, history: list[dict[str, Any]]) -> AsyncIterator[Frame]:
        pieces = self.turn.model.chat.astream([(message["type"], message["content"]) for message in history])
        yield self.message("message-start", role="ai", id=self.id)
        yield self.message("content-block-start", index=0, content={"type": "text", "text": ""})
        while (piece := await self.next_piece(pieces)) is not None:
            self.pieces.append(piece)
            yield self.message("content-block-delta", index=0, delta={"type": "text-delta", "text": piece})
        if not self.stopped.is_set():
            content = {"type": "text", "text": "".join(self.pieces)}
            yield self.message("content-block-finish", index=0, content=content)
            yield self.message("message-finish")

    async def next_piece(self, pieces: Any) -> str | None:
        if self.stopped.is_set():
            return None
        pull = asyncio.ensure_future(anext(pieces, None))
        stopped = asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait((pull, stopped), return_when=asyncio.FIRST_COMPLETED)
            return None if self.stopped.is_set() or (chunk := pull.result()) is None else str(chunk.content)
        finally:
            for task in (pull, stopped):
                task.cancel()
            await asyncio.gather(pull, stopped, return_exceptions=True)
