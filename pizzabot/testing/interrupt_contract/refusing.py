"""The interrupt contract, part: no message gets in the way while a thread waits for a person (reproduced R3)."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.interrupt_contract.base import InterruptStore, decided, open_ids, waiting
from pizzabot.testing.run_store_contract.base import (
    ANNA,
    SERVER,
    StoreSuite,
    current,
    finished,
    log,
    new_run,
    refused,
)
from pizzabot_hookspecs import LOCAL, SYSTEM, Conflict
from pizzabot_hookspecs.storage_backends import Multitask


class RefusingContract(StoreSuite):
    def test_a_message_on_a_thread_that_waits_is_refused_with_the_ids(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two")
            stored = list(await log(storage))
            for strategy in Multitask:
                refusal = await refused(
                    storage.admit_run(new_run("x", multitask=strategy), caller=LOCAL), Conflict, "interrupt_pending"
                )
                assert refusal.fields == {"interrupt_ids": "one,two"}
                assert "one" in refusal.detail
            assert await storage.run("x", caller=LOCAL) is None
            assert await storage.next_pending("t", caller=LOCAL) is None
            assert await open_ids(storage) == ["one", "two"], "a message never makes an approval disappear"
            assert list(await log(storage)) == stored

        self.play(tmp_path, scenario)

    def test_the_system_is_refused_too_and_other_threads_are_free(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", caller=ANNA)
            await refused(storage.admit_run(new_run("x"), caller=SYSTEM), Conflict, "interrupt_pending")
            assert (await storage.admit_run(new_run("y", "u"), caller=ANNA)).created

        self.play(tmp_path, scenario)

    def test_a_known_request_is_answered_though_the_thread_waits(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await storage.admit_run(new_run("r", idempotency_key="key", message_id="m"), caller=LOCAL)
            await waiting(storage, "r", "one")
            for new in (new_run("r"), new_run("x", idempotency_key="key"), new_run("x", message_id="m")):
                again = await storage.admit_run(new, caller=LOCAL)
                assert (again.created, again.run.run_id) == (False, "r")
            other = new_run("r", fingerprint="other")
            await refused(storage.admit_run(other, caller=LOCAL), Conflict, "idempotency_mismatch")

        self.play(tmp_path, scenario)

    def test_that_a_person_is_waited_for_is_said_before_that_a_run_is_active(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two")
            await decided(storage, "resume", "one")
            active = await storage.claim_run("resume", server_id=SERVER, caller=LOCAL)
            for strategy in Multitask:
                refusal = await refused(
                    storage.admit_run(new_run("x", multitask=strategy), caller=LOCAL), Conflict, "interrupt_pending"
                )
                assert refusal.fields == {"interrupt_ids": "two"}
            assert await current(storage, "resume") == active, "a refused replacement stops nothing"

        self.play(tmp_path, scenario)

    def test_once_everything_is_decided_messages_are_admitted_again(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two")
            await decided(storage, "resume-1", "one")
            await refused(storage.admit_run(new_run("x"), caller=LOCAL), Conflict, "interrupt_pending")
            await decided(storage, "resume-2", "two")
            assert (await storage.admit_run(new_run("x", multitask=Multitask.ENQUEUE), caller=LOCAL)).created
            for name in ("resume-1", "resume-2", "x"):
                run = await storage.claim_run(name, server_id=SERVER, caller=LOCAL)
                assert run is not None
                await finished(storage, run)

        self.play(tmp_path, scenario)
