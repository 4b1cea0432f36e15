"""The interrupt contract, part: questions, answers and intents outlive clients and servers (rules 7 and 9)."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.interrupt_contract.base import (
    InterruptStore,
    decided,
    intent_ids,
    known,
    open_ids,
    open_intent,
    waiting,
)
from pizzabot.testing.run_store_contract.base import SERVER, StoreSuite, new_run, refused, words
from pizzabot_hookspecs import LOCAL, Conflict
from pizzabot_hookspecs.interrupts import Interrupt, InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import RunStatus


class KeepingContract(StoreSuite):
    def test_opening_again_finds_questions_and_answers(self, tmp_path: Path) -> None:
        seen: dict[str, Interrupt] = {}

        async def first(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two")
            await decided(storage, "resume", "one")
            seen.update({name: await known(storage, name) for name in ("one", "two")})

        async def second(storage: InterruptStore) -> None:
            if not self.durable:
                assert await open_ids(storage, None) == []
                assert await storage.interrupt("one", caller=LOCAL) is None
                return
            assert {name: await known(storage, name) for name in ("one", "two")} == seen
            assert await open_ids(storage) == await open_ids(storage, None) == ["two"]
            await refused(storage.admit_run(new_run("x"), caller=LOCAL), Conflict, "interrupt_pending")
            await refused(decided(storage, "x", "one"), Conflict, "already_decided")
            assert (await decided(storage, "resume", "one")).created is False
            await decided(storage, "resume-2", "two")
            front = await storage.next_pending("t", caller=LOCAL)
            assert front is not None
            assert front.run_id == "resume"

        self.play(tmp_path, first, second)

    def test_an_intent_that_a_dead_server_left_is_found_and_turned_into_a_question(self, tmp_path: Path) -> None:
        async def first(storage: InterruptStore) -> None:
            await storage.admit_run(new_run("r"), caller=LOCAL)
            run = await storage.claim_run("r", server_id=SERVER, caller=LOCAL)
            assert run is not None
            for call_id in ("done", "open"):
                await open_intent(storage, run, call_id)
            await storage.close_intent("r", run.epoch, "done", caller=LOCAL)

        async def second(storage: InterruptStore) -> None:
            if not self.durable:
                assert await intent_ids(storage, "r") == []
                return
            run = await storage.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert run is not None
            assert await intent_ids(storage, "r") == ["open"]
            asked = NewInterrupt(interrupt_id="what-now", kind=InterruptKind.RECOVERY, payload={"choices": ["retry"]})
            await storage.finish_run(
                "r",
                run.epoch,
                words("end"),
                status=RunStatus.NEEDS_ATTENTION,
                error_code="NEEDS_ATTENTION",
                interrupts=[asked],
                caller=LOCAL,
            )
            assert await open_ids(storage, None) == ["what-now"]
            assert list(await storage.unfinished_runs(caller=LOCAL)) == []
            await refused(open_intent(storage, run, "late"), Conflict, "lease_lost")

        self.play(tmp_path, first, second)
