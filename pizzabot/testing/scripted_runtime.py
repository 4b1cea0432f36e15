"""`ScriptedRuntime`: an agent runtime without a graph and without a model, for tests and benchmarks of everything else.

It echoes the last message word by word, unless the message is one of these:

    approve a,b     asks for an approval of each of the tools a and b, and waits
    question text   asks the person, and waits
    tool a          calls the unrepeatable tool a: announced by an intent, run, closed

`gates` hold a turn at a named step until the test lets it go, so that no test sleeps: `await
runtime.reached("word:1")`, then `runtime.release("word:1")`. Steps: `word:<n>`, `tool:<name>` (announced, not run),
`ran:<name>` (run, not closed). What a turn asked for is kept in `memory`, which a test hands to the next runtime to
play a restart.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.agent_runtimes import AgentRun, RuntimeServices, Turn
from pizzabot_hookspecs.wire import Frame, FrameMethod, ThreadState


@dataclass
class ScriptedMemory:
    """What survives a process, as checkpoints do: texts and open questions by thread, results by call id."""

    texts: dict[str, list[str]] = field(default_factory=dict)
    asked: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)


class Gate:
    """A point where a turn waits: `arrived` is set by the turn, `open` by the test."""

    def __init__(self) -> None:
        self.arrived = asyncio.Event()
        self.open = asyncio.Event()


class ScriptedRuntime:
    """`turns` were started, in order; `executed` names the tools that ran; `stopped` holds ids of runs told to stop."""

    def __init__(
        self,
        *,
        gates: Iterable[str] = (),
        fail_with: BaseException | None = None,
        words: int | None = None,
        memory: ScriptedMemory | None = None,
    ) -> None:
        self.gates = {name: Gate() for name in gates}
        self.fail_with = fail_with
        self.words = words
        self.memory = memory or ScriptedMemory()
        self.turns: list[Turn] = []
        self.stopped: list[str] = []
        self.forgotten: list[str] = []
        self.executed: list[str] = []

    async def prepare(self, services: RuntimeServices, /) -> None:
        """Nothing to load."""

    def start(self, turn: Turn, /) -> AgentRun:
        return _ScriptedRun(self, turn)

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState | None:  # noqa: ARG002
        texts = self.memory.texts.get(thread_id)
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
            "interrupts": [
                {"id": name, "value": value} for name, value in self.memory.asked.get(thread_id, {}).items()
            ],
        }

    async def settled_calls(self, thread_id: str, call_ids: Sequence[str], /, *, caller: Caller) -> frozenset[str]:  # noqa: ARG002
        return frozenset(call_id for call_id in call_ids if call_id in self.memory.results)

    async def forget(self, thread_id: str, /, *, caller: Caller) -> None:  # noqa: ARG002
        self.forgotten.append(thread_id)
        self.memory.texts.pop(thread_id, None)
        self.memory.asked.pop(thread_id, None)

    async def reached(self, gate: str) -> None:
        await self.gates[gate].arrived.wait()

    def release(self, gate: str) -> None:
        self.gates[gate].open.set()

    def answered(self, thread_id: str, text: str) -> None:
        self.memory.texts.setdefault(thread_id, []).append(text)


class _ScriptedRun:
    """One turn."""

    def __init__(self, runtime: ScriptedRuntime, turn: Turn) -> None:
        self._runtime = runtime
        self._turn = turn
        self._stop = asyncio.Event()
        self._asked = runtime.memory.asked.setdefault(turn.thread_id, {})

    async def stop(self) -> None:
        self._runtime.stopped.append(self._turn.run_id)
        self._asked.clear()  # a stop leaves no call open, those that a person was asked about neither
        self._stop.set()

    async def __aiter__(self) -> AsyncIterator[Frame]:
        self._runtime.turns.append(self._turn)
        if self._turn.settle:
            self._asked.clear()
            return
        text = self._turn.messages[-1].text if self._turn.messages else "go on"
        verb, _, rest = text.partition(" ")
        if self._turn.answers:
            frames = self._after_answers()
        elif verb == "approve":
            frames = self._ask([(f"{self._turn.run_id}-{name}", _approval(name)) for name in rest.split(",")])
        elif verb == "question":
            frames = self._ask([(f"{self._turn.run_id}-question", {"kind": "input", "question": rest})])
        elif verb == "tool":
            frames = self._call(rest)
        else:
            frames = self._say(text)
        async for frame in frames:
            yield frame

    async def _say(self, text: str) -> AsyncIterator[Frame]:
        words = text.split(" ") if self._runtime.words is None else ["word"] * self._runtime.words
        yield self._message(event="message-start", role="ai", id=f"lc_model-{self._turn.run_id}")
        yield self._message(event="content-block-start", index=0, content={"type": "text", "text": ""})
        for number, word in enumerate(words):
            await self._pass(f"word:{number}")
            if self._stop.is_set():
                return
            piece = word if number == len(words) - 1 else f"{word} "
            yield self._message(event="content-block-delta", index=0, delta={"type": "text-delta", "text": piece})
        if self._runtime.fail_with is not None:
            raise self._runtime.fail_with
        yield self._message(event="content-block-finish", index=0, content={"type": "text", "text": " ".join(words)})
        yield self._message(
            event="message-finish", usage={"output_tokens": len(words)}, metadata={"finish_reason": "stop"}
        )
        self._runtime.answered(self._turn.thread_id, " ".join(words))

    async def _ask(self, questions: Sequence[tuple[str, dict[str, Any]]]) -> AsyncIterator[Frame]:
        self._asked.update(questions)
        for frame in self._open_questions():
            yield frame

    def _open_questions(self) -> list[Frame]:
        return [
            self._frame(
                "input.requested", (), interrupt_id=interrupt_id, kind=asked["kind"], payload=asked, value=asked
            )
            for interrupt_id, asked in self._asked.items()
        ]

    async def _after_answers(self) -> AsyncIterator[Frame]:
        """Tools that were allowed run once; what is still open is asked again, as LangGraph does."""
        for interrupt_id, answer in self._turn.answers.items():
            asked = self._asked.pop(interrupt_id, None)
            if asked is None or asked["kind"] != "approval":
                continue
            if _allows(answer):
                async for frame in self._run_tool(asked["action_requests"][0]["name"], interrupt_id):
                    yield frame
        for frame in self._open_questions():
            yield frame
        if not self._asked:
            async for frame in self._say("done"):
                yield frame

    async def _call(self, name: str) -> AsyncIterator[Frame]:
        call_id = f"call-{name}"
        if call_id in self._turn.skip:
            self._runtime.memory.results[call_id] = self._turn.skip[call_id]
        elif call_id not in self._runtime.memory.results:
            async for frame in self._run_tool(name, call_id):
                yield frame
        if not self._stop.is_set():
            async for frame in self._say(f"{name} done"):
                yield frame

    async def _run_tool(self, name: str, call_id: str) -> AsyncIterator[Frame]:
        yield self._frame("tools", (f"tools:{call_id}",), event="tool-started", tool_call_id=call_id, tool_name=name)
        await self._turn.intents.open(call_id, tool=name, namespace=(f"tools:{call_id}",))
        await self._pass(f"tool:{name}")
        if self._stop.is_set():
            await self._turn.intents.close(call_id)
            return
        self._runtime.executed.append(name)
        await self._pass(f"ran:{name}")
        self._runtime.memory.results[call_id] = "ok"
        await self._turn.intents.close(call_id)
        yield self._frame("tools", (f"tools:{call_id}",), event="tool-finished", tool_call_id=call_id, output="ok")

    def _message(self, **data: Any) -> Frame:
        namespace = (f"model_request:{self._turn.run_id}",)
        return self._frame("messages", namespace, node="model", **data, run_id=f"model-{self._turn.run_id}")

    def _frame(self, method: FrameMethod, namespace: tuple[str, ...], *, node: str | None = None, **data: Any) -> Frame:
        now = int(time.time() * 1000)
        return Frame(method=method, namespace=namespace, node=node, timestamp=now, data=data)

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


def _approval(name: str) -> dict[str, Any]:
    action = {"name": name, "args": {"to": "a"}, "description": f"call {name}"}
    review = {"action_name": name, "allowed_decisions": ["approve", "edit", "reject", "respond"]}
    return {"kind": "approval", "action_requests": [action], "review_configs": [review]}


def _allows(answer: Any) -> bool:
    return answer["decisions"][0]["type"] in ("approve", "edit")
