"""Kind `observers`: plugins that are told. All act; each is called alone, and what it raises is logged only."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pizzabot_hookspecs.offers import Offer, hookspec
from pizzabot_hookspecs.storage_backends import Run


class Observer(Protocol):
    """Marker. An observer has any of the methods below; each gets 10 s, and none can hold up a run."""


@runtime_checkable
class ObservesRuns(Protocol):
    async def run_started(self, run: Run, /) -> None:
        """After the run's first event is stored."""
        ...

    async def run_finished(self, run: Run, /) -> None:
        """After the run's terminal event is stored; once per run, also for a run that was recovered."""
        ...


@runtime_checkable
class ObservesHost(Protocol):
    async def started(self) -> None:
        """When the host is ready for its first turn."""
        ...

    async def stopping(self) -> None:
        """Before runs are ended and storage is closed."""
        ...


@hookspec
def pizzabot_observers() -> list[Offer[Observer]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Every observer that is offered is created and told."""
