"""The thread's own facts: into the log without a run, and to whoever watches (spec/12 §0)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pizzabot.host.runs.facts import HEAD, PREFIX, fact
from pizzabot.host.runs.hub import Hub
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import NewEvent, Storage, StoredEvent


class ThreadLog:
    def __init__(self, storage: Storage, hub: Hub, *, clock: Callable[[], float]) -> None:
        self._storage = storage
        self._hub = hub
        self._clock = clock

    async def tell(self, thread_id: str, facts: Sequence[tuple[str, Mapping[str, Any]]], /, *, caller: Caller) -> None:
        """Append facts, names without prefix, in one transaction. Raises `NotFound` `no_such_thread`."""
        at = int(self._clock() * 1000)
        events = [fact(f"{PREFIX}{name}", payload, at=at) for name, payload in facts]
        if not events:
            return
        first = await self._storage.append_facts(thread_id, events, caller=caller)
        stored = [_stored(thread_id, seq, event) for seq, event in enumerate(events, start=first)]
        self._hub.publish(thread_id, stored, owner=caller.owner)

    async def moved(self, thread_id: str, turn_id: str, end: str, /, *, caller: Caller) -> None:
        """The thread is at this turn, and goes on from the checkpoint `end`."""
        await self.tell(thread_id, [(HEAD.removeprefix(PREFIX), {"turn_id": turn_id, "end": end})], caller=caller)


def _stored(thread_id: str, seq: int, event: NewEvent) -> StoredEvent:
    return StoredEvent(
        seq=seq,
        thread_id=thread_id,
        run_id=None,
        method=event.method,
        data=event.data,
        timestamp=event.timestamp,
        name=event.name,
    )


def compaction_setting(thread_id: str) -> str:
    """Where the answer to the thread's last compaction with a key is kept; it goes with the thread."""
    return f"compacted:{thread_id}"
