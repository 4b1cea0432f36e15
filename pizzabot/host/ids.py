"""Identifiers: which ones are accepted from clients, and how the host mints its own (architecture §7 "Ids")."""

from __future__ import annotations

import re
import secrets
import time

from pizzabot_hookspecs import InvalidRequest

ID = re.compile(r"[A-Za-z0-9._~:@-]{1,255}")
RESERVED = frozenset({"list", "events", "search", "activity", "count", ".", ".."})


def uuid7() -> str:
    """A UUID of version 7 in its usual spelling: sorts by time, as message ids of the stock SDKs do."""
    value = (int(time.time() * 1000) & (2**48 - 1)) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    value |= 0b10 << 62 | secrets.randbits(62)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_run_id() -> str:
    """`run_` and a uuid7 without dashes: no colon, because clients split event ids there (wire.md §3.2)."""
    return "run_" + uuid7().replace("-", "")


def checked_id(value: object, *, what: str) -> str:
    """`value` if it may name a thread or a message; raises `InvalidRequest` `invalid_id`."""
    if isinstance(value, str) and ID.fullmatch(value) and value not in RESERVED:
        return value
    shown = value if isinstance(value, str) and len(value) <= 60 else type(value).__name__
    raise InvalidRequest(
        "invalid_id",
        f"{what} {shown!r} is not an id: 1 to 255 of A-Z a-z 0-9 . _ ~ : @ - and not a reserved word",
        fields={what: "invalid id"},
    )


def checked_run_id(value: object) -> str:
    """Like `checked_id`, without a colon."""
    run_id = checked_id(value, what="run_id")
    if ":" in run_id:
        raise InvalidRequest("invalid_id", f"run_id {run_id!r} contains a colon", fields={"run_id": "invalid id"})
    return run_id
