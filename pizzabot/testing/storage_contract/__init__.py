"""`StorageContract`: what every storage backend promises, as tests to subclass. Nothing here knows a database.

    class TestMyStorage(StorageContract):
        durable = True

        def storage(self, path):
            return MyStorage(path)

`storage` returns an async context manager on what belongs to `path`: the same path again is the same storage. With
`durable`, reopening must find everything; without, nothing. The source of a test is the docstring of the method it
names (`pizzabot_hookspecs.storage_backends`) and design/durable-runs.md.
"""

from __future__ import annotations

from pizzabot.testing.storage_contract.admission import AdmissionContract
from pizzabot.testing.storage_contract.graph import GraphContract
from pizzabot.testing.storage_contract.log import LogContract
from pizzabot.testing.storage_contract.owners import OwnerContract
from pizzabot.testing.storage_contract.reopening import ReopeningContract
from pizzabot.testing.storage_contract.runs import RunContract
from pizzabot.testing.storage_contract.threads import ThreadContract


class StorageContract(
    ThreadContract, AdmissionContract, RunContract, LogContract, OwnerContract, GraphContract, ReopeningContract
):
    """All parts. Each test opens a storage of its own below the folder that it is given."""


__all__ = ["StorageContract"]
