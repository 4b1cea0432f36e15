"""Which model providers there are for a host: one per section of `[models]`, and those that need no section."""

from __future__ import annotations

from collections.abc import Sequence

from pizzabot.host.ground import Ground
from pizzabot.host.plugins.making import PluginMaker
from pizzabot.kernel import NoSuchOffer, OfferRecord
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.model_providers import ModelProvider

KIND = "model_providers"


class Providers:
    """Finds and makes the provider of a use."""

    def __init__(self, ground: Ground, maker: PluginMaker) -> None:
        self._ground = ground
        self._maker = maker

    def uses(self) -> Sequence[str]:
        """The uses to list models of: configured sections, then offers that no section is named after."""
        configured = list(self._ground.settings.models.uses)
        offered = [record.offer.name for record in self._ground.plugins.acting(KIND)]
        return [*configured, *(name for name in offered if name not in configured)]

    async def make(self, use: str) -> ModelProvider:
        """The provider of `use`. Raises `Unavailable` `unregistered_provider`, which lists what there is."""
        record = self.offer(use)
        made: ModelProvider = await self._maker.make(
            record, use=use, section=self._ground.settings.section("models", use)
        )
        return made

    def offer(self, use: str) -> OfferRecord:
        """The offer behind `use`, without making anything. Raises like `make`, and `AmbiguousOffer`."""
        name = self._ground.settings.models.uses.get(use, use)
        try:
            return self._ground.plugins.choose(KIND, name)
        except NoSuchOffer as error:
            raise Unavailable("unregistered_provider", error.detail) from error
