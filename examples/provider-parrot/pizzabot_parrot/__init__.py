"""A model provider: parrots repeat what you say. The entry point names this module, so importing it stays cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.model_providers import ModelProvider


@hookimpl
def pizzabot_model_providers() -> list[Offer[ModelProvider]]:
    from pizzabot_parrot.provider import ParrotSettings, create

    return [Offer(name="parrot", summary="repeats what you say", create=create, settings=ParrotSettings)]
