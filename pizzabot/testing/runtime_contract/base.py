"""How a runtime comes into the suite, and how a scenario is run."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

from pizzabot.testing.runtime_contract.kit import MemoryGraphStorage
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, RuntimeServices
from pizzabot_hookspecs.storage_backends import GraphStorage


class RuntimeContract(ABC):
    """`tools` says whether the runtime runs the tools that it is handed; the tests of tools are there only then.
    `keeps_history` says the same of a `KeepsHistory` and its tests, `keeps_branches` of a `KeepsBranches`,
    `compacts_context` of a `CompactsContext`.

    `patience`: a test that takes longer has failed. A runtime that hangs must not hang its author's test run.
    """

    tools: ClassVar[bool] = False
    keeps_history: ClassVar[bool] = False
    keeps_branches: ClassVar[bool] = False
    compacts_context: ClassVar[bool] = False
    patience: ClassVar[float] = 20.0

    @abstractmethod
    def runtime(self, storage: GraphStorage) -> AbstractAsyncContextManager[AgentRuntime]:
        """A prepared runtime over `storage`. Entered twice with one storage where a test means a restart."""

    def runtime_with(self, services: RuntimeServices) -> AbstractAsyncContextManager[AgentRuntime]:
        """The same, prepared with all of `services`: for a runtime with `tools`."""
        assert not services.roster().tools, "a suite with `tools = True` makes a runtime with them: `runtime_with`"
        return self.runtime(services.graph_storage)

    def new_storage(self) -> GraphStorage:
        """An empty storage, for one scenario. In memory unless a suite says otherwise."""
        return MemoryGraphStorage()

    def run(self, scenario: Coroutine[Any, Any, None]) -> None:
        asyncio.run(asyncio.wait_for(scenario, self.patience))
