"""`RunStoreContract`: admission, queue, claims, leases, epochs, the log, merging and recovery, as tests to subclass.

    class TestMyRuns(RunStoreContract):
        durable = True
        several_engines = True

        def storage(self, path):
            return MyRuns(path)

It asks for `RunStorage` and `EventLog` only and knows no database: a store in one process, a file and a server pass it
unchanged. The source of a test is the docstring of the method it names (`pizzabot_hookspecs.storage_backends`) and
design/durable-runs.md.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pizzabot.testing.run_store_contract.admission import AdmissionContract
from pizzabot.testing.run_store_contract.base import RunStore
from pizzabot.testing.run_store_contract.claims import ClaimContract
from pizzabot.testing.run_store_contract.ending import EndingContract
from pizzabot.testing.run_store_contract.fencing import FencingContract
from pizzabot.testing.run_store_contract.holding import HoldingContract
from pizzabot.testing.run_store_contract.leases import LeaseContract
from pizzabot.testing.run_store_contract.log import LogContract
from pizzabot.testing.run_store_contract.merging import MergingContract
from pizzabot.testing.run_store_contract.owners import RunOwnerContract
from pizzabot.testing.run_store_contract.queueing import QueueContract
from pizzabot.testing.run_store_contract.recovery import RecoveryContract


class RunStoreContract(
    AdmissionContract,
    QueueContract,
    HoldingContract,
    ClaimContract,
    LeaseContract,
    FencingContract,
    EndingContract,
    LogContract,
    MergingContract,
    RecoveryContract,
    RunOwnerContract,
):
    """All parts. Each test opens a storage of its own below the folder that it is given."""

    @abstractmethod
    def storage(self, path: Path) -> AbstractAsyncContextManager[RunStore]: ...


__all__ = ["RunStore", "RunStoreContract"]
