"""The storage contract, part: a deleted thread takes everything with it that is its own."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.interrupt_contract.base import open_intent, waiting
from pizzabot.testing.run_store_contract.base import (
    SERVER,
    enqueued,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, Conflict, NotFound
from pizzabot_hookspecs.interrupts import Decision
from pizzabot_hookspecs.storage_backends import (
    Storage,
)


class DeletingContract(WholeSuite):
    def test_deleting_a_thread_takes_its_runs_and_events_and_no_others(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r", idempotency_key="key", message_id="m")
            await storage.append_events("r", run.epoch, words("one"), caller=LOCAL)
            await enqueued(storage, "waiting")
            other = await started(storage, "other", "u")
            await storage.append_events("other", other.epoch, words("two"), caller=LOCAL)
            assert await storage.delete_thread("t", caller=LOCAL) is True
            assert await storage.thread("t", caller=LOCAL) is None
            assert await storage.run("r", caller=LOCAL) is None
            assert list(await log(storage)) == []
            assert [run.run_id for run in await storage.unfinished_runs(caller=LOCAL)] == ["other"]
            assert len(await log(storage, "u")) == 1
            late = storage.append_events("r", run.epoch, words("late"), caller=LOCAL)
            await refused(late, Conflict, "lease_lost")
            assert await storage.delete_thread("t", caller=LOCAL) is False

        self.play(tmp_path, scenario)

    def test_a_deleted_thread_leaves_no_trace_for_a_new_one_of_its_id(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            old = await started(storage, "r", idempotency_key="key", message_id="m")
            await storage.append_events("r", old.epoch, words("old"), caller=LOCAL)
            await storage.delete_thread("t", caller=LOCAL)
            again = new_run("r2", idempotency_key="key", message_id="m", fingerprint="other")
            admission = await storage.admit_run(again, caller=LOCAL)
            assert (admission.created, admission.replaces, admission.last_seq) == (True, None, 0)
            assert list(await log(storage)) == []

        self.play(tmp_path, scenario)

    def test_deleting_a_thread_takes_its_interrupts_and_intents_and_no_others(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for thread_id in ("t", "u"):
                await waiting(storage, f"{thread_id}-asked", "one", "two", thread_id=thread_id)
                decisions = [Decision(interrupt_id="one", answer=True)]
                await storage.decide(decisions, new_run(f"{thread_id}-resume", thread_id), by="me", caller=LOCAL)
                run = await storage.claim_run(f"{thread_id}-resume", server_id=SERVER, caller=LOCAL)
                assert run is not None
                await open_intent(storage, run, "call")
            assert await storage.delete_thread("t", caller=LOCAL) is True
            assert list(await storage.open_intents("t-resume", caller=LOCAL)) == []
            assert [found.thread_id for found in await storage.open_interrupts(caller=LOCAL)] == ["u"]
            for interrupt_id in ("one", "two"):
                left = await storage.interrupt(interrupt_id, caller=LOCAL)
                assert left is not None
                assert left.thread_id == "u"
            assert [intent.call_id for intent in await storage.open_intents("u-resume", caller=LOCAL)] == ["call"]
            again = await storage.admit_run(new_run("again"), caller=LOCAL)
            assert again.created, "a thread that was deleted waits for nobody"
            late = storage.decide([Decision(interrupt_id="two", answer=True)], new_run("late"), by="me", caller=LOCAL)
            await refused(late, NotFound, "no_such_interrupt")

        self.play(tmp_path, scenario)
