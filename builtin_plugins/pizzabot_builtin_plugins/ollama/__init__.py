"""Plugin `ollama`: the models of an Ollama server, this machine's or another's. Usable without any configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.model_providers import ModelProvider


@hookimpl
def pizzabot_model_providers() -> list[Offer[ModelProvider]]:
    from pizzabot_builtin_plugins.ollama.provider import create
    from pizzabot_builtin_plugins.ollama.settings import OllamaSettings

    return [
        Offer(
            name="ollama",
            summary="models of an Ollama server",
            create=create,
            settings=OllamaSettings,
            extra="ollama",
        )
    ]
