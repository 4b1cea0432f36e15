"""The run store contract, part: what a start finds after a crash, and after opening again (durable-runs rule 7)."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    SERVER,
    RunStore,
    StoreSuite,
    current,
    enqueued,
    finished,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, SYSTEM, Conflict
from pizzabot_hookspecs.storage_backends import (
    CancelReason,
    MergedEvents,
    RunStatus,
)

FAR_AWAY = 100_000_000_000.0


class RecoveryContract(StoreSuite):
    def test_unfinished_runs_are_all_that_are_not_final_oldest_first(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await started(storage, "running", "a")
            await started(storage, "cancelling", "b")
            await storage.request_cancel("cancelling", reason=CancelReason.STOPPED, caller=LOCAL)
            await enqueued(storage, "pending", "a")
            await finished(storage, await started(storage, "ended", "c"))
            await storage.admit_run(new_run("front", "b"), caller=LOCAL)
            found = await storage.unfinished_runs(caller=LOCAL)
            assert [run.run_id for run in found] == ["running", "cancelling", "pending", "front"]
            assert [run.status for run in found] == ["running", "cancelling", "pending", "pending"]

        self.play(tmp_path, scenario)

    def test_a_recovering_server_learns_whose_a_run_was_and_until_when(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            await enqueued(storage, "next")
            found = {run.run_id: run for run in await storage.unfinished_runs(caller=SYSTEM)}
            assert found["r"] == run
            assert (found["r"].server_id, found["r"].lease_until) == (SERVER, run.lease_until)
            assert (found["next"].server_id, found["next"].lease_until) == (None, None)

        self.play(tmp_path, scenario)

    def test_opening_again_finds_every_run_and_goes_on_counting(self, tmp_path: Path) -> None:
        seen: dict[str, object] = {}

        async def everything(storage: RunStore) -> dict[str, object]:
            return {
                "unfinished": list(await storage.unfinished_runs(caller=LOCAL)),
                "ended": await storage.run("ended", caller=LOCAL),
                "queue": await storage.next_pending("t", caller=LOCAL),
                "events": list(await log(storage)),
                "bounds": await storage.log_bounds("t", caller=LOCAL),
            }

        async def first(storage: RunStore) -> None:
            await finished(storage, await started(storage, "ended"), "one", "two", status=RunStatus.ERROR)
            run = await started(storage, "running", message_id="m", idempotency_key="key")
            await storage.append_events("running", run.epoch, words("three"), caller=LOCAL)
            await enqueued(storage, "waiting")
            await storage.request_cancel("running", reason=CancelReason.SHUTDOWN, caller=LOCAL)
            await storage.merge_events("ended", [MergedEvents(first_seq=1, last_seq=2, data=b"merged")], caller=LOCAL)
            seen.update(await everything(storage))

        async def second(storage: RunStore) -> None:
            if not self.durable:
                assert list(await storage.unfinished_runs(caller=LOCAL)) == []
                assert list(await log(storage)) == []
                return
            assert await everything(storage) == seen
            unmerged = await storage.mergeable_runs(ended_before=FAR_AWAY, limit=10, caller=LOCAL)
            assert list(unmerged) == [], "that a run is merged was remembered"
            again = await storage.admit_run(new_run("x", idempotency_key="key"), caller=LOCAL)
            assert (again.created, again.run.run_id) == (False, "running")
            other = new_run("x", message_id="m", fingerprint="other")
            await refused(storage.admit_run(other, caller=LOCAL), Conflict, "idempotency_mismatch")
            old = await current(storage, "running")
            taken = await storage.claim_run("running", server_id="server-2", takeover=True, caller=LOCAL)
            assert taken is not None
            assert await finished(storage, taken, "four", status=RunStatus.CANCELLED) == 4
            late = storage.append_events("running", old.epoch, words("late"), caller=LOCAL)
            await refused(late, Conflict, "lease_lost")

        self.play(tmp_path, first, second)
