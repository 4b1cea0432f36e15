"""The SQLite backend keeps the storage contract."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.storage_contract import StorageContract
from pizzabot_builtin_plugins.sqlite_storage.storage import SqliteStorage


class TestSqliteStorage(StorageContract):
    durable = True
    several_engines = True

    def storage(self, path: Path) -> SqliteStorage:
        return SqliteStorage(path / "data")
