"""Plugin `local`: any GGUF model on this machine, run by llama.cpp in a supervised child process.

`local:smollm2-135m` (fetched once, 98 MB), `local:<installed name>`, `local:/path/to/model.gguf`; `pizzabot models`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.local.command import ModelsCommand
    from pizzabot_builtin_plugins.local.provider import LocalProvider
    from pizzabot_hookspecs.commands import Command
    from pizzabot_hookspecs.model_providers import ModelProvider


def _provider(context: Context, settings: Any) -> LocalProvider:
    from pizzabot_builtin_plugins.local.provider import make_provider

    return make_provider(context, settings)


def _command(_context: Context, _settings: Any) -> ModelsCommand:
    from pizzabot_builtin_plugins.local.command import ModelsCommand

    return ModelsCommand()


@hookimpl
def pizzabot_model_providers() -> list[Offer[ModelProvider]]:
    from pizzabot_builtin_plugins.local.settings import LocalSettings

    return [
        Offer(
            name="local",
            summary="GGUF models on this machine (llama.cpp)",
            create=_provider,
            settings=LocalSettings,
            extra="local",
        )
    ]


@hookimpl
def pizzabot_commands() -> list[Offer[Command]]:
    return [Offer(name="models", summary="list, install and remove models that run on this machine", create=_command)]
