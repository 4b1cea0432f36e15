"""Whether a test of a contract notices that a storage is faulty."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


@pytest.fixture
def fails(tmp_path: Path) -> Fails:
    """`fails(contract, storage, name)`: whether the contract's test of this name fails on this storage."""

    def fails_on(contract: type[Any], kind: type[MemoryStorage], name: str) -> bool:
        class Suite(contract):
            def storage(self, path: Path) -> MemoryStorage:
                return kind()

        try:
            getattr(Suite(), name)(tmp_path / name)
        except Exception:
            failed = True
        else:
            return False
        # Tasks of a scenario that broke off are cycles that complain when they go: here, and not inside another test.
        gc.collect()
        return failed

    return fails_on
