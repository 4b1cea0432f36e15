"""The interrupt contract, part: decisions. Each interrupt once, several at a time, all of them or none (rule 9)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

from pizzabot.testing.interrupt_contract.base import (
    ANSWER,
    InterruptStore,
    answer,
    decided,
    known,
    open_ids,
    waiting,
)
from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    SERVER,
    StoreSuite,
    current,
    finished,
    new_run,
    refused,
)
from pizzabot_hookspecs import LOCAL, SYSTEM, Conflict, InvalidRequest, NotFound, PizzabotError
from pizzabot_hookspecs.interrupts import Decision, Interrupt, InterruptState
from pizzabot_hookspecs.storage_backends import RunStatus
from pizzabot_hookspecs.wire import JsonValue


class DecidingContract(StoreSuite):
    def test_a_decision_is_stored_with_who_and_when_and_admits_the_run_that_goes_on(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            asked = await waiting(storage, "r", "one")
            before = await known(storage, "one")
            resume = new_run("resume", input={"answers": {"one": ANSWER}}, options={"a": 1}, idempotency_key="key")
            admission = await storage.decide(answer("one"), resume, by="Anna's phone", caller=LOCAL)
            run = admission.run
            assert (admission.created, admission.replaces, admission.last_seq) == (True, None, 1)
            assert (run.run_id, run.thread_id, run.owner, run.status) == ("resume", "t", "local", RunStatus.PENDING)
            assert (run.input, run.options, run.idempotency_key) == (resume.input, {"a": 1}, "key")
            assert await current(storage, "resume") == run
            after = await known(storage, "one")
            assert after.decided_at is not None
            assert abs(after.decided_at - run.created_at) < 1.0
            assert after == replace(
                before,
                state=InterruptState.DECIDED,
                answer=ANSWER,
                decided_by="Anna's phone",
                decided_at=after.decided_at,
            )
            assert (await current(storage, "r")).epoch == asked.epoch
            assert await open_ids(storage) == []

        self.play(tmp_path, scenario)

    def test_an_answer_is_any_json_value(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            values: list[JsonValue] = ["text 🫖", "", 0, 1.5, True, False, None, [], {}, {"a": [None, {"ž": 1}]}]
            names = [f"i{number}" for number in range(len(values))]
            await waiting(storage, "r", *names)
            pairs = zip(names, values, strict=True)
            decisions = [Decision(interrupt_id=name, answer=value) for name, value in pairs]
            await storage.decide(decisions, new_run("resume"), by="phone", caller=LOCAL)
            for name, value in zip(names, values, strict=True):
                interrupt = await known(storage, name)
                assert (interrupt.state, interrupt.answer) == (InterruptState.DECIDED, value)

        self.play(tmp_path, scenario)

    def test_several_are_decided_at_once_and_the_others_stay_open(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two", "three", "four")
            await decided(storage, "resume", "three", "one")
            assert await open_ids(storage) == ["two", "four"]
            first, third = await known(storage, "one"), await known(storage, "three")
            assert (first.decided_by, first.decided_at) == (third.decided_by, third.decided_at)

        self.play(tmp_path, scenario)

    def test_one_decision_that_cannot_be_takes_back_all_of_them(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two", "three")
            await waiting(storage, "elsewhere", "far", thread_id="u")
            await decided(storage, "first", "two")
            before = [await known(storage, name) for name in ("one", "two", "three", "far")]
            no_json = Decision(interrupt_id="three", answer=object())  # type: ignore[arg-type]
            wrong: list[tuple[list[Decision], type[PizzabotError], str]] = [
                (answer("one", "two", "three"), Conflict, "already_decided"),
                (answer("one", "unknown"), NotFound, "no_such_interrupt"),
                (answer("one", "far"), NotFound, "no_such_interrupt"),
                ([*answer("one"), no_json], InvalidRequest, "not_json"),
                (answer("one", "three", "one"), InvalidRequest, "invalid_decision"),
            ]
            for decisions, kind, code in wrong:
                refusal = storage.decide(decisions, new_run("x"), by="phone", caller=LOCAL)
                await refused(refusal, kind, code)
                assert await storage.run("x", caller=LOCAL) is None
                assert [await known(storage, name) for name in ("one", "two", "three", "far")] == before
            unreadable = new_run("x", input={"broken": object()})
            await refused(
                storage.decide(answer("one"), unreadable, by="phone", caller=LOCAL), InvalidRequest, "not_json"
            )
            assert await open_ids(storage) == ["one", "three"]

        self.play(tmp_path, scenario)

    def test_a_second_decision_is_refused_with_who_and_when(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one")
            await decided(storage, "resume", "one", by="Anna's phone")
            before = await known(storage, "one")
            again = decided(storage, "again", "one", by="Boris's desk")
            refusal = await refused(again, Conflict, "already_decided")
            assert_says_who_and_when(refusal, before)
            assert await known(storage, "one") == before

        self.play(tmp_path, scenario)

    def test_what_is_not_on_the_thread_or_not_the_callers_does_not_exist(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", caller=ANNA)
            await waiting(storage, "his", "two", thread_id="u", caller=BORIS)
            for thread_id, interrupt_id, caller in (
                ("t", "one", BORIS),
                ("t", "unknown", ANNA),
                ("t", "two", ANNA),
                ("u", "one", BORIS),
                ("u", "one", ANNA),
                ("unknown", "one", ANNA),
            ):
                refusal = storage.decide(answer(interrupt_id), new_run("x", thread_id), by="phone", caller=caller)
                await refused(refusal, NotFound, "no_such_interrupt")
            nothing = storage.decide([], new_run("x"), by="phone", caller=ANNA)
            await refused(nothing, NotFound, "no_such_interrupt")
            assert await open_ids(storage, caller=ANNA) == ["one"]
            assert await storage.run("x", caller=SYSTEM) is None
            assert list(await storage.unfinished_runs(caller=SYSTEM)) == []

        self.play(tmp_path, scenario)

    def test_the_system_decides_for_the_threads_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", caller=ANNA)
            admission = await decided(storage, "resume", "one", caller=SYSTEM)
            assert admission.run.owner == "anna"
            assert await current(storage, "resume", caller=ANNA) == admission.run

        self.play(tmp_path, scenario)

    def test_a_request_that_is_sent_again_gets_its_first_answer_and_decides_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await waiting(storage, "r", "one", "two")
            keys = {"idempotency_key": "key", "message_id": "m"}
            first = await storage.decide(answer("one"), new_run("resume", **keys), by="phone", caller=LOCAL)
            before = await known(storage, "one")
            resent = (
                new_run("resume", **keys),
                new_run("by-key", idempotency_key="key"),
                new_run("by-message", message_id="m"),
            )
            for again in resent:
                assert await storage.known_request(again, caller=LOCAL) == replace(first, created=False)
                for ids in (("one",), ("one", "two")):
                    admission = await storage.decide(answer(*ids, value="other"), again, by="desk", caller=LOCAL)
                    assert admission == replace(first, created=False)
            run = await storage.claim_run("resume", server_id=SERVER, caller=LOCAL)
            assert run is not None
            await finished(storage, run, "more", "text")
            late = await storage.decide(answer("one"), resent[0], by="desk", caller=LOCAL)
            assert (late.created, late.run.status, late.last_seq) == (False, RunStatus.SUCCESS, 1)
            assert await known(storage, "one") == before
            assert await open_ids(storage) == ["two"]

        self.play(tmp_path, scenario)

    def test_the_same_key_with_another_request_is_a_mismatch_and_decides_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            await storage.admit_run(new_run("elsewhere", "u"), caller=LOCAL)
            await storage.admit_run(new_run("his", "b"), caller=BORIS)
            await storage.admit_run(new_run("r", idempotency_key="key", message_id="m"), caller=LOCAL)
            await waiting(storage, "r", "one")
            for resume, code in (
                (new_run("r", fingerprint="other"), "idempotency_mismatch"),
                (new_run("x", idempotency_key="key", fingerprint="other"), "idempotency_mismatch"),
                (new_run("x", message_id="m", fingerprint="other"), "idempotency_mismatch"),
                (new_run("elsewhere"), "idempotency_mismatch"),
                (new_run("his"), "run_exists"),
            ):
                refusal = storage.decide(answer("one"), resume, by="phone", caller=LOCAL)
                await refused(refusal, Conflict, code)
            assert await open_ids(storage) == ["one"]

        self.play(tmp_path, scenario)

    def test_one_interrupt_after_the_other_is_decided_in_any_order(self, tmp_path: Path) -> None:
        async def scenario(storage: InterruptStore) -> None:
            names = ["one", "two", "three"]
            await waiting(storage, "r", *names)
            for number, name in enumerate(reversed(names)):
                await decided(storage, f"resume-{number}", name, by=f"client-{number}")
            decisions = [await known(storage, name) for name in reversed(names)]
            assert [interrupt.decided_by for interrupt in decisions] == ["client-0", "client-1", "client-2"]
            for earlier, later in pairwise(decisions):
                assert earlier.decided_at is not None
                assert later.decided_at is not None
                assert earlier.decided_at <= later.decided_at

        self.play(tmp_path, scenario)


def assert_says_who_and_when(refusal: PizzabotError, interrupt: Interrupt) -> None:
    """`detail` has the decider's name and the time in ISO-8601; `fields` the same for programs."""
    assert interrupt.decided_by is not None
    assert interrupt.decided_at is not None
    assert interrupt.decided_by in refusal.detail
    times = []
    for word in refusal.detail.replace(";", " ").split():
        try:
            times.append(datetime.fromisoformat(word.rstrip(":,.")))
        except ValueError:
            continue
    assert len(times) == 1, f"no time, or several, in {refusal.detail!r}"
    assert times[0].tzinfo is not None, "the time has no zone"
    assert abs(times[0].timestamp() - interrupt.decided_at) < 1.0
