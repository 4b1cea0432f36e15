"""The built-in storage backend `sqlite`: one folder, one writer, the log and everything else in SQLite files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings
    from pizzabot_hookspecs.storage_backends import Storage


@hookimpl
def pizzabot_storage_backends() -> list[Offer[Storage]]:
    from pizzabot_builtin_plugins.sqlite_storage.settings import SqliteSettings

    return [
        Offer(
            name="sqlite",
            summary="SQLite files in the data root (the default)",
            create=_create,
            settings=SqliteSettings,
        )
    ]


def _create(context: Context, settings: SqliteSettings) -> Storage:
    from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage

    return SqliteStorage(context.data_root, settings, clock=context.clock)
