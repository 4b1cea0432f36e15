"""What the server says, as lines: answers, refusals, frames of the log, and what a subscription has to say of itself.

{"id": 1, "result": …}                                  the answer
{"id": 1, "error": {"code": …, "detail": …, "fields": …}}  it is refused
{"id": 1, "frame": {"type": "event", "seq": 7, …}}      an event of a subscription
{"id": 1, "activity": {"threads": …}}                   what has changed on all threads, of such a subscription
{"id": 1, "silence": true}                              nothing has happened for a while
{"id": 1, "end": "unsubscribed"}                        the last line of a subscription, see `End`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from pizzabot_hookspecs import PizzabotError
from pizzabot_hookspecs.host import Activity, EventBatch
from pizzabot_hookspecs.storage_backends import StoredEvent
from pizzabot_lines.requests import RequestId
from pizzabot_lines.rows import activity_row

GAP = "pizzabot.gap"
"""Name of the frame that says: what you asked for is gone, read the state again."""


class End(StrEnum):
    """Why a subscription is over. The events are not: subscribe again with `since`, the last `seq` you have seen."""

    CLOSED = "closed"  # the thread was deleted, or the host stops
    UNSUBSCRIBED = "unsubscribed"
    SLOW = "slow"  # the client did not read
    FAILED = "failed"


def line(request_id: RequestId | None, **what: object) -> bytes:
    """JSON in ASCII: whatever is in the texts, a line has one end."""
    return json.dumps({"id": request_id, **what}, separators=(",", ":"), default=_plain).encode("ascii") + b"\n"


def refusal(request_id: RequestId | None, error: PizzabotError, redact: Callable[[str], str]) -> bytes:
    """`redact` hides secrets: an error may quote what a provider has said."""
    fields = {name: redact(problem) for name, problem in error.fields.items()}
    return line(request_id, error={"code": error.code, "detail": redact(error.detail), "fields": fields})


def batch_lines(request_id: RequestId, batch: EventBatch, *, now_ms: int) -> Iterator[bytes]:
    """The lines of a batch; one that says `silence` for an empty one."""
    if batch.gap is not None:
        yield line(request_id, frame=_gap_frame(batch.gap, now_ms=now_ms))
    for event in batch.events:
        yield _event_line(request_id, event)
    if batch.gap is None and not batch.events:
        yield line(request_id, silence=True)


def activity_lines(request_id: RequestId, told: Activity) -> Iterator[bytes]:
    """One line: rows as the answers have them, and `inbox` where it changed; or `silence`."""
    row = activity_row(told)
    yield line(request_id, silence=True) if row is None else line(request_id, activity=row)


def _event_line(request_id: RequestId, event: StoredEvent) -> bytes:
    """`data` was encoded when it was stored: it is put into its envelope as it is, not parsed and written again."""
    params: dict[str, object] = {"namespace": event.namespace, "timestamp": event.timestamp}
    if event.node is not None:
        params["node"] = event.node
    frame = {
        "type": "event",
        "event_id": event.event_id,
        "seq": event.seq,
        "method": event.method,
        "params": params,
    }
    data = event.data.replace(b"\r", b" ").replace(b"\n", b" ")  # outside of strings, where JSON may have them
    return line(request_id, frame=frame)[: -len(b"}}}\n")] + b',"data":' + data + b"}}}\n"


def _gap_frame(gap: Mapping[str, int], *, now_ms: int) -> dict[str, object]:
    return {
        "type": "event",
        "event_id": f"synth:gap:{gap['requested']}-{gap['earliest']}",
        "seq": gap["earliest"] - 1,
        "method": "custom",
        "params": {"namespace": [], "timestamp": now_ms, "data": {"name": GAP, "payload": dict(gap)}},
    }


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")
