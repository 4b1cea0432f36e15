"""`Slots`: how many servers are being connected at once. A slow one gives its place away and goes on beside them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pizzabot.host.mcp.limits import SLOT_SECONDS


class Slots:
    """`hold` waits for a place. After `patience` seconds it is another one's, whether or not the block has ended."""

    def __init__(self, number: int, *, patience: float = SLOT_SECONDS) -> None:
        self._free = asyncio.Semaphore(number)
        self._patience = patience

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        await self._free.acquire()
        held = True

        def give_away() -> None:
            nonlocal held
            if held:
                held = False
                self._free.release()

        timer = asyncio.get_running_loop().call_later(self._patience, give_away)
        try:
            yield
        finally:
            timer.cancel()
            give_away()
