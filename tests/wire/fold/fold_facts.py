"""The product's facts, put into a log that was recorded without them: where and what, see spec/12 §0.

A log that has facts of its own is left as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pizzabot_hookspecs.storage_backends import Run, RunStatus, StoredEvent

MODEL = "scripted:scripted-1"


@dataclass(frozen=True)
class Told:
    """What a scene knows and its log does not: `parents` by message id (an edit), `crashes` as the last seq of a run
    before one, by run id, `decided` as (interrupt id, answer) before the run that goes on."""

    parents: dict[str, str | None] = field(default_factory=dict)
    crashes: dict[str, int] = field(default_factory=dict)
    decided: dict[str, list[tuple[str, Any]]] = field(default_factory=dict)


def with_facts(events: Sequence[StoredEvent], runs: Sequence[Run], told: Told) -> list[StoredEvent]:
    """The log with its facts, numbered anew."""
    if any(event.name == "pizzabot.turn" for event in events):
        return list(events)
    writer = _Writer({run.run_id: run for run in runs}, told)
    for event in events:
        writer.write(event)
    return writer.log


class _Writer:
    def __init__(self, runs: dict[str, Run], told: Told) -> None:
        self.log: list[StoredEvent] = []
        self._runs = runs
        self._told = told
        self._head: str | None = None
        self._turns: dict[str, str] = {}
        self._calls: dict[str, int] = {}
        self._begun: set[str] = set()
        self._crashed: set[str] = set()
        self._pending: list[dict[str, Any]] = []

    def write(self, event: StoredEvent) -> None:
        run = self._runs[event.run_id or ""]
        data = json.loads(event.data)
        begins = run.run_id not in self._turns and run.run_id not in self._begun
        if begins:
            for interrupt_id, answer in self._told.decided.get(run.run_id, ()):
                more = {"answer": answer, "by": "local", "at": event.timestamp}
                self._fact(event, "request", self._request(interrupt_id, "decided", run, **more), run_less=True)
        if event.method == "lifecycle" and not event.namespace and data["event"] != "running":
            self._fact(event, "run", self._run(run, data, event))
        self._put(event)
        if begins:
            self._begun.add(run.run_id)
        if run.run_id not in self._turns:
            if not begins or "resumes" not in run.options:
                self._begin(event, run, resumed=not begins)
        elif event.seq > self._told.crashes.get(run.run_id, event.seq) and run.run_id not in self._crashed:
            self._crashed.add(run.run_id)
            self._fact(event, "run", self._running(event, run))
        if event.method == "input.requested":
            more = {"payload": data["payload"], "at": event.timestamp}
            self._fact(event, "request", self._request(data["interrupt_id"], "open", run, **more, kind=data["kind"]))
        if event.method == "messages" and data["event"] == "message-finish":
            self._usage(event, run)

    def _begin(self, event: StoredEvent, run: Run, *, resumed: bool) -> None:
        if resumed:
            self._turns[run.run_id] = self._head or ""
        else:
            message = run.input["messages"][-1]
            turn_id = message["id"]
            parent = self._told.parents.get(turn_id, self._head)
            self._turns[run.run_id] = self._head = turn_id
            shown = {"id": turn_id, "role": "user", "content": message["parts"], "metadata": {}}
            self._fact(
                event,
                "turn",
                {"turn_id": turn_id, "parent_id": parent, "source": "user", "message": shown, "run_id": run.run_id}
                | {"base": None},
            )
        self._fact(event, "run", self._running(event, run))

    def _running(self, event: StoredEvent, run: Run) -> dict[str, Any]:
        told = {"run_id": run.run_id, "turn_id": self._turns[run.run_id], "status": "running", "model": MODEL}
        return {**told, "started_at": event.timestamp}

    def _run(self, run: Run, data: dict[str, Any], event: StoredEvent) -> dict[str, Any]:
        told = {"run_id": run.run_id, "turn_id": self._turns[run.run_id], "status": run.status.value}
        code = data.get("code") if run.status is not RunStatus.SUCCESS else None
        return {**told, "ended_at": event.timestamp, "end": f"after-{run.run_id}"} | ({"code": code} if code else {})

    def _request(self, interrupt_id: str, state: str, run: Run, **more: Any) -> dict[str, Any]:
        return {"interrupt_id": interrupt_id, "state": state, "run_id": run.run_id, "kind": "approval", **more}

    def _usage(self, event: StoredEvent, run: Run) -> None:
        calls = self._calls[run.run_id] = self._calls.get(run.run_id, 0) + 1
        tokens = {"input_tokens": 10 * calls, "output_tokens": 5 * calls, "total_tokens": 15 * calls}
        spent = {"model": MODEL, **tokens, "namespaces": {"": 15 * calls}, "context": {"tokens": 10, "max": None}}
        self._fact(event, "usage", {"run_id": run.run_id, **spent})

    def _fact(self, near: StoredEvent, name: str, payload: dict[str, Any], *, run_less: bool = False) -> None:
        self._put(
            replace(
                near,
                run_id=None if run_less else near.run_id,
                method="custom",
                namespace=(),
                node=None,
                name=f"pizzabot.{name}",
                data=json.dumps({"name": f"pizzabot.{name}", "payload": {"v": 1, **payload}}).encode(),
            )
        )

    def _put(self, event: StoredEvent) -> None:
        self.log.append(replace(event, seq=len(self.log) + 1))


def frame_of(event: StoredEvent) -> dict[str, Any]:
    """The frame on the wire."""
    params = {"namespace": list(event.namespace), "timestamp": event.timestamp, "data": json.loads(event.data)}
    return {
        "type": "event",
        "event_id": event.event_id,
        "seq": event.seq,
        "method": event.method,
        "params": params | ({"node": event.node} if event.node else {}),
    }


def event_of(frame: dict[str, Any]) -> StoredEvent:
    """The stored event of a frame."""
    params = frame["params"]
    run_id = frame["event_id"].split(":")[1]
    data = params["data"]
    return StoredEvent(
        seq=frame["seq"],
        thread_id="t",
        run_id=None if run_id == "thread" else run_id,
        method=frame["method"],
        data=json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(),
        timestamp=params["timestamp"],
        namespace=tuple(params["namespace"]),
        node=params.get("node"),
        name=data.get("name") if frame["method"] == "custom" else None,
    )


def without_bulk(events: Iterable[StoredEvent]) -> list[StoredEvent]:
    """State and checkpoints without what is in them: a transcript does not read them, and they are large."""
    bulky = ("values", "checkpoints")
    return [replace(event, data=b"{}") if event.method in bulky else event for event in events]
