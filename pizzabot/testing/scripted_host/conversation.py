"""One owner's thread in a scripted host: its log, its run, what was said, and the row that clients see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pizzabot.testing.scripted_host.log import Log
from pizzabot.testing.scripted_host.script import Run
from pizzabot_hookspecs.storage_backends import Thread, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue, ThreadState


@dataclass
class Conversation:
    """`created_at` is None while somebody only listens for a thread that is not there yet."""

    log: Log
    owner: str
    created_at: float | None = None
    title: str = "New conversation"
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, JsonValue] = field(default_factory=dict)
    run: Run | None = None
    keys: dict[str, str] = field(default_factory=dict)

    def row(self, *, waiting: bool) -> Thread:
        """`waiting`: something of the thread waits for a person."""
        created = self.created_at or 0.0
        return Thread(
            thread_id=self.log.thread_id,
            owner=self.owner,
            title=self.title,
            source="user",
            created_at=created,
            last_activity_at=self.log.events[-1].timestamp / 1000 if self.log.events else created,
            next_seq=self.log.last_seq + 1,
            status=self._status(waiting=waiting),
            metadata=self.metadata,
        )

    def state(self, checkpoint_id: str | None = None) -> ThreadState:
        """The newest state, named `checkpoint_id`."""
        said: dict[str, JsonValue] = {"messages": list(self.messages)} if self.messages else {}
        return {
            "values": {**self.values, **said},
            "next": [],
            "tasks": [],
            "metadata": {},
            "created_at": None,
            "checkpoint": {"thread_id": self.log.thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id},
            "parent_checkpoint": None,
            "interrupts": [],
        }

    def _status(self, *, waiting: bool) -> ThreadStatus:
        if self.run is not None and self.run.active:
            return ThreadStatus.BUSY
        if waiting:
            return ThreadStatus.INTERRUPTED
        return ThreadStatus.ERROR if self.run is not None and self.run.failed else ThreadStatus.IDLE
