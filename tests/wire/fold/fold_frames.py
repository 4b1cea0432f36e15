"""Stored events as the frames of a vector, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pizzabot_hookspecs.storage_backends import StoredEvent


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
