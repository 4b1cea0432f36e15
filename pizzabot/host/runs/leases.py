"""Leases: every active run of this server is renewed on a task of its own; one that is somebody else's is let go.

On a storage that only one server uses, nothing but a changed epoch is loss of ownership: a laptop that slept keeps its
runs. Where several servers share one, a deadline that could not be renewed counts too: the run is stopped at the last
confirmed deadline, and a run of a dead server is taken over (durable-runs rule 6, hard cases 53 to 55).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from pizzabot_hookspecs import SYSTEM, Logger, PizzabotError
from pizzabot_hookspecs.storage_backends import Storage

LEASE_SECONDS = 30.0
RENEW_SECONDS = LEASE_SECONDS / 3


class LeaseKeeper:
    """Renews while `claimed` says that there is something to renew; `lose(run_id)` lets a run go."""

    def __init__(
        self,
        storage: Storage,
        *,
        server_id: str,
        claimed: Callable[[], Collection[str]],
        lose: Callable[[str], None],
        take_over: Callable[[], None],
        clock: Callable[[], float],
        logger: Logger,
    ) -> None:
        self._storage = storage
        self._server_id = server_id
        self._claimed = claimed
        self._lose = lose
        self._take_over = take_over
        self._clock = clock
        self._logger = logger
        self._confirmed = clock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name="leases")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            await self.renew()
            if self._storage.shared:
                self._take_over()

    async def renew(self) -> None:
        """One round: renew, and let go of what is not ours any more."""
        before = frozenset(self._claimed())
        if not before:
            self._confirmed = self._clock()
            return
        try:
            ours = await self._storage.renew_leases(self._server_id, lease_seconds=LEASE_SECONDS, caller=SYSTEM)
        except PizzabotError as error:
            self._logger.warning("lease.not_renewed", code=error.code, detail=error.detail)
            if self._storage.shared and self._clock() >= self._confirmed + LEASE_SECONDS:
                for run_id in before:
                    self._lose(run_id)
            return
        self._confirmed = self._clock()
        for run_id in before & frozenset(self._claimed()):
            if run_id not in ours:
                self._logger.warning("lease.lost", run_id=run_id)
                self._lose(run_id)
