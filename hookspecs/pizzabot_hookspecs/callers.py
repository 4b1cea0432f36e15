"""Who asks: the owner whose rows a call may touch. Every Host and storage method takes one as `caller`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The person (or the host itself) on whose behalf a call is made.

    `owner` is written to and matched against the `owner` column of every row. `request_id` is the id that logs
    carry, at most 128 characters. `system` is true for the host's own work across owners, such as recovery after
    a crash; a transport never sets it. (Architecture §5 rule 6, §7 "Caller".)
    """

    owner: str = "local"
    request_id: str | None = None
    system: bool = False


LOCAL = Caller()
"""The one person of a local installation."""

SYSTEM = Caller(owner="system", system=True)
"""The host itself: may read and finish rows of every owner."""
