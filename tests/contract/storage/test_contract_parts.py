"""The run store and the interrupt suite can be passed alone, by a store that has nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pizzabot.testing import InterruptContract, RunStoreContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs.storage_backends import EventLog, InterruptStorage, RunStorage


class Only:
    """A storage that has the methods of some Protocols, and no others."""

    def __init__(self, storage: MemoryStorage, *protocols: type[Any]) -> None:
        for protocol in protocols:
            for name in vars(protocol):
                if not name.startswith("_"):
                    setattr(self, name, getattr(storage, name))


@asynccontextmanager
async def only(*protocols: type[Any]) -> AsyncIterator[Any]:
    async with MemoryStorage() as storage:
        yield Only(storage, *protocols)


class TestRunsAlone(RunStoreContract):
    def storage(self, path: Path) -> AbstractAsyncContextManager[Any]:
        return only(RunStorage, EventLog)


class TestInterruptsAlone(InterruptContract):
    def storage(self, path: Path) -> AbstractAsyncContextManager[Any]:
        return only(RunStorage, InterruptStorage, EventLog)


@pytest.mark.parametrize("suite", [RunStoreContract, InterruptContract])
def test_a_suite_cannot_be_run_without_saying_what_is_tested(suite: type[Any]) -> None:
    with pytest.raises(TypeError, match="storage"):
        suite()
