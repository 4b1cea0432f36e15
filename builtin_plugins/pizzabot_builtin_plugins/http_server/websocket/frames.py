"""What the server sends over the socket: one JSON object in a text frame each. Events are those of the event stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pizzabot_builtin_plugins.http_server.frames import CHUNK_BYTES, event_json, gap_json
from pizzabot_builtin_plugins.http_server.json_bodies import encode
from pizzabot_hookspecs.host import EventBatch

PING = b'{"type":"ping"}'
PONG = b'{"type":"pong"}'


def event_messages(sub: int, batch: EventBatch, *, now_ms: int) -> Iterator[bytes]:
    """The batch as `events` messages of at most `CHUNK_BYTES` of events; a single larger event comes alone."""
    pieces = [] if batch.gap is None else [gap_json(batch.gap, now_ms=now_ms)]
    size = sum(map(len, pieces))
    for event in batch.events:
        piece = event_json(event)
        if pieces and size + len(piece) > CHUNK_BYTES:
            yield _events(sub, pieces)
            pieces, size = [], 0
        pieces.append(piece)
        size += len(piece)
    if pieces:
        yield _events(sub, pieces)


def _events(sub: int, pieces: Sequence[bytes]) -> bytes:
    return b'{"type":"events","sub":%d,"events":[%s]}' % (sub, b",".join(pieces))


def ready(identity: Mapping[str, Any], **facts: float) -> bytes:
    names = {"service": identity.get("service"), "protocolVersion": identity.get("protocolVersion")}
    return encode({"type": "ready", **names, **facts})


def subscribed(sub: int) -> bytes:
    return b'{"type":"subscribed","sub":%d}' % sub


def activity(sub: int, told: Mapping[str, Any]) -> bytes:
    return encode({"type": "activity", "sub": sub, **told})


def closed(sub: int, code: str, message: str) -> bytes:
    return encode({"type": "closed", "sub": sub, "code": code, "message": message})


def reply(thread: str, envelope: Mapping[str, Any]) -> bytes:
    return encode({"type": "reply", "thread": thread, "reply": envelope})


def error(code: str, message: str) -> bytes:
    return encode({"type": "error", "code": code, "message": message})
