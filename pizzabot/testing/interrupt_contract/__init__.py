"""`InterruptContract`: interrupts, decisions and intents, as tests to subclass (durable-runs rules 1, 7, 9 and 10).

    class TestMyInterrupts(InterruptContract):
        durable = True
        several_engines = True

        def storage(self, path):
            return MyStorage(path)

It asks for `RunStorage`, `InterruptStorage` and `EventLog` only and knows no database: a store in one process, a file
and a server pass it unchanged.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from pizzabot.testing.interrupt_contract.base import InterruptStore
from pizzabot.testing.interrupt_contract.deciding import DecidingContract
from pizzabot.testing.interrupt_contract.intents import IntentContract
from pizzabot.testing.interrupt_contract.keeping import KeepingContract
from pizzabot.testing.interrupt_contract.opening import OpeningContract
from pizzabot.testing.interrupt_contract.racing import RacingContract
from pizzabot.testing.interrupt_contract.refusing import RefusingContract
from pizzabot.testing.interrupt_contract.resuming import ResumingContract
from pizzabot.testing.interrupt_contract.withdrawing import WithdrawingContract


class InterruptContract(
    OpeningContract,
    RefusingContract,
    DecidingContract,
    RacingContract,
    ResumingContract,
    WithdrawingContract,
    IntentContract,
    KeepingContract,
):
    """All parts. Each test opens a storage of its own below the folder that it is given."""

    @abstractmethod
    def storage(self, path: Path) -> AbstractAsyncContextManager[InterruptStore]: ...


__all__ = ["InterruptContract", "InterruptStore"]
