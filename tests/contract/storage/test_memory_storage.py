"""The memory backend keeps the storage contract."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.storage_contract import StorageContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage


class TestMemoryStorage(StorageContract):
    def storage(self, path: Path) -> MemoryStorage:
        return MemoryStorage()
