"""Plugin `openai`: chat models of OpenAI and of every endpoint that speaks its protocol (vLLM, llama.cpp, …)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.model_providers import ModelProvider


@hookimpl
def pizzabot_model_providers() -> list[Offer[ModelProvider]]:
    from pizzabot_builtin_plugins.openai.provider import create
    from pizzabot_builtin_plugins.openai.settings import OpenAISettings

    return [
        Offer(
            name="openai",
            summary="OpenAI, or any endpoint that speaks its protocol",
            create=create,
            settings=OpenAISettings,
            extra="openai",
        )
    ]
