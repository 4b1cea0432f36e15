"""The built-in storage backend `memory`: everything in dictionaries, gone when it is closed. For tests and trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.storage_backends import Storage


@hookimpl
def pizzabot_storage_backends() -> list[Offer[Storage]]:
    return [Offer(name="memory", summary="nothing on disk, everything gone at the end", create=_create)]


def _create(context: Context, _settings: object) -> Storage:
    from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage

    return MemoryStorage(clock=context.clock)
