"""Stored events as server-sent events. `data` was encoded when it was stored and is never parsed here (wire.md §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import orjson

from pizzabot_hookspecs.host import EventBatch
from pizzabot_hookspecs.storage_backends import StoredEvent

OPENING = b": open\n\n"
HEARTBEAT = b": heartbeat\n\n"
CHUNK_BYTES = 256 * 1024
"""About how much is written at once; a single larger frame goes out whole."""
GAP = "pizzabot.gap"
"""Name of the `custom` frame that says: what you asked for is gone, read the state again."""

_LINE_ENDS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""Python's line readers end a line at these; JSON has them in strings only, where an escape means the same."""


def chunks(batch: EventBatch, *, now_ms: int) -> Iterator[bytes]:
    """The batch's frames joined into pieces of about `CHUNK_BYTES`; a heartbeat for an empty batch."""
    pieces: list[bytes] = [gap_frame(batch.gap, now_ms=now_ms)] if batch.gap is not None else []
    size = 0
    for event in batch.events:
        piece = event_frame(event)
        pieces.append(piece)
        size += len(piece)
        if size >= CHUNK_BYTES:
            yield _joined(pieces)
            pieces, size = [], 0
    if pieces:
        yield _joined(pieces)
    elif not batch.events:
        yield HEARTBEAT


def event_frame(event: StoredEvent) -> bytes:
    """`event:`, `data:`, `id:` and the empty line."""
    return b"event: %s\ndata: %s\nid: %d\n\n" % (event.method.encode(), event_json(event), event.seq)


def event_json(event: StoredEvent) -> bytes:
    """The envelope of wire.md §3.2 around `event.data`, by concatenation."""
    params: dict[str, object] = {"namespace": event.namespace, "timestamp": event.timestamp}
    if event.node is not None:
        params["node"] = event.node
    envelope = {
        "type": "event",
        "event_id": event.event_id,
        "seq": event.seq,
        "method": event.method,
        "params": params,
    }
    data = event.data
    if b"\n" in data or b"\r" in data:  # pretty-printed by some storage: between tokens a space is as good
        data = data.replace(b"\r", b" ").replace(b"\n", b" ")
    return b'%s,"data":%s}}' % (orjson.dumps(envelope)[:-2], data)


def gap_frame(gap: Mapping[str, int], *, now_ms: int) -> bytes:
    """A `custom` frame without an SSE id, so that a reconnect does not take it for a place in the log (wire.md §0)."""
    return b"event: custom\ndata: %s\n\n" % gap_json(gap, now_ms=now_ms)


def gap_json(gap: Mapping[str, int], *, now_ms: int) -> bytes:
    earliest = gap.get("earliest", 0)
    envelope = {
        "type": "event",
        "event_id": f"synth:gap:{gap.get('requested', 0)}-{earliest}",
        "seq": max(earliest - 1, 0),
        "method": "custom",
        "params": {"namespace": [], "timestamp": now_ms, "data": {"name": GAP, "payload": dict(gap)}},
    }
    return orjson.dumps(envelope)


def named_frame(name: str, data: bytes) -> bytes:
    """An event without an id: there is nothing to go on from, a new connection begins with the whole again."""
    return _joined([b"event: %s\ndata: %s\n\n" % (name.encode(), data)])


def error_frame(code: str, detail: str) -> bytes:
    """What clients hear when a stream breaks after its headers; only their error callback sees it."""
    return b"data: %s\n\n" % orjson.dumps({"type": "error", "id": None, "error": code, "message": detail})


def _joined(pieces: list[bytes]) -> bytes:
    chunk = b"".join(pieces)
    for raw, escaped in _LINE_ENDS:
        if raw in chunk:
            chunk = chunk.replace(raw, escaped)
    return chunk
