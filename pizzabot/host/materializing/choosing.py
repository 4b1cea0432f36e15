"""Which materializer a bundle has: the offer that its manifest names, one that is called like it, or `subprocess`."""

from __future__ import annotations

import asyncio

from pizzabot.host.ground import Ground
from pizzabot.host.plugins.making import PluginMaker
from pizzabot_hookspecs.bundles import Bundle
from pizzabot_hookspecs.materializers import Materializer

KIND = "materializers"
SUBPROCESS = "subprocess"


class Materializers:
    """Makes each once, on first need."""

    def __init__(self, ground: Ground, maker: PluginMaker) -> None:
        self._ground = ground
        self._maker = maker
        self._made: dict[str, Materializer] = {}
        self._making = asyncio.Lock()

    async def of(self, bundle: Bundle) -> Materializer:
        """Raises `NoSuchOffer`, `AmbiguousOffer` or why it cannot be made."""
        use = self._use(bundle)
        async with self._making:
            if use not in self._made:
                self._made[use] = await self._maker.chosen(KIND, use, section_name=KIND, host=True)
            return self._made[use]

    def _use(self, bundle: Bundle) -> str:
        entry = bundle.materializer
        if entry is not None and entry.use:
            return entry.use
        offered = {record.offer.name for record in self._ground.plugins.acting(KIND)}
        return bundle.name if bundle.name in offered else SUBPROCESS
