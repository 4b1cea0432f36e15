"""The interrupt contract, part: a turn that is given up takes back what it asked (rules 8 and 9)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from pizzabot.testing.interrupt_contract.base import (
    InterruptStore,
    answer,
    decided,
    ended_waiting,
    known,
    open_ids,
    waiting,
)
from pizzabot.testing.run_store_contract.base import (
    ANNA,
    SERVER,
    StoreSuite,
    current,
    enqueued,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, SYSTEM, Conflict, NotFound, PizzabotError
from pizzabot_hookspecs.interrupts import Interrupt, InterruptState
from pizzabot_hookspecs.storage_backends import Admission, CancelReason, Run, RunStatus, RunStorage

RACES = 20


class WithdrawingContract(StoreSuite):
    def test_a_turn_that_is_given_up_takes_back_its_open_questions_and_nothing_else(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "elsewhere", "far", thread_id="u")
            run = await resumed(storage, "one", "two", "three")
            before = {name: await known(storage, name) for name in ("one", "two", "three", "far")}
            await given_up(storage, run)
            assert await open_ids(storage) == []
            for name in ("two", "three"):
                after = await known(storage, name)
                assert after.decided_at is not None
                assert after == replace(
                    before[name],
                    state=InterruptState.WITHDRAWN,
                    answer=None,
                    decided_by=None,
                    decided_at=after.decided_at,
                )
                ended = await current(storage, run.run_id)
                assert ended.ended_at is not None
                assert abs(after.decided_at - ended.ended_at) < 1.0
            for name in ("one", "far"):
                assert await known(storage, name) == before[name]
            assert await open_ids(storage, None) == ["far"]

        self.play(tmp_path, scenario)

    def test_a_turn_that_ends_otherwise_leaves_its_questions_open(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            for number, status in enumerate(status for status in RunStatus if status.final):
                thread_id = f"t{number}"
                await waiting(storage, f"r{number}", "one", "two", thread_id=thread_id)
                await storage.decide(answer("one"), new_run(f"on{number}", thread_id), by="phone", caller=LOCAL)
                run = await storage.claim_run(f"on{number}", server_id=SERVER, caller=LOCAL)
                assert run is not None
                await storage.finish_run(run.run_id, run.epoch, [], status=status, caller=LOCAL)
                assert await open_ids(storage, thread_id) == ["two"]

        self.play(tmp_path, scenario)

    def test_every_resume_that_waits_is_asked_to_stop_and_no_message_is(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            first = await started(storage, "r")
            queued = await enqueued(storage, "queued")
            await ended_waiting(storage, first, "one", "two", "three", "four")
            for name in ("one", "two", "three"):
                await decided(storage, f"resume-{name}", name)
            await storage.request_cancel("resume-three", reason=CancelReason.SHUTDOWN, caller=LOCAL)
            earlier = await current(storage, "resume-three")
            run = await storage.claim_run("resume-one", server_id=SERVER, caller=LOCAL)
            assert run is not None
            await given_up(storage, run)
            stopped = await current(storage, "resume-two")
            assert (stopped.status, stopped.cancel_reason) == (RunStatus.PENDING, CancelReason.STOPPED)
            assert stopped.cancel_requested_at is not None
            assert await current(storage, "resume-three") == earlier, "the first reason stays"
            assert await current(storage, "queued") == queued
            assert (await current(storage, "resume-one")).cancel_requested_at is None

        self.play(tmp_path, scenario)

    def test_a_withdrawn_one_cannot_be_decided_and_the_refusal_says_why(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await resumed(storage, "one", "two", "three")
            await given_up(storage, run)
            before = await known(storage, "two")
            assert_says_that_it_was_withdrawn(
                await refused(decided(storage, "late", "two"), Conflict, "already_decided"), before
            )
            await waiting(storage, "next", "four")
            both = storage.decide(answer("four", "two"), new_run("late"), by="phone", caller=LOCAL)
            assert_says_that_it_was_withdrawn(await refused(both, Conflict, "already_decided"), before)
            assert await open_ids(storage) == ["four"], "all or nothing"
            assert await known(storage, "two") == before
            assert await storage.run("late", caller=LOCAL) is None
            await refused(decided(storage, "late", "two", caller=ANNA), NotFound, "no_such_interrupt")

        self.play(tmp_path, scenario)

    def test_a_withdrawn_one_that_is_reported_again_stays_withdrawn(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await resumed(storage, "one", "two")
            await given_up(storage, run)
            before = await known(storage, "two")
            await waiting(storage, "next", "two", "three")
            assert await known(storage, "two") == before
            assert await open_ids(storage) == ["three"]
            await decided(storage, "on", "three")
            again = await storage.claim_run("on", server_id=SERVER, caller=LOCAL)
            assert again is not None
            await given_up(storage, again)
            assert await known(storage, "two") == before, "it is withdrawn once"

        self.play(tmp_path, scenario)

    def test_after_a_turn_was_given_up_messages_are_admitted_again(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await resumed(storage, "one", "two")
            await refused(storage.admit_run(new_run("x"), caller=LOCAL), Conflict, "interrupt_pending")
            await given_up(storage, run)
            assert await started(storage, "x")

        self.play(tmp_path, scenario)

    def test_a_refused_end_withdraws_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await resumed(storage, "one", "two", "three")
            await decided(storage, "resume-two", "two")
            before = [await known(storage, name) for name in ("one", "two", "three")]
            await refused(given_up(storage, replace(run, epoch=run.epoch + 1)), Conflict, "lease_lost")
            assert [await known(storage, name) for name in ("one", "two", "three")] == before
            assert (await current(storage, "resume-two")).cancel_requested_at is None
            assert await current(storage, run.run_id) == run

        self.play(tmp_path, scenario)

    def test_questions_go_together_with_the_final_status(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await resumed(storage, "one", "two")
            end = asyncio.create_task(given_up(storage, run))
            while True:
                done = end.done()
                before = await current(storage, run.run_id)
                ids = await open_ids(storage)
                after = await current(storage, run.run_id)
                assert not before.status.final or not ids, "the status was final while the question was still open"
                assert ids or after.status.final, "the question was withdrawn before the status was final"
                if done:
                    break
                await asyncio.sleep(0)
            await end
            assert len(await log(storage)) == 2

        self.play(tmp_path, scenario)

    def test_an_answer_that_races_the_stop_is_refused_or_its_run_is_stopped(self, tmp_path: Path) -> None:
        async def scenario(first: InterruptStore, second: InterruptStore) -> None:
            for number in range(RACES):
                thread_id, asked = f"t{number}", f"two-{number}"
                run = await resumed(first, "one", asked, thread_id=thread_id)
                late = new_run(f"late-{number}", thread_id)
                deciding = second.decide(answer(asked), late, by="phone", caller=LOCAL)
                stopping = given_up(first, run)
                calls = (deciding, stopping) if number % 2 else (stopping, deciding)
                given = (await asyncio.gather(*calls, return_exceptions=True))[not number % 2]
                state = (await known(second, asked)).state
                if isinstance(given, Admission):
                    assert state is InterruptState.DECIDED
                    assert (await current(first, late.run_id)).cancel_requested_at is not None
                else:
                    assert state is InterruptState.WITHDRAWN
                    assert await first.run(late.run_id, caller=LOCAL) is None
                    assert isinstance(given, Conflict), repr(given)
                    assert given.code == "already_decided"

        self.play_two(tmp_path, scenario)

    def test_opening_again_finds_what_was_withdrawn(self, tmp_path: Path) -> None:
        seen: dict[str, Interrupt] = {}

        async def first(storage: InterruptStore) -> None:
            run = await resumed(storage, "one", "two", "three")
            await decided(storage, "resume-two", "two")
            await given_up(storage, run)
            seen.update({name: await known(storage, name) for name in ("one", "two", "three")})

        async def second(storage: InterruptStore) -> None:
            if not self.durable:
                assert await storage.interrupt("three", caller=LOCAL) is None
                return
            assert {name: await known(storage, name) for name in seen} == seen
            assert (await current(storage, "resume-two")).cancel_reason is CancelReason.STOPPED

        self.play(tmp_path, first, second)


async def resumed(storage: InterruptStore, answered: str, *others: str, thread_id: str = "t") -> Run:
    """A thread whose run has asked for all of them; the run that goes on with the first answer, claimed."""
    asks, goes_on = f"asks-{thread_id}", f"resume-{answered}-{thread_id}"
    await waiting(storage, asks, answered, *others, thread_id=thread_id)
    await storage.decide(answer(answered), new_run(goes_on, thread_id), by="phone", caller=LOCAL)
    run = await storage.claim_run(goes_on, server_id=SERVER, caller=LOCAL)
    assert run is not None
    return run


async def given_up(storage: RunStorage, run: Run) -> None:
    """As the host ends a run that was stopped."""
    await storage.finish_run(
        run.run_id, run.epoch, words("end"), status=RunStatus.CANCELLED, withdraw=True, caller=SYSTEM
    )


def assert_says_that_it_was_withdrawn(refusal: PizzabotError, interrupt: Interrupt) -> None:
    assert interrupt.interrupt_id in refusal.detail
    assert "withdrawn" in refusal.detail
    assert set(refusal.fields) == {"interrupt_id", "decided_at"}, "nobody decided it"
    assert refusal.fields["interrupt_id"] == interrupt.interrupt_id
    told = datetime.fromisoformat(refusal.fields["decided_at"])
    assert interrupt.decided_at is not None
    assert abs(told.timestamp() - interrupt.decided_at) < 1.0
