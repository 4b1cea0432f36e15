"""The run store contract, part: what a request wants on a busy thread, and the order in which runs wait."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    BORIS,
    SERVER,
    RunStore,
    StoreSuite,
    current,
    enqueued,
    finished,
    new_run,
    refused,
    started,
)
from pizzabot_hookspecs import LOCAL, Conflict
from pizzabot_hookspecs.storage_backends import (
    CancelReason,
    Multitask,
    RunStatus,
)


class QueueContract(StoreSuite):
    def test_reject_is_refused_while_a_run_is_active_or_pending(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            first = await storage.admit_run(new_run("r", multitask=Multitask.REJECT), caller=LOCAL)
            assert first.created, "an idle thread rejects nothing"
            for step in ("pending", "running", "cancelling"):
                if step == "running":
                    await storage.claim_run("r", server_id="s", caller=LOCAL)
                if step == "cancelling":
                    await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
                new = new_run("x", multitask=Multitask.REJECT)
                await refused(storage.admit_run(new, caller=LOCAL), Conflict, "run_active")
            await finished(storage, await current(storage, "r"))
            assert (await storage.admit_run(new_run("x", multitask=Multitask.REJECT), caller=LOCAL)).created

        self.play(tmp_path, scenario)

    def test_enqueued_runs_wait_in_the_order_in_which_they_came(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            active = await started(storage, "active")
            names = ["one", "two", "three"]
            for name in names:
                assert (await enqueued(storage, name)).status is RunStatus.PENDING
            assert await current(storage, "active") == active, "enqueue leaves the active run alone"
            for ending, following in pairwise(["active", *names]):
                await finished(storage, await current(storage, ending))
                front = await storage.next_pending("t", caller=LOCAL)
                assert front is not None
                assert front.run_id == following
                await storage.claim_run(following, server_id="s", caller=LOCAL)
            assert await storage.next_pending("t", caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_interrupt_goes_to_the_front_and_asks_the_active_run_to_stop(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await started(storage, "active")
            await enqueued(storage, "waiting")
            admission = await storage.admit_run(new_run("newer"), caller=LOCAL)
            active = await current(storage, "active")
            assert admission.replaces == active
            assert (active.status, active.cancel_reason) == (RunStatus.CANCELLING, CancelReason.SUPERSEDED)
            assert active.cancel_requested_at is not None
            front = await storage.next_pending("t", caller=LOCAL)
            assert front == admission.run
            waiting = await current(storage, "waiting")
            assert waiting.cancel_requested_at is None, "what was enqueued still has its turn"

        self.play(tmp_path, scenario)

    def test_interrupt_supersedes_pending_replacements_and_not_enqueued_runs(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await started(storage, "active")
            await storage.admit_run(new_run("older"), caller=LOCAL)
            await enqueued(storage, "waiting")
            admission = await storage.admit_run(new_run("newer"), caller=LOCAL)
            assert admission.replaces is not None
            assert admission.replaces.run_id == "active"
            older = await current(storage, "older")
            assert (older.status, older.cancel_reason) == (RunStatus.PENDING, CancelReason.SUPERSEDED)
            assert older.cancel_requested_at is not None
            for name in ("waiting", "newer"):
                assert (await current(storage, name)).cancel_requested_at is None

        self.play(tmp_path, scenario)

    def test_interrupt_keeps_the_first_reason_of_a_run_that_is_being_stopped(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await started(storage, "active")
            stopped = await storage.request_cancel("active", reason=CancelReason.STOPPED, caller=LOCAL)
            await storage.admit_run(new_run("newer"), caller=LOCAL)
            assert await current(storage, "active") == stopped

        self.play(tmp_path, scenario)

    def test_the_queue_says_how_many_wait(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            assert await storage.waiting_runs("t", caller=LOCAL) == 0
            run = await started(storage, "r")
            assert await storage.waiting_runs("t", caller=LOCAL) == 0, "the active run does not wait"
            for number in range(3):
                await enqueued(storage, f"r{number}")
            await enqueued(storage, "elsewhere", "u")
            assert await storage.waiting_runs("t", caller=LOCAL) == 3
            await finished(storage, run)
            await storage.claim_run("r0", server_id=SERVER, caller=LOCAL)
            assert await storage.waiting_runs("t", caller=LOCAL) == 2
            assert await storage.waiting_runs("t", caller=BORIS) == 0
            assert await storage.waiting_runs("unknown", caller=LOCAL) == 0

        self.play(tmp_path, scenario)

    def test_replaced_runs_that_never_began_end_before_their_successor_in_the_order_of_admission(
        self, tmp_path: Path
    ) -> None:
        async def scenario(storage: RunStore) -> None:
            active = await started(storage, "active")
            await enqueued(storage, "waiting")
            for name in ("one", "two", "three"):
                await storage.admit_run(new_run(name), caller=LOCAL)
            await finished(storage, await current(storage, active.run_id))
            order = []
            while (front := await storage.next_pending("t", caller=LOCAL)) is not None:
                order.append(front.run_id)
                run = await storage.claim_run(front.run_id, server_id=SERVER, caller=LOCAL)
                assert run is not None
                await finished(storage, run)
            assert order == ["one", "two", "three", "waiting"]

        self.play(tmp_path, scenario)
