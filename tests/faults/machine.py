"""A server in this process that can be killed: the run engine on a real SQLite file that is cut off in mid-work.

A kill cuts the storage first: from then on no call of the old engine reaches the file, whatever its tasks still do.
What was handed to the disk before may be there or not, as after a SIGKILL.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from engine_rig import not_released, open_storage, rig

from pizzabot.testing.scripted_runtime import ScriptedMemory, ScriptedRuntime, _ScriptedRun
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.agent_runtimes import AgentRun, Turn
from pizzabot_hookspecs.host import EventFilter

WAIT_SECONDS = 20.0
HELD = ("word:2", "tool:", "ran:")
"""Steps at which a run stands until it is let go: after two words, before and after what a tool does."""


class HeldRuntime(ScriptedRuntime):
    """Every run stands at its held steps until `let_go` names it, or for ever open once `open` is set."""

    def __init__(self, memory: ScriptedMemory, did: list[str]) -> None:
        super().__init__(memory=memory)
        self.executed = did
        self.standing: dict[str, asyncio.Event] = {}
        self.changed = asyncio.Event()
        self.open = False

    def start(self, turn: Turn, /) -> AgentRun:
        return _HeldRun(self, turn)

    def let_go(self, run_id: str) -> None:
        self.standing.pop(run_id).set()


class _HeldRun(_ScriptedRun):
    async def _pass(self, name: str) -> None:
        runtime: Any = self._runtime
        if runtime.open or not name.startswith(HELD) or self._stop.is_set():
            return
        go_on = runtime.standing[self._turn.run_id] = asyncio.Event()
        runtime.changed.set()
        waits = {asyncio.ensure_future(go_on.wait()), asyncio.ensure_future(self._stop.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
            if runtime.standing.get(self._turn.run_id) is go_on:
                del runtime.standing[self._turn.run_id]
            runtime.changed.set()


class CutStorage:
    """The storage of one life: once it is cut, a call never comes back."""

    def __init__(self, path: Any) -> None:
        self.real = open_storage(path)
        self.is_cut = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.real, name)
        if not callable(found):
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            if self.is_cut:
                await asyncio.Event().wait()
            answer = await found(*arguments, **named)
            if self.is_cut:  # it was done, and nobody hears of it any more
                await asyncio.Event().wait()
            return answer

        return call

    async def __aenter__(self) -> Any:
        return await self.real.__aenter__()

    async def __aexit__(self, *_: object) -> None:
        await self.real.__aexit__(None, None, None)


class Life:
    """One start of the server to its end. `parts` is the rig's."""

    def __init__(self, path: Any, memory: ScriptedMemory, did: list[str]) -> None:
        self.runtime = HeldRuntime(memory, did)
        self._storage = CutStorage(path)
        self._stack = AsyncExitStack()

    async def begin(self) -> None:
        opened = rig(None, self.runtime, storage=self._storage, close=False)
        self.parts = await self._stack.enter_async_context(opened)
        await self.parts.engine.recover()

    async def kill(self) -> None:
        self._storage.is_cut = True
        self._storage.release_runs = not_released  # type: ignore[attr-defined]
        await self._end()

    async def shut_down(self) -> None:
        await self._end()

    async def _end(self) -> None:
        await self._stack.aclose()
        await self._storage.__aexit__()

    async def quiet(self) -> None:
        """Until every run has ended, waits for an answer, or stands where it is held."""
        engine = self.parts.engine
        async with asyncio.timeout(WAIT_SECONDS):
            while busy := [task for thread_id, task in engine.drivers.tasks.items() if not self._stands(thread_id)]:
                self.runtime.changed.clear()
                change = asyncio.ensure_future(self.runtime.changed.wait())
                await asyncio.wait({*busy, change}, return_when=asyncio.FIRST_COMPLETED)
                change.cancel()

    def _stands(self, thread_id: str) -> bool:
        for run_id, known in self.parts.engine.drivers.running.items():
            if known.pump is not None and known.pump._run.thread_id == thread_id:
                return run_id in self.runtime.standing and known.wish is None
        return False


class Reader:
    """A client's eyes on one thread: everything it saw, over all its connections."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        self.seen: list[Any] = []
        self._reading: asyncio.Task[None] | None = None
        self._news = asyncio.Event()

    @property
    def connected(self) -> bool:
        return self._reading is not None

    async def connect(self, life: Life, everything: EventFilter) -> None:
        cursor = self.seen[-1].seq if self.seen else 0
        stream = await life.parts.runs.observe(self.thread_id, everything, since=cursor, caller=LOCAL)

        async def read() -> None:
            async for batch in stream:
                assert batch.gap is None
                self.seen += batch.events
                self._news.set()

        self._reading = asyncio.ensure_future(read())

    async def has(self, count: int) -> None:
        """Until it saw so many."""
        while len(self.seen) < count:
            self._news.clear()
            await self._news.wait()

    async def disconnect(self) -> None:
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.cancel()
            ended = (await asyncio.gather(reading, return_exceptions=True))[0]
            assert ended is None or isinstance(ended, asyncio.CancelledError), ended
