"""The run store contract, part: runs and logs belong to their owner in every method; the system may touch all."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    SERVER,
    RunStore,
    StoreSuite,
    current,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import SYSTEM, Conflict, NotFound
from pizzabot_hookspecs.storage_backends import (
    CancelReason,
    LogBounds,
    RunStatus,
)


class RunOwnerContract(StoreSuite):
    def test_nobody_reads_runs_or_logs_of_another_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r", caller=ANNA)
            await storage.append_events("r", run.epoch, words("secret"), caller=ANNA)
            await storage.admit_run(new_run("next"), caller=ANNA)
            assert await storage.run("r", caller=BORIS) is None
            assert await storage.active_run("t", caller=BORIS) is None
            assert await storage.next_pending("t", caller=BORIS) is None
            assert list(await storage.unfinished_runs(caller=BORIS)) == []
            assert list(await log(storage, caller=BORIS)) == []
            assert await storage.log_bounds("t", caller=BORIS) == LogBounds(
                first_seq=0, last_seq=0, latest_run_seq=None
            )

        self.play(tmp_path, scenario)

    def test_nobody_changes_runs_or_logs_of_another_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r", caller=ANNA)
            await storage.admit_run(new_run("next", "u"), caller=ANNA)
            assert await storage.claim_run("next", server_id=SERVER, caller=BORIS) is None
            assert await storage.claim_run("r", server_id=SERVER, takeover=True, caller=BORIS) is None
            assert await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=BORIS) is None
            write = storage.append_events("r", run.epoch, words("forged"), caller=BORIS)
            await refused(write, Conflict, "lease_lost")
            end = storage.finish_run("r", run.epoch, words("forged"), status=RunStatus.ERROR, caller=BORIS)
            await refused(end, Conflict, "lease_lost")
            assert await storage.renew_leases(SERVER, lease_seconds=3600.0, caller=BORIS) == frozenset()
            await refused(storage.merge_events("r", [], caller=BORIS), NotFound, "no_such_run")
            assert await current(storage, "r", caller=ANNA) == run
            assert list(await log(storage, caller=ANNA)) == []

        self.play(tmp_path, scenario)

    def test_each_owner_sees_the_own_runs_only(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            for caller, thread_id in ((ANNA, "a"), (BORIS, "b")):
                await started(storage, f"run-{thread_id}", thread_id, caller=caller)
            assert [run.run_id for run in await storage.unfinished_runs(caller=ANNA)] == ["run-a"]
            assert [run.run_id for run in await storage.unfinished_runs(caller=BORIS)] == ["run-b"]

        self.play(tmp_path, scenario)

    def test_the_system_reads_and_ends_runs_of_every_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await started(storage, "run-a", "a", caller=ANNA)
            await started(storage, "run-b", "b", caller=BORIS)
            assert [run.run_id for run in await storage.unfinished_runs(caller=SYSTEM)] == ["run-a", "run-b"]
            renewed = await storage.renew_leases(SERVER, lease_seconds=60.0, caller=SYSTEM)
            assert renewed == {"run-a", "run-b"}
            taken = await storage.claim_run("run-a", server_id="server-2", takeover=True, caller=SYSTEM)
            assert taken is not None
            await storage.append_events("run-a", taken.epoch, words("recovered"), caller=SYSTEM)
            await storage.finish_run("run-a", taken.epoch, words("end"), status=RunStatus.ERROR, caller=SYSTEM)
            ended = await current(storage, "run-a", caller=ANNA)
            assert (ended.status, ended.owner) == (RunStatus.ERROR, "anna")
            assert len(await log(storage, "a", caller=ANNA)) == len(await log(storage, "a", caller=SYSTEM)) == 2

        self.play(tmp_path, scenario)

    def test_a_run_that_the_system_admits_belongs_to_the_threads_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await storage.admit_run(new_run("hers"), caller=ANNA)
            admission = await storage.admit_run(new_run("r"), caller=SYSTEM)
            assert admission.run.owner == "anna"
            assert await storage.run("r", caller=ANNA) == admission.run

        self.play(tmp_path, scenario)
