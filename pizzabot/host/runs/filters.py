"""What a connection wants of a thread's log, and in which form: map to the view first, then filter (wire.md §0, §3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pizzabot_hookspecs.host import ClientView, EventFilter
from pizzabot_hookspecs.storage_backends import StoredEvent
from pizzabot_hookspecs.wire import Namespace

CHANNELS = frozenset({"values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"})
_NODE_SCOPED = frozenset({"messages", "tools"})


def channel_of(event: StoredEvent) -> str:
    """The channel an event belongs to; `custom` for every custom event, named or not."""
    return "input" if event.method.startswith("input.") else event.method


def view_of(event: StoredEvent, view: ClientView) -> StoredEvent:
    """The event in the form of `view`. Stored is the JS form, a segment per node; Python drops the node's own."""
    if view is ClientView.PYTHON and event.namespace and event.method in _NODE_SCOPED:
        return replace(event, namespace=event.namespace[:-1])
    return event


def matches(event: StoredEvent, wanted: EventFilter) -> bool:
    """Whether `event`, already in the view, is wanted: exactly the client's own rule."""
    channel = channel_of(event)
    if channel not in wanted.channels and not (
        channel == "custom" and event.name is not None and f"custom:{event.name}" in wanted.channels
    ):
        return False
    if channel not in CHANNELS:
        return False
    return not wanted.namespaces or any(_below(event.namespace, prefix, wanted.depth) for prefix in wanted.namespaces)


def select(events: Sequence[StoredEvent], wanted: EventFilter) -> list[StoredEvent]:
    """The wanted events of a batch, in the connection's view, in order."""
    if wanted.view is ClientView.JS:
        return [event for event in events if matches(event, wanted)]
    return [seen for event in events if matches(seen := view_of(event, wanted.view), wanted)]


def _below(namespace: Namespace, prefix: Namespace, depth: int | None) -> bool:
    if len(prefix) > len(namespace):
        return False
    if depth is not None and len(namespace) - len(prefix) > depth:
        return False
    return all(
        part == wanted or (":" not in wanted and part.split(":", 1)[0] == wanted)
        for part, wanted in zip(namespace, prefix, strict=False)
    )
