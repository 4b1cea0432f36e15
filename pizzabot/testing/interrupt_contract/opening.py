"""The interrupt contract, part: interrupts open with the end of the run that asks, and are listed oldest first."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path

from pizzabot.testing.interrupt_contract.base import (
    PAYLOAD,
    InterruptStore,
    answer,
    decided,
    ended_waiting,
    known,
    open_ids,
    question,
    waiting,
)
from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    SERVER,
    StoreSuite,
    current,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, SYSTEM, Conflict, InvalidRequest
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import RunStatus


class OpeningContract(StoreSuite):
    def test_an_interrupt_is_read_back_as_it_was_asked(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r", caller=ANNA)
            asked = [question(kind.value, kind) for kind in InterruptKind]
            await storage.finish_run(
                "r", run.epoch, words("asks"), status=RunStatus.INTERRUPTED, interrupts=asked, caller=ANNA
            )
            ended = await current(storage, "r", caller=ANNA)
            found = await storage.open_interrupts("t", caller=ANNA)
            assert list(found) == [
                Interrupt(
                    interrupt_id=new.interrupt_id,
                    run_id="r",
                    thread_id="t",
                    owner="anna",
                    kind=new.kind,
                    payload=PAYLOAD,
                    namespace=("tools:1", "model:ž"),
                    state=InterruptState.OPEN,
                    created_at=interrupt.created_at,
                )
                for new, interrupt in zip(asked, found, strict=True)
            ]
            for interrupt in found:
                assert ended.ended_at is not None
                assert abs(interrupt.created_at - ended.ended_at) < 1.0
                assert await storage.interrupt(interrupt.interrupt_id, caller=ANNA) == interrupt

        self.play(tmp_path, scenario)

    def test_what_is_stored_does_not_change_with_the_object_that_was_handed_in(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            payload = copy.deepcopy(PAYLOAD)
            run = await started(storage, "r")
            new = NewInterrupt(interrupt_id="one", kind=InterruptKind.INPUT, payload=payload)
            await storage.finish_run("r", run.epoch, [], status=RunStatus.INTERRUPTED, interrupts=[new], caller=LOCAL)
            payload["action_requests"].clear()
            assert (await known(storage, "one")).payload == PAYLOAD
            assert (await known(storage, "one")).namespace == ()

        self.play(tmp_path, scenario)

    def test_interrupts_appear_together_with_the_final_status(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            end = asyncio.create_task(ended_waiting(storage, run, "one", "two"))
            while True:
                done = end.done()
                before = await current(storage, "r")
                ids = await open_ids(storage)
                after = await current(storage, "r")
                assert ids in ([], ["one", "two"])
                assert not before.status.final or ids, "the status was final before the questions were there"
                assert not ids or after.status.final, "the questions were there before the status was final"
                if done:
                    break
                await asyncio.sleep(0)
            await end

        self.play(tmp_path, scenario)

    def test_a_refused_end_opens_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            no_json = NewInterrupt(interrupt_id="two", kind=InterruptKind.INPUT, payload={"broken": object()})
            for epoch, asked, kind, code in (
                (run.epoch + 1, [question("one")], Conflict, "lease_lost"),
                (run.epoch, [question("one"), no_json], InvalidRequest, "not_json"),
            ):
                end = storage.finish_run(
                    "r", epoch, words("no"), status=RunStatus.INTERRUPTED, interrupts=asked, caller=LOCAL
                )
                await refused(end, kind, code)
                assert await open_ids(storage) == []
                assert await current(storage, "r") == run
                assert list(await log(storage)) == []

        self.play(tmp_path, scenario)

    def test_an_interrupt_that_is_reported_again_stays_as_it_is(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two", "three")
            await decided(storage, "resume", "one")
            resumed = await storage.claim_run("resume", server_id=SERVER, caller=LOCAL)
            assert resumed is not None
            await decided(storage, "other", "two")
            before = {name: await known(storage, name) for name in ("one", "two", "three")}
            await ended_waiting(storage, resumed, "three", "two", "four")
            for name, interrupt in before.items():
                assert await known(storage, name) == interrupt
            assert await open_ids(storage) == ["three", "four"]
            assert (await known(storage, "four")).run_id == "resume"

        self.play(tmp_path, scenario)

    def test_an_id_is_known_in_its_own_thread_only(self, tmp_path: Path) -> None:
        """A copied thread brings the ids of its interrupts with it, and its run must be able to end all the same."""

        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "hers", "one", thread_id="a", caller=ANNA)
            await waiting(storage, "his", "one", thread_id="b", caller=BORIS)
            assert await open_ids(storage, "a", caller=ANNA) == await open_ids(storage, "b", caller=BORIS) == ["one"]
            assert (await known(storage, "one", caller=ANNA)).run_id == "hers"
            assert (await known(storage, "one", caller=BORIS)).run_id == "his"
            await waiting(storage, "copied", "one", thread_id="c", caller=ANNA)
            resume = new_run("resume", "a")
            assert (await storage.decide(answer("one"), resume, by="phone", caller=ANNA)).created
            assert (await known(storage, "one", caller=ANNA)).thread_id == "c", "of several the open one is found"
            assert (await known(storage, "one", caller=BORIS)).state is InterruptState.OPEN

        self.play(tmp_path, scenario)

    def test_open_interrupts_come_oldest_first_of_one_thread_or_of_all(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r1", "one", "two", thread_id="a")
            await waiting(storage, "r2", "three", thread_id="b")
            await waiting(storage, "r3", "four", thread_id="c")
            assert await open_ids(storage, "a") == ["one", "two"]
            assert await open_ids(storage, None) == ["one", "two", "three", "four"]
            assert await open_ids(storage, "unknown") == []
            await storage.decide(answer("three"), new_run("resume", "b"), by="phone", caller=LOCAL)
            assert await open_ids(storage, None) == ["one", "two", "four"]
            assert await open_ids(storage, "b") == []

        self.play(tmp_path, scenario)

    def test_no_more_open_interrupts_are_listed_than_the_limit(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            names = [f"i{number:03}" for number in range(210)]
            await waiting(storage, "r", *names)
            assert await open_ids(storage) == await open_ids(storage, None) == names[:200]
            for thread_id in ("t", None):
                for limit in (0, 3, 1000):
                    found = await storage.open_interrupts(thread_id, limit=limit, caller=LOCAL)
                    assert [interrupt.interrupt_id for interrupt in found] == names[:limit]
                refusal = storage.open_interrupts(thread_id, limit=-1, caller=LOCAL)
                await refused(refusal, InvalidRequest, "invalid_limit")

        self.play(tmp_path, scenario)

    def test_nobody_sees_what_is_asked_of_another_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "hers", "one", thread_id="a", caller=ANNA)
            await waiting(storage, "his", "two", thread_id="b", caller=BORIS)
            assert await open_ids(storage, None, caller=ANNA) == ["one"]
            assert await open_ids(storage, "a", caller=BORIS) == []
            assert await storage.interrupt("one", caller=BORIS) is None
            assert await storage.interrupt("unknown", caller=ANNA) is None
            assert await open_ids(storage, None, caller=SYSTEM) == ["one", "two"]
            assert await storage.interrupt("one", caller=SYSTEM) == await storage.interrupt("one", caller=ANNA)

        self.play(tmp_path, scenario)

    def test_a_run_that_the_system_ends_asks_the_runs_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r", caller=ANNA)
            asked = [question("recovery", InterruptKind.RECOVERY)]
            await storage.finish_run(
                "r", run.epoch, words("end"), status=RunStatus.NEEDS_ATTENTION, interrupts=asked, caller=SYSTEM
            )
            assert (await known(storage, "recovery", caller=ANNA)).owner == "anna"
            assert await open_ids(storage, None, caller=ANNA) == ["recovery"]

        self.play(tmp_path, scenario)
