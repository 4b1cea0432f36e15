"""A scripted run: the frames of one text turn, in order, until it ends or is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pizzabot.testing.scripted_host.log import Log, clean


@dataclass
class Run:
    """A run and the task that plays it. `ending` is the code of its last frame when it is cut short."""

    run_id: str
    text: str
    task: asyncio.Task[None] | None = None
    ending: Literal["CANCELLED", "SUPERSEDED"] = "CANCELLED"
    released: asyncio.Event = field(default_factory=asyncio.Event)
    failed: bool = False

    @property
    def active(self) -> bool:
        return self.task is not None and not self.task.done()

    async def cut_short(self, ending: Literal["CANCELLED", "SUPERSEDED"]) -> None:
        """Tell the run to stop. The pause lets one that has only just begun write its first frame."""
        await asyncio.sleep(0)
        if self.task is not None:
            self.ending = ending
            self.task.cancel()

    def when_ended(self, tell: Callable[[], None]) -> None:
        if self.task is not None:
            self.task.add_done_callback(lambda _: tell())

    async def ended(self) -> None:
        if self.task is not None:
            await asyncio.wait({self.task})


class Speaker:
    """Writes the frames of one run and keeps the messages that its state shows."""

    def __init__(self, log: Log, run: Run, messages: list[dict[str, Any]], clock: Callable[[], float]) -> None:
        self._log, self._run, self._messages, self._clock = log, run, messages, clock
        self._said = ""
        self._open = False

    def root(self, event: str, **facts: str) -> None:
        self._write("lifecycle", {"event": event, **facts})

    def begin(self) -> None:
        self._open = True
        self._message({"event": "message-start", "role": "ai", "id": f"message_{self._run.run_id}"})
        self._message({"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}})

    def delta(self, text: str) -> None:
        self._said += text
        delta = {"type": "text-delta", "text": text}
        self._message({"event": "content-block-delta", "index": 0, "delta": delta})

    def finish(self) -> None:
        content = {"type": "text", "text": self._said}
        self._message({"event": "content-block-finish", "index": 0, "content": content})
        self._message({"event": "message-finish", "usage": None, "metadata": {"finish_reason": "stop"}})
        self._keep()

    def cut_off(self) -> None:
        if self._open:
            self._message({"event": "error", "message": "aborted", "code": "aborted"})
            self._keep()

    def _keep(self) -> None:
        self._open = False
        run_id = self._run.run_id
        self._messages.append({"type": "human", "id": f"human_{run_id}", "content": clean(self._run.text)})
        self._messages.append({"type": "ai", "id": f"message_{run_id}", "content": clean(self._said)})
        self._write("values", {"messages": list(self._messages)})

    def _message(self, data: dict[str, Any]) -> None:
        facts = {**data, "run_id": f"llm_{self._run.run_id}"}
        self._write("messages", facts, namespace=(f"model_request:{self._run.run_id}",), node="model")

    def _write(
        self, method: str, data: dict[str, Any], *, namespace: tuple[str, ...] = (), node: str | None = None
    ) -> None:
        now = int(self._clock() * 1000)
        self._log.append(method, data, timestamp=now, namespace=namespace, node=node, run_id=self._run.run_id)


def begin(log: Log, run: Run, messages: list[dict[str, Any]], clock: Callable[[], float]) -> None:
    """Start the run behind the caller. Its task always gets as far as its first frame, so it always has a last one."""
    say = Speaker(log, run, messages, clock)
    log.latest_run_seq = log.last_seq + 1
    run.task = asyncio.create_task(_play(say, run))
    run.task.add_done_callback(lambda _: log.changes.notify())


async def _play(say: Speaker, run: Run) -> None:
    say.root("running", graph_name="scripted")
    try:
        if run.text == "fail":
            run.failed = True
            say.root("failed", error="the script says so", code="GENERAL")
            return
        await _answer(say, run)
        say.root("completed")
    except asyncio.CancelledError:
        say.cut_off()
        say.root("completed" if run.ending == "CANCELLED" else "interrupted", code=run.ending)


async def _answer(say: Speaker, run: Run) -> None:
    words = run.text.split(" ")
    say.begin()
    say.delta(words[0])
    if words[0] == "hold":
        await run.released.wait()
    for word in words[1:]:
        await asyncio.sleep(0)
        say.delta(f" {word}")
    say.finish()
