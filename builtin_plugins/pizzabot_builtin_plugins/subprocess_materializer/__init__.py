"""Plugin `subprocess_materializer`: runs the entrypoint of a bundle, a Python script, in a process of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.subprocess_materializer.settings import SubprocessSettings
    from pizzabot_hookspecs.materializers import Materializer


@hookimpl
def pizzabot_materializers() -> list[Offer[Materializer]]:
    from pizzabot_builtin_plugins.subprocess_materializer.settings import SubprocessSettings

    return [
        Offer(
            name="subprocess",
            summary="runs the entrypoint that a bundle's manifest names",
            create=_create,
            settings=SubprocessSettings,
        )
    ]


def _create(context: Context, settings: SubprocessSettings) -> Materializer:
    from pizzabot_builtin_plugins.subprocess_materializer.materializer import SubprocessMaterializer

    return SubprocessMaterializer(settings, context.logger)
