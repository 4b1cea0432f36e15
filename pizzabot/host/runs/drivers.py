"""Who carries runs out: one driver per thread takes the front of its queue, claims it and pumps it to its end.

Drivers only do what rows say. What a crash leaves behind is found by `recover` (durable-runs rules 1, 7, 8).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pizzabot.host.runs.leases import LEASE_SECONDS
from pizzabot.host.runs.pump import RunPump
from pizzabot.host.runs.pump_services import PumpServices
from pizzabot_hookspecs import SYSTEM, PizzabotError
from pizzabot_hookspecs.storage_backends import CancelReason, Run, RunStatus

MAX_ACTIVE_RUNS = 256
"""Runs that are pumped at once; further ones wait in their threads' queues, which are rows."""
DRIVER_RETRY_SECONDS = 1.0


class Changed(Protocol):
    """Called when a thread's status, or what waits on it, may not be as it was."""

    def __call__(self, owner: str, thread_id: str, /, *, inbox: bool = False) -> None: ...


@dataclass
class KnownRun:
    """A run that this process knows of: its pump once it is claimed, and whether it has settled."""

    settled: asyncio.Event
    pump: RunPump | None = None
    wish: CancelReason | None = None


class Drivers:
    """Owned by one engine, used from its loop only. `running` are the runs that are pumped or wait for a slot here."""

    def __init__(
        self, services: PumpServices, *, server_id: str, finished: Callable[[Run], None], changed: Changed
    ) -> None:
        self.services = services
        self.running: dict[str, KnownRun] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._server_id = server_id
        self._finished = finished
        self._changed = changed
        self._due: dict[str, str | None] = {}
        self._unsure: set[str] = set()
        self._orphans: dict[str, Run] = {}
        self._held: set[str] = set()
        self._slots = asyncio.Semaphore(MAX_ACTIVE_RUNS)
        self._closing = False
        self._looking: asyncio.Task[int] | None = None

    def know(self, run_id: str) -> KnownRun:
        return self.running.setdefault(run_id, KnownRun(asyncio.Event()))

    def cancel(self, run_id: str, reason: CancelReason) -> KnownRun | None:
        """Ask a run of this process to stop; its row says so already."""
        known = self.running.get(run_id)
        if known is not None:
            known.wish = known.wish or reason
            if known.pump is not None:
                known.pump.cancel(reason)
        return known

    def kick(self, thread_id: str, first: str | None = None) -> None:
        """Have the thread's queue looked at. `first` spares an idle thread the look: it is the only run there."""
        if thread_id in self.tasks or thread_id in self._held:
            self._due[thread_id] = None
            return
        self._due[thread_id] = None if thread_id in self._unsure else first
        self._unsure.discard(thread_id)
        self.tasks[thread_id] = asyncio.create_task(self._drive(thread_id), name=f"driver of {thread_id}")

    def hold(self, thread_id: str) -> bool:
        """Let no run of the thread begin until `let_go`; False where it is held already."""
        if thread_id in self._held:
            return False
        self._held.add(thread_id)
        return True

    def let_go(self, thread_id: str) -> None:
        self._held.discard(thread_id)
        if thread_id in self._due:
            self.kick(thread_id)

    async def when_at_rest(self, thread_id: str) -> None:
        """Until the thread's driver is through: its last run has ended in the log and is being cleared away."""
        if (driver := self.tasks.get(thread_id)) is not None:
            await asyncio.wait({driver})

    # -- what a dead process left -----------------------------------------------------------------------------------

    async def recover(self) -> int:
        """Go on with what a crash or a shutdown left unfinished; how many runs there are."""
        storage = self.services.storage
        unfinished = [run for run in await storage.unfinished_runs(caller=SYSTEM) if self._may_take(run)]
        for run in unfinished:
            self.know(run.run_id)
            if run.status.active:
                self._orphans[run.thread_id] = run
        for run in unfinished:
            self.kick(run.thread_id)
        if unfinished:
            self.services.logger.info("run.recovering", runs=len(unfinished))
        return len(unfinished)

    def _may_take(self, run: Run) -> bool:
        """Whether a run that is not final is this server's to go on with."""
        if run.run_id in self.running:
            return False
        if not self.services.storage.shared or run.server_id is None:
            return True
        return run.lease_until is None or run.lease_until < self.services.clock()

    def look_for_orphans(self) -> None:
        """Another server's deadline may have passed: look, off the task that renews (hard cases 54)."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self.recover(), name="takeover")

    def claimed(self) -> list[str]:
        return [run_id for run_id, known in self.running.items() if known.pump is not None]

    def lose(self, run_id: str) -> None:
        """The run is another server's now."""
        known = self.running.get(run_id)
        if known is not None and known.pump is not None:
            known.pump.lose()

    async def close(self, *, seconds: float) -> None:
        """Let go of what is under way, as it is."""
        drivers = list(self.tasks.values())
        for driver in drivers:
            driver.cancel()
        if drivers:
            await asyncio.wait(drivers, timeout=seconds)

    def take_no_more(self) -> None:
        self._closing = True

    # -- one thread -------------------------------------------------------------------------------------------------

    async def _drive(self, thread_id: str) -> None:
        try:
            while thread_id in self._due and not self._closing and thread_id not in self._held:
                first = self._due.pop(thread_id)
                try:
                    await self._work_off(thread_id, first)
                except PizzabotError as error:
                    self.services.logger.error(
                        "run.driver_waits", thread_id=thread_id, code=error.code, detail=error.detail
                    )
                    self._due[thread_id] = None
                    await asyncio.sleep(DRIVER_RETRY_SECONDS)
        except Exception as error:
            self._unsure.add(thread_id)
            self.services.logger.exception("run.driver_failed", thread_id=thread_id, detail=str(error))
        finally:
            del self.tasks[thread_id]

    async def _work_off(self, thread_id: str, first: str | None) -> None:
        orphan = self._orphans.get(thread_id)
        if orphan is not None:
            await self._claim_and_execute(orphan.run_id, takeover=True)
            del self._orphans[thread_id]
        if first is not None and not self._closing:
            await self._claim_and_execute(first, takeover=False)
            return  # whoever admitted another run meanwhile has made the thread due
        while not self._closing:
            pending = await self.services.storage.next_pending(thread_id, caller=SYSTEM)
            if pending is None or not await self._claim_and_execute(pending.run_id, takeover=False):
                return

    async def _claim_and_execute(self, run_id: str, *, takeover: bool) -> bool:
        storage = self.services.storage
        async with self._slots:
            run = await storage.claim_run(
                run_id, server_id=self._server_id, takeover=takeover, lease_seconds=LEASE_SECONDS, caller=SYSTEM
            )
            if run is None:
                self._settle(run_id)
                return False
            known = self.know(run_id)
            pump = RunPump(self.services, run)
            known.pump = pump
            if known.wish is not None:
                pump.cancel(known.wish)
            ending = await pump.execute()
        if ending is not None:  # else it was lost: whoever ends it tells of it
            # The stored row has more to say where the run was stopped: who asked, and when.
            ended = pump.row_after(ending) or await storage.run(run_id, caller=SYSTEM)
            if ended is not None:
                self._finished(ended)
                asks = ended.status in (RunStatus.INTERRUPTED, RunStatus.NEEDS_ATTENTION)
                self._changed(ended.owner, ended.thread_id, inbox=asks or pump.resumes)
        self._settle(run_id)
        return True

    def _settle(self, run_id: str) -> None:
        known = self.running.pop(run_id, None)
        if known is not None:
            known.settled.set()
