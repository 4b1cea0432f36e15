"""The interrupt contract, part: intents. A call that must not run twice is announced under the run's epoch (rule 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

from pizzabot.testing.interrupt_contract.base import InterruptStore, intent_ids, open_intent
from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    StoreSuite,
    current,
    enqueued,
    finished,
    refused,
    started,
)
from pizzabot_hookspecs import LOCAL, SYSTEM, Caller, Conflict
from pizzabot_hookspecs.interrupts import Intent
from pizzabot_hookspecs.storage_backends import RunStatus


class IntentContract(StoreSuite):
    def test_open_intents_are_read_back_in_the_order_in_which_they_were_opened(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            assert list(await storage.open_intents("r", caller=LOCAL)) == []
            calls = [("z", "send_mail", ()), ("a", "pay", ("tools:1", "ž|1")), ("m", "send_mail", ("tools:2",))]
            for call_id, tool, namespace in calls:
                await storage.open_intent("r", run.epoch, call_id=call_id, tool=tool, namespace=namespace, caller=LOCAL)
            found = await storage.open_intents("r", caller=LOCAL)
            assert list(found) == [
                Intent(run_id="r", call_id=call_id, tool=tool, namespace=namespace, opened_at=intent.opened_at)
                for (call_id, tool, namespace), intent in zip(calls, found, strict=True)
            ]
            assert run.started_at is not None
            assert all(abs(intent.opened_at - run.started_at) < 60.0 for intent in found)

        self.play(tmp_path, scenario)

    def test_a_closed_intent_is_gone_and_closing_again_does_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            for call_id in ("one", "two", "three"):
                await open_intent(storage, run, call_id)
            for _ in range(2):
                await storage.close_intent("r", run.epoch, "two", caller=LOCAL)
                await storage.close_intent("r", run.epoch, "unknown", caller=LOCAL)
                assert await intent_ids(storage, "r") == ["one", "three"]

        self.play(tmp_path, scenario)

    def test_opening_what_is_open_does_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            for call_id in ("one", "two"):
                await open_intent(storage, run, call_id)
            before = list(await storage.open_intents("r", caller=LOCAL))
            await storage.open_intent("r", run.epoch, call_id="one", tool="other", namespace=(), caller=LOCAL)
            await asyncio.gather(*(open_intent(storage, run, "one") for _ in range(20)))
            assert list(await storage.open_intents("r", caller=LOCAL)) == before

        self.play(tmp_path, scenario)

    def test_an_intent_that_was_closed_can_be_opened_again_and_is_then_the_last(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            for call_id in ("one", "two"):
                await open_intent(storage, run, call_id)
            await storage.close_intent("r", run.epoch, "one", caller=LOCAL)
            await open_intent(storage, run, "one")
            assert await intent_ids(storage, "r") == ["two", "one"]

        self.play(tmp_path, scenario)

    def test_call_ids_of_different_runs_are_apart(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            first, second = await started(storage, "r1", "a"), await started(storage, "r2", "b")
            for run in (first, second):
                await open_intent(storage, run, "call")
            await storage.close_intent("r1", first.epoch, "call", caller=LOCAL)
            assert (await intent_ids(storage, "r1"), await intent_ids(storage, "r2")) == ([], ["call"])

        self.play(tmp_path, scenario)

    def test_who_was_replaced_neither_opens_nor_closes_an_intent(self, tmp_path: Path) -> None:
        async def scenario(first: InterruptStore, second: InterruptStore) -> None:
            old = await started(first, "r")
            await open_intent(first, old, "before")
            new = await second.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert new is not None
            await refused(open_intent(first, old, "late"), Conflict, "lease_lost")
            await refused(open_intent(first, old, "before"), Conflict, "lease_lost")
            for call_id in ("before", "unknown"):
                late = first.close_intent("r", old.epoch, call_id, caller=LOCAL)
                await refused(late, Conflict, "lease_lost")
            assert await intent_ids(first, "r") == await intent_ids(second, "r") == ["before"]
            await second.close_intent("r", new.epoch, "before", caller=LOCAL)
            await open_intent(second, new, "after")
            assert await intent_ids(first, "r") == ["after"]

        self.play_two(tmp_path, scenario)

    def test_a_tool_that_races_a_takeover_is_announced_before_it_or_does_not_run(self, tmp_path: Path) -> None:
        async def scenario(first: InterruptStore, second: InterruptStore) -> None:
            old = await started(first, "r")
            opening = [asyncio.create_task(open_intent(first, old, f"call-{number}")) for number in range(20)]
            new = await second.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert new is not None
            found = await intent_ids(second, "r")
            answers = await asyncio.gather(*opening, return_exceptions=True)
            allowed = [f"call-{number}" for number, given in enumerate(answers) if given is None]
            assert sorted(found) == sorted(allowed), "a tool was allowed that the new owner does not know of"
            assert all(isinstance(given, Conflict) for given in answers if given is not None)

        self.play_two(tmp_path, scenario)

    def test_only_a_run_that_goes_on_has_intents(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r")
            await open_intent(storage, run, "open")
            await finished(storage, run, "end", status=RunStatus.ERROR)
            waiting = await enqueued(storage, "waiting")
            wrong: list[Awaitable[None]] = [
                open_intent(storage, run, "late"),
                storage.close_intent("r", run.epoch, "open", caller=LOCAL),
                open_intent(storage, waiting, "early", epoch=waiting.epoch + 1),
                _open("unknown", storage, LOCAL),
                storage.close_intent("unknown", 1, "call", caller=LOCAL),
            ]
            for call in wrong:
                await refused(call, Conflict, "lease_lost")
            assert await intent_ids(storage, "waiting") == await intent_ids(storage, "unknown") == []

        self.play(tmp_path, scenario)

    def test_intents_belong_to_the_runs_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            run = await started(storage, "r", caller=ANNA)
            await open_intent(storage, run, "call")
            await refused(_open("r", storage, BORIS), Conflict, "lease_lost")
            closing = storage.close_intent("r", run.epoch, "call", caller=BORIS)
            await refused(closing, Conflict, "lease_lost")
            assert await intent_ids(storage, "r", caller=BORIS) == []
            assert await intent_ids(storage, "r", caller=SYSTEM) == ["call"]
            await storage.close_intent("r", run.epoch, "call", caller=SYSTEM)
            assert await intent_ids(storage, "r", caller=ANNA) == []
            assert await current(storage, "r", caller=ANNA) == run

        self.play(tmp_path, scenario)


async def _open(run_id: str, storage: InterruptStore, caller: Caller) -> None:
    await storage.open_intent(run_id, 1, call_id="call", tool="pay", namespace=(), caller=caller)
