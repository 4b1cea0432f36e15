"""Ids that the client mints, so that a request can be sent again without being done again."""

from __future__ import annotations

import secrets
import time
from uuid import UUID


def uuid7() -> str:
    """A UUID of version 7 (RFC 9562): 48 bits of milliseconds, then random ones; it sorts by the time it was made."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | secrets.randbits(12) << 64
    return str(UUID(int=value | 0b10 << 62 | secrets.randbits(62)))
