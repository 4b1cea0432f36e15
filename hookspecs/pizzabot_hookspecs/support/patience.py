"""Trying again while storage is unavailable: a full disk or a locked database is not a lost run (durable-runs 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pizzabot_hookspecs.errors import Unavailable

T = TypeVar("T")

STORAGE_PATIENCE_SECONDS = 60.0
"""How long a failing storage is tried again."""
LASTING = frozenset({"storage_closed", "database_damaged"})
"""Codes of what does not mend itself."""
_RETRY_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0)


async def patiently(work: Callable[[], Awaitable[T]], *, waits: Callable[[Unavailable], None] | None = None) -> T:
    """The result of `work`, called again after each `Unavailable` that may pass, for `STORAGE_PATIENCE_SECONDS`.

    `waits` is called once, with the first failure. Everything else that `work` raises is passed on at once.
    """
    waited, attempt = 0.0, 0
    while True:
        try:
            return await work()
        except Unavailable as error:
            if error.code in LASTING or waited >= STORAGE_PATIENCE_SECONDS:
                raise
            if attempt == 0 and waits is not None:
                waits(error)
        pause = _RETRY_SECONDS[min(attempt, len(_RETRY_SECONDS) - 1)]
        waited, attempt = waited + pause, attempt + 1
        await asyncio.sleep(pause)
