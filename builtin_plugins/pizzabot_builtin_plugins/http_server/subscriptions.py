"""What a client asks of an event stream: the body of `POST /threads/:id/stream/events`, checked (wire.md §3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.host import ClientView, EventFilter

CHANNELS = frozenset(
    {"values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "tasks", "custom"},
)
MAX_CHANNELS = 64
MAX_NAMESPACES = 256
MAX_SEGMENTS = 32
MAX_CHARACTERS = 256
"""Of a segment or of a custom channel's name."""
MAX_SEQ = 2**53 - 1
"""What JavaScript can count to."""

_PYTHON_SDK = "langgraph-sdk-py/"


@dataclass(frozen=True, kw_only=True)
class Subscription:
    filter: EventFilter
    since: int | None


def read_subscription(body: object, *, last_event_id: str | None, user_agent: str | None) -> Subscription:
    """Raises `InvalidRequest` `invalid_subscription`, with the field. Keys that are not known are ignored."""
    if not isinstance(body, dict):
        raise _refused("body", "must be a JSON object with `channels`")
    event_filter = EventFilter(
        channels=_channels(body.get("channels")),
        namespaces=_namespaces(body.get("namespaces")),
        depth=_count(body, "depth"),
        view=view_of(user_agent),
    )
    since = _cursor(body)
    return Subscription(filter=event_filter, since=_header_cursor(last_event_id) if since is None else since)


def view_of(user_agent: str | None) -> ClientView:
    """The stock Python SDK reads the root's own frames at `[]`, everyone else in the JS form (wire.md §0)."""
    return ClientView.PYTHON if (user_agent or "").startswith(_PYTHON_SDK) else ClientView.JS


def _channels(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not value or len(value) > MAX_CHANNELS:
        raise _refused("channels", f"must be a list of 1 to {MAX_CHANNELS} channels")
    for channel in value:
        known = isinstance(channel, str) and (channel in CHANNELS or _is_custom(channel))
        if not known:
            valid = ", ".join(sorted(CHANNELS))
            raise _refused("channels", f"has no channel {str(channel)[:80]!r}; valid are {valid} and custom:<name>")
    return frozenset(value)


def _is_custom(channel: str) -> bool:
    return channel.startswith("custom:") and len("custom:") < len(channel) <= MAX_CHARACTERS


def _namespaces(value: object) -> tuple[tuple[str, ...], ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_NAMESPACES or not all(_is_namespace(item) for item in value):
        limits = f"at most {MAX_NAMESPACES} of them, {MAX_SEGMENTS} segments, {MAX_CHARACTERS} characters a segment"
        raise _refused("namespaces", f"must be a list of lists of strings; {limits}")
    return tuple(tuple(item) for item in value)


def _is_namespace(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MAX_SEGMENTS
        and all(isinstance(segment, str) and len(segment) <= MAX_CHARACTERS for segment in value)
    )


def _cursor(body: Mapping[str, object]) -> int | None:
    return None if _is_integer(body.get("since"), -1) else _count(body, "since")


def _is_integer(value: object, number: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value == number


def _count(body: Mapping[str, object], key: str) -> int | None:
    value = body.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SEQ:
        raise _refused(key, f"must be an integer from 0 to {MAX_SEQ}")
    return value


def _header_cursor(value: str | None) -> int | None:
    """`Last-Event-ID`, with the JS SDK's `-1` for "nothing yet" (aegra#472)."""
    text = (value or "").strip()
    if text in ("", "-1"):
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 16 and int(text) <= MAX_SEQ):
        raise _refused("Last-Event-ID", f"must be an integer from 0 to {MAX_SEQ}")
    return int(text)


def _refused(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_subscription", f"`{field}` {problem}", fields={field: problem})
