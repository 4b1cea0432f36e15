"""Which turn a run is of, and on which branch: decided when it begins, from its row and the thread's facts.

A turn is what a person said and what came of it; runs that go on with answers are of the turn that asked. A new turn
stands below the turn that the thread is at, unless its row says another parent (`branch_from`, a fork by checkpoint).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pizzabot.host.runs.facts import HEAD, TURN
from pizzabot.host.runs.requests import messages_of
from pizzabot_hookspecs import SYSTEM
from pizzabot_hookspecs.storage_backends import Run, Storage, StoredEvent
from pizzabot_hookspecs.wire import Message

_FIRST_EVENTS = 16
"""Of a run, among which the fact of its turn is."""


@dataclass(frozen=True, kw_only=True)
class RunTurn:
    """`new`: the run begins the turn. Then `message` is what was said; of several messages, the parts of all."""

    turn_id: str
    new: bool
    parent_id: str | None = None
    source: str = "user"
    message: Message | None = None


def payload_of(event: StoredEvent | None) -> Mapping[str, Any]:
    """The payload of a fact's event; empty where there is none."""
    found = json.loads(event.data).get("payload") if event is not None else None
    return found if isinstance(found, Mapping) else {}


async def head_of(storage: Storage, thread_id: str) -> str | None:
    """The turn that the thread is at: the one that began last, or that a person went to since."""
    found = payload_of(await storage.latest_fact(thread_id, (TURN, HEAD), caller=SYSTEM)).get("turn_id")
    return found if isinstance(found, str) else None


async def turn_of(storage: Storage, run: Run) -> RunTurn:
    """The turn of a run that begins."""
    options = run.options
    if "resumes" in options:
        head = await head_of(storage, run.thread_id)
        return RunTurn(turn_id=head or f"run:{options['resumes']}", new=False)
    planned: Mapping[str, Any] = options.get("turn") or {}
    messages = messages_of(run.input)
    head = await head_of(storage, run.thread_id)
    if not messages and not planned:
        if head is not None:
            return RunTurn(turn_id=head, new=False)  # it goes on without a word
        return RunTurn(turn_id=f"run:{run.run_id}", new=True, source="api")
    message = _as_one(messages)
    shown = Message.from_json(planned["message"]) if planned.get("message") else message
    return RunTurn(
        turn_id=str(planned.get("turn_id") or (message.id if message is not None else f"run:{run.run_id}")),
        new=True,
        parent_id=planned.get("parent_id", head),
        source=str(planned.get("source") or "user"),
        message=shown,
    )


def _as_one(messages: Sequence[Message]) -> Message | None:
    """What was said at once, under the id of the last message; what the others carry of metadata is not shown."""
    if not messages:
        return None
    return replace(messages[-1], parts=tuple(part for message in messages for part in message.parts))


async def first_fact_of(storage: Storage, run: Run | None) -> Mapping[str, Any]:
    """The `pizzabot.turn` payload of the turn that `run` belongs to; empty where there is none."""
    seen: set[str] = set()
    while run is not None and run.first_seq is not None and run.run_id not in seen:
        seen.add(run.run_id)
        for event in await storage.events(run.thread_id, after=run.first_seq - 1, limit=_FIRST_EVENTS, caller=SYSTEM):
            if event.name == TURN and event.run_id == run.run_id:
                return payload_of(event)
        asked = run.options.get("resumes")
        run = await storage.run(asked, caller=SYSTEM) if isinstance(asked, str) else None
    return {}
