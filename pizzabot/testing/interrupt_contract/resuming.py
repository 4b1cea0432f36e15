"""The interrupt contract, part: where a resume stands in the queue. In front, behind resumes that wait already."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.interrupt_contract.base import InterruptStore, answer, decided, ended_waiting, waiting
from pizzabot.testing.run_store_contract.base import (
    SERVER,
    StoreSuite,
    current,
    enqueued,
    finished,
    new_run,
    started,
)
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import CancelReason, Multitask


async def order_of(storage: InterruptStore) -> list[str]:
    """The runs of the thread in the order in which they are claimed; every one is ended."""
    order = []
    while (front := await storage.next_pending("t", caller=LOCAL)) is not None:
        run = await storage.claim_run(front.run_id, server_id=SERVER, caller=LOCAL)
        assert run is not None
        await finished(storage, run)
        order.append(run.run_id)
    return order


class ResumingContract(StoreSuite):
    def test_a_resume_waits_in_front_of_what_was_enqueued(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            for number in range(3):
                await enqueued(storage, f"queued-{number}")
            await ended_waiting(storage, run, "one")
            await decided(storage, "resume", "one")
            assert await order_of(storage) == ["resume", "queued-0", "queued-1", "queued-2"]

        self.play(tmp_path, scenario)

    def test_resumes_go_on_in_the_order_of_their_decisions(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            await enqueued(storage, "queued")
            await ended_waiting(storage, run, "one", "two", "three")
            for name in ("two", "three", "one"):
                await decided(storage, f"resume-{name}", name)
            assert await storage.waiting_runs("t", caller=LOCAL) == 4
            assert await order_of(storage) == ["resume-two", "resume-three", "resume-one", "queued"]

        self.play(tmp_path, scenario)

    def test_a_queued_message_begins_after_the_last_answer_and_its_resume(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            queued = await enqueued(storage, "queued")
            await ended_waiting(storage, run, "one", "two")
            assert await storage.next_pending("t", caller=LOCAL) is None
            await decided(storage, "resume-one", "one")
            assert await order_of(storage) == ["resume-one"], "the message still waits for the other answer"
            assert await storage.claim_run("queued", server_id=SERVER, caller=LOCAL) is None
            assert await current(storage, "queued") == queued
            await decided(storage, "resume-two", "two")
            assert await order_of(storage) == ["resume-two", "queued"]

        self.play(tmp_path, scenario)

    def test_a_message_that_replaces_stays_behind_the_resumes_and_takes_none_of_them_back(self, tmp_path: Path) -> None:
        """In front of them it would make the approval disappear (reproduced R3)."""

        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            await storage.admit_run(new_run("queued", multitask=Multitask.ENQUEUE), caller=LOCAL)
            await ended_waiting(storage, run, "one", "two")
            for name in ("one", "two"):
                await decided(storage, f"resume-{name}", name)
            for name in ("older", "newer"):
                await storage.admit_run(new_run(name, multitask=Multitask.INTERRUPT), caller=LOCAL)
            assert (await current(storage, "older")).cancel_reason is CancelReason.SUPERSEDED
            for name in ("resume-one", "resume-two", "queued", "newer"):
                assert (await current(storage, name)).cancel_requested_at is None
            assert await order_of(storage) == ["resume-one", "resume-two", "older", "newer", "queued"]

        self.play(tmp_path, scenario)

    def test_a_resume_is_admitted_while_a_run_is_active_and_replaces_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two", "three")
            await decided(storage, "resume-one", "one")
            active = await storage.claim_run("resume-one", server_id=SERVER, caller=LOCAL)
            for name, strategy in (("two", Multitask.REJECT), ("three", Multitask.INTERRUPT)):
                resume = new_run(f"resume-{name}", multitask=strategy)
                admission = await storage.decide(answer(name), resume, by="phone", caller=LOCAL)
                assert (admission.created, admission.replaces) == (True, None)
                assert await current(storage, "resume-one") == active
                assert (await current(storage, f"resume-{name}")).cancel_requested_at is None
            assert active is not None
            await finished(storage, active)
            assert await order_of(storage) == ["resume-two", "resume-three"]

        self.play(tmp_path, scenario)
