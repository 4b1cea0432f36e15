"""The storage contract, part: threads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    current,
    finished,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest
from pizzabot_hookspecs.storage_backends import (
    LogBounds,
    Storage,
)
from pizzabot_hookspecs.wire import JsonValue


class ThreadContract(WholeSuite):
    def test_a_created_thread_is_read_back_as_it_was_returned(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            metadata: dict[str, JsonValue] = {"tags": ["a", {"deep": None}], "größe": 1.5, "yes": True}
            made = await storage.create_thread("t", caller=ANNA, title="Pizza", source="cron", metadata=metadata)
            assert (made.thread_id, made.owner, made.title, made.source) == ("t", "anna", "Pizza", "cron")
            assert (made.metadata, made.model_id, made.next_seq) == (metadata, None, 1)
            assert made.created_at == made.last_activity_at
            assert await storage.thread("t", caller=ANNA) == made

        self.play(tmp_path, scenario)

    def test_a_thread_has_defaults_for_what_is_not_said(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            made = await storage.create_thread("t", caller=LOCAL)
            assert (made.title, made.source, made.metadata) == ("New conversation", "user", {})

        self.play(tmp_path, scenario)

    def test_a_thread_id_is_taken_whoever_owns_it(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            made = await storage.create_thread("t", caller=ANNA, title="first")
            await refused(storage.create_thread("t", caller=ANNA, title="second"), Conflict, "thread_exists")
            await refused(storage.create_thread("t", caller=BORIS), Conflict, "thread_exists")
            assert await storage.thread("t", caller=ANNA) == made

        self.play(tmp_path, scenario)

    def test_an_unknown_thread_is_none_and_empty(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            assert await storage.thread("t", caller=LOCAL) is None
            assert await storage.active_run("t", caller=LOCAL) is None
            assert await storage.next_pending("t", caller=LOCAL) is None
            assert list(await log(storage)) == []
            assert await storage.log_bounds("t", caller=LOCAL) == LogBounds(
                first_seq=0, last_seq=0, latest_run_seq=None
            )
            assert await storage.delete_thread("t", caller=LOCAL) is False

        self.play(tmp_path, scenario)

    def test_threads_come_newest_activity_first_and_never_more_than_the_limit(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for number in range(5):
                await storage.create_thread(f"t{number}", caller=LOCAL)
            await storage.admit_run(new_run("r", "t1"), caller=LOCAL)
            ids = [thread.thread_id for thread in await storage.threads(caller=LOCAL)]
            assert ids == ["t1", "t4", "t3", "t2", "t0"]
            assert [thread.thread_id for thread in await storage.threads(caller=LOCAL, limit=2)] == ["t1", "t4"]
            assert list(await storage.threads(caller=LOCAL, limit=0)) == []
            await refused(storage.threads(caller=LOCAL, limit=-1), InvalidRequest, "invalid_limit")

        self.play(tmp_path, scenario)

    def test_a_pinned_model_is_remembered_and_can_be_taken_back(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            made = await storage.create_thread("t", caller=LOCAL)
            await storage.pin_model("t", "work:large", caller=LOCAL)
            assert await storage.thread("t", caller=LOCAL) == replace(made, model_id="work:large")
            await storage.pin_model("t", None, caller=LOCAL)
            assert await storage.thread("t", caller=LOCAL) == made
            await storage.pin_model("unknown", "work:large", caller=LOCAL)
            assert await storage.thread("unknown", caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_admission_leaves_an_existing_thread_as_it_is(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL, title="Pizza", source="cron", metadata={"a": 1})
            await storage.admit_run(new_run("r"), caller=LOCAL)
            thread = await storage.thread("t", caller=LOCAL)
            assert thread is not None
            assert (thread.title, thread.source, thread.metadata) == ("Pizza", "cron", {"a": 1})

        self.play(tmp_path, scenario)

    def test_admission_and_end_of_a_run_are_activity_of_its_thread(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            made = await storage.create_thread("t", caller=LOCAL)
            run = await started(storage, "r")
            await finished(storage, run)
            thread = await storage.thread("t", caller=LOCAL)
            ended = await current(storage, "r")
            assert thread is not None
            assert ended.ended_at is not None
            assert made.last_activity_at <= run.created_at <= ended.ended_at <= thread.last_activity_at
            assert thread.created_at == made.created_at

        self.play(tmp_path, scenario)

    def test_a_thread_that_admission_made_has_the_defaults_and_its_callers_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.admit_run(new_run("r"), caller=ANNA)
            thread = await storage.thread("t", caller=ANNA)
            assert thread is not None
            assert (thread.owner, thread.title, thread.source) == ("anna", "New conversation", "user")
            assert (thread.metadata, thread.model_id, thread.next_seq) == ({}, None, 1)
            await refused(storage.admit_run(new_run("r", "u"), caller=ANNA), Conflict, "idempotency_mismatch")
            assert await storage.thread("u", caller=ANNA) is None, "a refused admission makes no thread"

        self.play(tmp_path, scenario)

    def test_a_thread_knows_the_number_that_its_next_event_gets(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            for size, expected in ((1, 2), (40, 42), (0, 42)):
                await storage.append_events("r", run.epoch, words(*["x"] * size), caller=LOCAL)
                thread = await storage.thread("t", caller=LOCAL)
                assert thread is not None
                assert thread.next_seq == expected

        self.play(tmp_path, scenario)

    def test_a_storage_says_whether_several_servers_may_use_it(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            assert storage.shared is self.shared

        self.play(tmp_path, scenario)
