"""The storage contract, part: rows belong to their owner in every method, and the system may touch all of them."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.storage_contract.base import (
    ANNA,
    BORIS,
    SERVER,
    StorageSuite,
    current,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import SYSTEM, Conflict
from pizzabot_hookspecs.storage_backends import CancelReason, LogBounds, RunStatus, Storage


class OwnerContract(StorageSuite):
    def test_nobody_reads_what_is_another_owners(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r", caller=ANNA)
            await storage.append_events("r", run.epoch, words("secret"), caller=ANNA)
            await storage.admit_run(new_run("next"), caller=ANNA)
            assert await storage.thread("t", caller=BORIS) is None
            assert list(await storage.threads(caller=BORIS)) == []
            assert await storage.run("r", caller=BORIS) is None
            assert await storage.active_run("t", caller=BORIS) is None
            assert await storage.next_pending("t", caller=BORIS) is None
            assert list(await storage.unfinished_runs(caller=BORIS)) == []
            assert list(await log(storage, caller=BORIS)) == []
            assert await storage.log_bounds("t", caller=BORIS) == LogBounds(
                first_seq=0, last_seq=0, latest_run_seq=None
            )

        self.play(tmp_path, scenario)

    def test_nobody_changes_what_is_another_owners(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r", caller=ANNA)
            await storage.admit_run(new_run("next", "u"), caller=ANNA)
            await storage.pin_model("t", "theirs", caller=BORIS)
            assert await storage.delete_thread("t", caller=BORIS) is False
            assert await storage.claim_run("next", server_id=SERVER, caller=BORIS) is None
            assert await storage.claim_run("r", server_id=SERVER, takeover=True, caller=BORIS) is None
            assert await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=BORIS) is None
            write = storage.append_events("r", run.epoch, words("forged"), caller=BORIS)
            await refused(write, Conflict, "lease_lost")
            end = storage.finish_run("r", run.epoch, words("forged"), status=RunStatus.ERROR, caller=BORIS)
            await refused(end, Conflict, "lease_lost")
            thread = await storage.thread("t", caller=ANNA)
            assert thread is not None
            assert thread.model_id is None
            assert await current(storage, "r", caller=ANNA) == run
            assert list(await log(storage, caller=ANNA)) == []

        self.play(tmp_path, scenario)

    def test_settings_of_two_owners_are_apart(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.put_setting("theme", "dark", caller=ANNA)
            assert await storage.setting("theme", caller=BORIS) is None
            await storage.put_setting("theme", "light", caller=BORIS)
            await storage.put_setting("theme", None, caller=BORIS)
            assert await storage.setting("theme", caller=ANNA) == "dark"

        self.play(tmp_path, scenario)

    def test_each_owner_sees_the_own_rows_only(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for caller, thread_id in ((ANNA, "a"), (BORIS, "b")):
                await started(storage, f"run-{thread_id}", thread_id, caller=caller)
            assert [thread.thread_id for thread in await storage.threads(caller=ANNA)] == ["a"]
            assert [run.run_id for run in await storage.unfinished_runs(caller=BORIS)] == ["run-b"]

        self.play(tmp_path, scenario)

    def test_the_system_reads_and_ends_runs_of_every_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await started(storage, "run-a", "a", caller=ANNA)
            await started(storage, "run-b", "b", caller=BORIS)
            assert [run.run_id for run in await storage.unfinished_runs(caller=SYSTEM)] == ["run-a", "run-b"]
            assert [thread.thread_id for thread in await storage.threads(caller=SYSTEM)] == ["b", "a"]
            taken = await storage.claim_run("run-a", server_id="server-2", takeover=True, caller=SYSTEM)
            assert taken is not None
            await storage.append_events("run-a", taken.epoch, words("recovered"), caller=SYSTEM)
            await storage.finish_run("run-a", taken.epoch, words("end"), status=RunStatus.ERROR, caller=SYSTEM)
            ended = await current(storage, "run-a", caller=ANNA)
            assert (ended.status, ended.owner) == (RunStatus.ERROR, "anna")
            assert len(await log(storage, "a", caller=ANNA)) == len(await log(storage, "a", caller=SYSTEM)) == 2

        self.play(tmp_path, scenario)

    def test_a_run_that_the_system_admits_belongs_to_the_threads_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=ANNA)
            admission = await storage.admit_run(new_run("r"), caller=SYSTEM)
            assert admission.run.owner == "anna"
            assert await storage.run("r", caller=ANNA) == admission.run

        self.play(tmp_path, scenario)
