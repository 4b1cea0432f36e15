"""The storage contract, part: threads and settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pizzabot.testing.storage_contract.base import (
    ANNA,
    BORIS,
    StorageSuite,
    current,
    enqueued,
    finished,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest
from pizzabot_hookspecs.storage_backends import LogBounds, Storage
from pizzabot_hookspecs.wire import JsonValue


class ThreadContract(StorageSuite):
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

    def test_a_setting_is_any_json_value_and_none_deletes_it(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            values: list[JsonValue] = ["dark", 0, 1.5, False, "", [], {}, {"a": [1, None, {"ž": "🫖"}]}]
            assert await storage.setting("key", caller=ANNA) is None
            for value in values:
                await storage.put_setting("key", value, caller=ANNA)
                assert await storage.setting("key", caller=ANNA) == value
            await storage.put_setting("key", None, caller=ANNA)
            assert await storage.setting("key", caller=ANNA) is None
            await storage.put_setting("key", None, caller=ANNA)

        self.play(tmp_path, scenario)

    def test_what_is_not_json_is_refused_and_changes_nothing(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            no_json: dict[str, JsonValue] = {"broken": object()}  # type: ignore[dict-item]
            await storage.put_setting("key", "before", caller=LOCAL)
            await refused(storage.put_setting("key", no_json, caller=LOCAL), InvalidRequest, "not_json")
            assert await storage.setting("key", caller=LOCAL) == "before"
            await refused(storage.admit_run(new_run("r", input=no_json), caller=LOCAL), InvalidRequest, "not_json")
            assert await storage.thread("t", caller=LOCAL) is None
            await refused(storage.create_thread("t", caller=LOCAL, metadata=no_json), InvalidRequest, "not_json")
            assert await storage.thread("t", caller=LOCAL) is None

        self.play(tmp_path, scenario)
