"""`ScriptedRuntime`: an agent runtime without a graph and without a model, for tests and benchmarks of everything else.

It echoes the last message word by word. `gates` hold a turn at a named step until the test lets it go, so that no test
sleeps: `await runtime.reached("word:1")`, then `runtime.release("word:1")`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable

from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.agent_runtimes import AgentRun, RuntimeServices, Turn
from pizzabot_hookspecs.wire import Frame, ThreadState


class Gate:
    """A point where a turn waits: `arrived` is set by the turn, `open` by the test."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.open = asyncio.Event()


class ScriptedRuntime:
    """`turns` are those that were started, in order; `stopped` the ids of runs whose `stop` was called."""

    def __init__(
        self, *, gates: Iterable[str] = (), fail_with: BaseException | None = None, words: int | None = None
    ) -> None:
        self.gates = {name: Gate() for name in gates}
        self.fail_with = fail_with
        self.words = words
        self.turns: list[Turn] = []
        self.stopped: list[str] = []
        self.forgotten: list[str] = []
        self._texts: dict[str, list[str]] = {}

    async def prepare(self, services: RuntimeServices, /) -> None:
        """Nothing to load."""

    def start(self, turn: Turn, /) -> AgentRun:
        return _ScriptedRun(self, turn)

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState | None:  # noqa: ARG002
        texts = self._texts.get(thread_id)
        if texts is None:
            return None
        return {
            "values": {"messages": [{"type": "ai", "content": text} for text in texts]},
            "next": [],
            "tasks": [],
            "metadata": {},
            "created_at": None,
            "checkpoint": None,
            "parent_checkpoint": None,
            "interrupts": [],
        }

    async def forget(self, thread_id: str, /, *, caller: Caller) -> None:  # noqa: ARG002
        self.forgotten.append(thread_id)
        self._texts.pop(thread_id, None)

    async def reached(self, gate: str) -> None:
        await self.gates[gate].arrived.wait()

    def release(self, gate: str) -> None:
        self.gates[gate].open.set()

    def answered(self, thread_id: str, text: str) -> None:
        self._texts.setdefault(thread_id, []).append(text)


class _ScriptedRun:
    """One turn: start, a delta for each word, finish."""

    def __init__(self, runtime: ScriptedRuntime, turn: Turn) -> None:
        self._runtime = runtime
        self._turn = turn
        self._stop = asyncio.Event()

    async def stop(self) -> None:
        self._runtime.stopped.append(self._turn.run_id)
        self._stop.set()

    async def __aiter__(self) -> AsyncIterator[Frame]:
        self._runtime.turns.append(self._turn)
        text = self._turn.messages[-1].text if self._turn.messages else "go on"
        words = text.split(" ") if self._runtime.words is None else ["word"] * self._runtime.words
        model_run = f"model-{self._turn.run_id}"
        namespace = (f"model_request:{self._turn.run_id}",)

        def frame(**data: object) -> Frame:
            return Frame(
                method="messages",
                namespace=namespace,
                node="model",
                timestamp=int(time.time() * 1000),
                data={**data, "run_id": model_run},
            )

        yield frame(event="message-start", role="ai", id=f"lc_{model_run}")
        yield frame(event="content-block-start", index=0, content={"type": "text", "text": ""})
        for number, word in enumerate(words):
            await self._pass(f"word:{number}")
            if self._stop.is_set():
                return
            piece = word if number == len(words) - 1 else f"{word} "
            yield frame(event="content-block-delta", index=0, delta={"type": "text-delta", "text": piece})
        if self._runtime.fail_with is not None:
            raise self._runtime.fail_with
        yield frame(event="content-block-finish", index=0, content={"type": "text", "text": " ".join(words)})
        yield frame(event="message-finish", usage={"output_tokens": len(words)}, metadata={"finish_reason": "stop"})
        self._runtime.answered(self._turn.thread_id, " ".join(words))

    async def _pass(self, name: str) -> None:
        gate = self._runtime.gates.get(name)
        if gate is None:
            return
        gate.arrived.set()
        waits = {asyncio.create_task(gate.open.wait()), asyncio.create_task(self._stop.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
