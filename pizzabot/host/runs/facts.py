"""What the host tells of a run in its log: `custom` frames `pizzabot.<name>` at the root, version 1 (spec/12 §0).

The transcript is folded from them and from the runtime's frames. Stock SDKs do not subscribe to `custom`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pizzabot.host.runs.sources import SOURCES, sources_fact_of
from pizzabot.host.runs.terminal import Ending
from pizzabot.host.text import to_json
from pizzabot_hookspecs.agent_runtimes import ChosenModel
from pizzabot_hookspecs.interrupts import Interrupt, InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import NewEvent, Run
from pizzabot_hookspecs.wire import Message, Namespace

PREFIX = "pizzabot."
"""Of custom frames that the product writes; nobody else may."""
TURN = f"{PREFIX}turn"
HEAD = f"{PREFIX}head"
RUN = f"{PREFIX}run"
CONTEXT = f"{PREFIX}context"
CHANGES = f"{PREFIX}changes"
VERSION = 1


def fact(name: str, payload: Mapping[str, Any], *, at: int) -> NewEvent:
    """The event of a fact. `name` has the prefix; `at` is milliseconds."""
    data = to_json({"name": name, "payload": {"v": VERSION, **payload}})
    return NewEvent(method="custom", data=data, timestamp=at, name=name)


def message_json(message: Message) -> dict[str, Any]:
    return {"id": message.id, "role": message.role, "content": list(message.parts), "metadata": dict(message.metadata)}


class RunFacts:
    """The facts of one run. `see` follows its frames: what it began on, what it left, what its model calls cost."""

    def __init__(self, run: Run, *, now: Callable[[], int]) -> None:
        self._run = run
        self._now = now
        self._model: ChosenModel | None = None
        self._base: str | None = None
        self._end: str | None = None
        self._started_at: int | None = None
        self._tokens = dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 0)
        self._namespaces: dict[str, int] = {}
        self._context = 0
        self.turn_id = ""

    def begins(self, turn_id: str) -> NewEvent:
        """`pizzabot.run` of a run that begins, or that begins once more after a crash."""
        self.turn_id = turn_id
        self._started_at = self._now()
        return self._event(
            RUN, {"run_id": self._run.run_id, "turn_id": turn_id, "status": "running", "started_at": self._started_at}
        )

    def uses(self, model: ChosenModel) -> None:
        self._model = model

    def see(self, method: str, namespace: Namespace, data: Mapping[str, Any]) -> NewEvent | None:
        """Take note of a frame that goes into the log; what it tells: usage so far, the sources of a result."""
        if method == "checkpoints" and not namespace:
            self._end = str(data.get("id"))
            if self._base is None:
                self._base = str(data.get("parent_id") or self._end)
        elif method == "messages" and data.get("event") == "message-finish":
            return self._usage(namespace, data.get("usage"))
        elif method == "tools" and data.get("event") == "tool-finished":
            found = sources_fact_of(namespace, data, now_ms=self._now())
            return None if found is None else self._event(SOURCES, found)
        elif method == "custom":
            self._see_fact(data)
        return None

    def _see_fact(self, data: Mapping[str, Any]) -> None:
        """A fact of this run that stood in the log already, when it goes on after a crash."""
        payload = data.get("payload")
        if not isinstance(payload, Mapping):
            return
        if data.get("name") == RUN:
            self.turn_id = str(payload.get("turn_id"))
            self._started_at = self._started_at or payload.get("started_at")
        elif data.get("name") == f"{PREFIX}usage":
            self._tokens = {key: int(payload.get(key, 0)) for key in self._tokens}
            self._namespaces = dict(payload.get("namespaces") or {})
            self._context = int((payload.get("context") or {}).get("tokens", 0))

    def _usage(self, namespace: Namespace, usage: object) -> NewEvent | None:
        if not isinstance(usage, Mapping):
            return None
        counts = {key: _count(usage.get(key)) for key in self._tokens}
        counts["total_tokens"] = counts["total_tokens"] or counts["input_tokens"] + counts["output_tokens"]
        for key, count in counts.items():
            self._tokens[key] += count
        graph = "|".join(namespace[:-1])
        self._namespaces[graph] = self._namespaces.get(graph, 0) + counts["total_tokens"]
        if not graph:
            self._context = counts["total_tokens"]
        model = self._model
        window = None if model is None else model.descriptor.context_window
        payload: dict[str, Any] = {"run_id": self._run.run_id, "model": None if model is None else model.id}
        payload |= self._tokens
        payload |= {"namespaces": self._namespaces, "context": {"tokens": self._context, "max": window}}
        return self._event(f"{PREFIX}usage", payload)

    def ends(self, ending: Ending) -> NewEvent:
        """`pizzabot.run` right before the terminal frame: how it ended, and where its turn can be branched from."""
        payload: dict[str, Any] = {
            "run_id": self._run.run_id,
            "turn_id": self.turn_id,
            "status": ending.status.value,
            "started_at": self._started_at,
            "ended_at": self._now(),
            "code": ending.data.get("code"),
            "model": None if self._model is None else self._model.id,
            "base": self._base,
            "end": self._end,
        }
        return self._event(RUN, {key: value for key, value in payload.items() if value is not None})

    def changed(self, changes: Mapping[str, Any]) -> NewEvent:
        """`pizzabot.changes`: what the run did to files, right before how it ended."""
        return self._event(CHANGES, {"run_id": self._run.run_id, "turn_id": self.turn_id, **changes})

    def turn(self, turn_id: str, *, parent_id: str | None, source: str, message: Message | None) -> NewEvent:
        payload = {
            "turn_id": turn_id,
            "parent_id": parent_id,
            "source": source,
            "message": None if message is None else message_json(message),
            "run_id": self._run.run_id,
        }
        return self._event(TURN, payload)

    def asked(self, interrupt: NewInterrupt) -> NewEvent:
        payload = {
            "interrupt_id": interrupt.interrupt_id,
            "kind": interrupt.kind.value,
            "state": InterruptState.OPEN.value,
            "payload": interrupt.payload,
            "run_id": self._run.run_id,
            "at": self._now(),
        }
        return self._event(f"{PREFIX}request", payload)

    def settled(self, interrupt: Interrupt, *, state: InterruptState | None = None) -> NewEvent:
        """`pizzabot.request` of one that was decided or withdrawn; `state` where the row does not say it yet."""
        at = None if interrupt.decided_at is None else int(interrupt.decided_at * 1000)
        payload = {
            "interrupt_id": interrupt.interrupt_id,
            "kind": interrupt.kind.value,
            "state": (state or interrupt.state).value,
            "by": interrupt.decided_by,
            "at": at or self._now(),
            "answer": interrupt.answer,
            "run_id": self._run.run_id,
        }
        return self._event(f"{PREFIX}request", {key: value for key, value in payload.items() if value is not None})

    def _event(self, name: str, payload: Mapping[str, Any]) -> NewEvent:
        return fact(name, payload, at=self._now())


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
