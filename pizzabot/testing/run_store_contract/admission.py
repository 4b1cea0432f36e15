"""The run store contract, part: admission, in the order in which `admit_run` decides (durable-runs rules 1 and 11)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    RunStore,
    StoreSuite,
    current,
    finished,
    new_run,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, Conflict, NotFound
from pizzabot_hookspecs.storage_backends import (
    Multitask,
    RunStatus,
)


class AdmissionContract(StoreSuite):
    def test_admission_stores_a_pending_run_its_input_and_its_missing_thread(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            options = {"config": {"configurable": {"model": "echo:echo"}}, "list": [1, 2.5, None]}
            new = new_run("r", options=options, idempotency_key="key", message_id="m")
            admission = await storage.admit_run(new, caller=ANNA)
            run = admission.run
            assert (admission.created, admission.replaces, admission.last_seq) == (True, None, 0)
            assert (run.run_id, run.thread_id, run.owner, run.status) == ("r", "t", "anna", RunStatus.PENDING)
            assert (run.input, run.options) == (new.input, options)
            assert (run.idempotency_key, run.message_id) == ("key", "m")
            assert (run.epoch, run.attempt, run.server_id, run.started_at, run.ended_at) == (0, 0, None, None, None)
            assert await storage.run("r", caller=ANNA) == run

        self.play(tmp_path, scenario)

    def test_a_thread_of_another_owner_does_not_exist_even_for_a_known_request(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await storage.admit_run(new_run("r", idempotency_key="key", message_id="m"), caller=ANNA)
            for new in (new_run("x"), new_run("r", idempotency_key="key", message_id="m", fingerprint="other")):
                await refused(storage.admit_run(new, caller=BORIS), NotFound, "no_such_thread")
            assert await storage.run("x", caller=BORIS) is None

        self.play(tmp_path, scenario)

    def test_the_same_run_id_key_or_message_id_gives_the_first_run(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            first = await storage.admit_run(new_run("r", idempotency_key="key", message_id="m"), caller=LOCAL)
            for new in (
                new_run("r"),
                new_run("by-key", idempotency_key="key"),
                new_run("by-message", message_id="m"),
                new_run("both", idempotency_key="new", message_id="m"),
            ):
                again = await storage.admit_run(new, caller=LOCAL)
                assert (again.created, again.run, again.replaces) == (False, first.run, None)
            assert [run.run_id for run in await storage.unfinished_runs(caller=LOCAL)] == ["r"]

        self.play(tmp_path, scenario)

    def test_a_known_request_is_answered_before_the_thread_is_looked_at(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r", idempotency_key="key")
            for strategy in Multitask:
                again = await storage.admit_run(new_run("x", idempotency_key="key", multitask=strategy), caller=LOCAL)
                assert (again.created, again.run, again.replaces) == (False, run, None)
            assert await current(storage, "r") == run

        self.play(tmp_path, scenario)

    def test_a_known_request_is_answered_after_its_run_has_ended(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            before = await started(storage, "before")
            await finished(storage, before, "one", "two")
            run = await started(storage, "r", message_id="m")
            await finished(storage, run, "three", "four")
            again = await storage.admit_run(new_run("x", message_id="m"), caller=LOCAL)
            assert (again.created, again.run.run_id, again.run.status) == (False, "r", RunStatus.SUCCESS)
            assert again.last_seq == 2, "the highest event before the run's first"

        self.play(tmp_path, scenario)

    def test_the_same_key_with_another_request_is_a_mismatch(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await storage.admit_run(new_run("r", idempotency_key="key", message_id="m"), caller=LOCAL)
            for new in (
                new_run("r", fingerprint="other"),
                new_run("x", idempotency_key="key", fingerprint="other"),
                new_run("x", message_id="m", fingerprint="other"),
            ):
                await refused(storage.admit_run(new, caller=LOCAL), Conflict, "idempotency_mismatch")
            assert [run.run_id for run in await storage.unfinished_runs(caller=LOCAL)] == ["r"]

        self.play(tmp_path, scenario)

    def test_a_run_id_or_key_never_gives_a_run_of_another_thread(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await storage.admit_run(new_run("r", idempotency_key="key", message_id="m"), caller=LOCAL)
            for new in (new_run("r", "u"), new_run("x", "u", idempotency_key="key")):
                await refused(storage.admit_run(new, caller=LOCAL), Conflict, "idempotency_mismatch")
            assert await storage.next_pending("u", caller=LOCAL) is None
            elsewhere = await storage.admit_run(new_run("y", "u", message_id="m"), caller=LOCAL)
            assert elsewhere.created, "a message id is known in its own thread only"

        self.play(tmp_path, scenario)

    def test_whether_a_request_is_known_is_said_without_admitting_it(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            before = await started(storage, "before")
            await finished(storage, before, "one", "two")
            keys: dict[str, Any] = {"idempotency_key": "key", "message_id": "m"}
            assert await storage.known_request(new_run("r", **keys), caller=LOCAL) is None
            assert await storage.known_request(new_run("r", "nowhere"), caller=LOCAL) is None
            assert await storage.next_pending("nowhere", caller=LOCAL) is None
            run = await started(storage, "r", **keys)
            for status in (RunStatus.RUNNING, RunStatus.SUCCESS):
                for new in (
                    new_run("r"),
                    new_run("by-key", idempotency_key="key"),
                    new_run("by-message", message_id="m"),
                ):
                    known = await storage.known_request(new, caller=LOCAL)
                    assert known is not None, f"{new.run_id} was made before"
                    assert (known.created, known.replaces) == (False, None)
                    assert (known.run.run_id, known.run.status) == ("r", status)
                    assert known == await storage.admit_run(new, caller=LOCAL)
                if status is RunStatus.RUNNING:
                    await finished(storage, run, "three")
            assert list(await storage.unfinished_runs(caller=LOCAL)) == []

        self.play(tmp_path, scenario)

    def test_asking_whether_a_request_is_known_finds_what_admission_would_refuse(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await storage.admit_run(new_run("r", idempotency_key="key", message_id="m"), caller=ANNA)
            for new in (
                new_run("r", fingerprint="other"),
                new_run("x", idempotency_key="key", fingerprint="other"),
                new_run("x", message_id="m", fingerprint="other"),
                new_run("r", "u"),
                new_run("x", "u", idempotency_key="key"),
            ):
                await refused(storage.known_request(new, caller=ANNA), Conflict, "idempotency_mismatch")
            assert await storage.known_request(new_run("x", "u", message_id="m"), caller=ANNA) is None
            same = new_run("r", idempotency_key="key", message_id="m")
            await refused(storage.known_request(same, caller=BORIS), NotFound, "no_such_thread")
            await refused(storage.known_request(new_run("r", "b"), caller=BORIS), Conflict, "run_exists")
            assert await storage.known_request(new_run("x", "b", idempotency_key="key"), caller=BORIS) is None

        self.play(tmp_path, scenario)

    def test_a_message_never_takes_the_place_of_another_one_of_its_thread(self, tmp_path: Path) -> None:
        def saying(*texts: str) -> dict[str, Any]:
            """Messages of these texts; the id of each is the first letter."""
            said = [{"id": text[0], "parts": [{"type": "text", "text": text}]} for text in texts]
            return {"messages": said}

        async def scenario(storage: RunStore) -> None:
            await storage.admit_run(new_run("r", message_id="b", input=saying("apple", "bread")), caller=LOCAL)
            for text in ("another", "butter"):
                new = new_run("r2", message_id="c", input=saying(text, "cake"))
                await refused(storage.admit_run(new, caller=LOCAL), Conflict, "idempotency_mismatch")
                await refused(storage.known_request(new, caller=LOCAL), Conflict, "idempotency_mismatch")
            again = new_run("r3", message_id="c", input=saying("apple", "bread", "cake"))
            assert (await storage.admit_run(again, caller=LOCAL)).created
            fork = new_run("r4", message_id=None, input=saying("another"))
            assert (await storage.admit_run(fork, caller=LOCAL)).created
            elsewhere = new_run("r5", "other", message_id="a", input=saying("another"))
            assert (await storage.admit_run(elsewhere, caller=LOCAL)).created

        self.play(tmp_path, scenario)

    def test_the_same_key_of_another_owner_is_independent(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            for caller, thread_id in ((ANNA, "a"), (BORIS, "b")):
                new = new_run(f"run-{thread_id}", thread_id, idempotency_key="key", fingerprint=thread_id)
                admission = await storage.admit_run(new, caller=caller)
                assert admission.created

        self.play(tmp_path, scenario)

    def test_a_run_id_of_another_owner_is_never_answered_with_that_run(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await storage.admit_run(new_run("r", "a"), caller=ANNA)
            await refused(storage.admit_run(new_run("r", "b"), caller=BORIS), Conflict, "run_exists")
            assert await storage.next_pending("b", caller=BORIS) is None
            assert (await current(storage, "r", caller=ANNA)).thread_id == "a"

        self.play(tmp_path, scenario)

    def test_fifty_equal_requests_at_once_make_one_run(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            requests = [new_run(f"r{number}", idempotency_key="key", message_id="m") for number in range(50)]
            answers = await asyncio.gather(*(storage.admit_run(new, caller=LOCAL) for new in requests))
            assert sum(answer.created for answer in answers) == 1
            assert len({answer.run.run_id for answer in answers}) == 1

        self.play(tmp_path, scenario)

    def test_a_refused_admission_changes_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            active = await started(storage, "active", message_id="m")
            await refused(
                storage.admit_run(new_run("x", message_id="m", fingerprint="other"), caller=LOCAL),
                Conflict,
                "idempotency_mismatch",
            )
            await refused(
                storage.admit_run(new_run("x", multitask=Multitask.REJECT), caller=LOCAL), Conflict, "run_active"
            )
            assert await current(storage, "active") == active
            assert await storage.run("x", caller=LOCAL) is None
            assert await storage.next_pending("t", caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_admission_says_the_last_event_before_the_run(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            await storage.append_events("r", run.epoch, words("one", "two", "three"), caller=LOCAL)
            assert (await storage.admit_run(new_run("next"), caller=LOCAL)).last_seq == 3

        self.play(tmp_path, scenario)
