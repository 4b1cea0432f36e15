"""What the parts of the storage contract share that need the whole `Storage`."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pizzabot.testing.run_store_contract.base import StoreSuite
from pizzabot_hookspecs.storage_backends import Storage


class WholeSuite(StoreSuite):
    """Base of the parts about threads, settings, what LangGraph keeps, and everything together."""

    shared = False
    """What the storage has to say of itself: whether several servers may use it at once."""

    @abstractmethod
    def storage(self, path: Path) -> AbstractAsyncContextManager[Storage]: ...
