"""The storage contract, part: claims, epochs, cancelling and ending (durable-runs rules 3, 6, 7 and 8)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from pizzabot.testing.storage_contract.base import (
    SERVER,
    StorageSuite,
    current,
    enqueued,
    finished,
    log,
    log_texts,
    new_run,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest
from pizzabot_hookspecs.storage_backends import CancelReason, RunStatus, Storage

FINAL = [status for status in RunStatus if status.final]


class RunContract(StorageSuite):
    def test_a_claim_makes_a_pending_run_running_with_the_next_epoch_and_attempt(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            pending = (await storage.admit_run(new_run("r"), caller=LOCAL)).run
            run = await storage.claim_run("r", server_id=SERVER, caller=LOCAL)
            assert run is not None
            assert (run.status, run.server_id) == (RunStatus.RUNNING, SERVER)
            assert (run.epoch, run.attempt) == (pending.epoch + 1, pending.attempt + 1)
            assert run.started_at is not None
            assert await current(storage, "r") == run
            assert await storage.active_run("t", caller=LOCAL) == run
            assert await storage.next_pending("t", caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_only_a_pending_run_can_be_claimed(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            assert await storage.claim_run("r", server_id="other", caller=LOCAL) is None
            assert await storage.claim_run("unknown", server_id="other", caller=LOCAL) is None
            await finished(storage, run)
            ended = await current(storage, "r")
            for takeover in (False, True):
                claim = await storage.claim_run("r", server_id="other", takeover=takeover, caller=LOCAL)
                assert claim is None
            assert await current(storage, "r") == ended

        self.play(tmp_path, scenario)

    def test_a_thread_is_held_by_one_run_until_that_has_ended(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            await enqueued(storage, "next")
            assert await storage.claim_run("next", server_id=SERVER, caller=LOCAL) is None
            await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            assert await storage.claim_run("next", server_id=SERVER, caller=LOCAL) is None
            await finished(storage, run, status=RunStatus.CANCELLED)
            assert await storage.active_run("t", caller=LOCAL) is None
            assert await storage.claim_run("next", server_id=SERVER, caller=LOCAL) is not None

        self.play(tmp_path, scenario)

    def test_of_fifty_claims_at_once_on_one_thread_one_succeeds(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            names = [f"r{number}" for number in range(50)]
            for name in names:
                await enqueued(storage, name)
            claims = await asyncio.gather(
                *(storage.claim_run(name, server_id=f"server-{name}", caller=LOCAL) for name in names)
            )
            claimed = [run for run in claims if run is not None]
            assert len(claimed) == 1
            assert await storage.active_run("t", caller=LOCAL) == claimed[0]
            active = [run for run in await storage.unfinished_runs(caller=LOCAL) if run.status.active]
            assert active == claimed

        self.play(tmp_path, scenario)

    def test_of_fifty_claims_at_once_of_one_run_one_succeeds(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await enqueued(storage, "r")
            claims = await asyncio.gather(
                *(storage.claim_run("r", server_id=f"server-{number}", caller=LOCAL) for number in range(50))
            )
            claimed = [run for run in claims if run is not None]
            assert [run.epoch for run in claimed] == [1]
            assert await current(storage, "r") == claimed[0]

        self.play(tmp_path, scenario)

    def test_a_takeover_claims_an_active_run_and_leaves_its_status(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            taken = await storage.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert taken == replace(run, epoch=run.epoch + 1, attempt=run.attempt + 1, server_id="server-2")
            cancelling = await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            assert cancelling is not None
            again = await storage.claim_run("r", server_id="server-3", takeover=True, caller=LOCAL)
            assert again == replace(
                cancelling, epoch=cancelling.epoch + 1, attempt=cancelling.attempt + 1, server_id="server-3"
            )

        self.play(tmp_path, scenario)

    def test_a_takeover_is_no_way_to_start_a_pending_run(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            pending = await enqueued(storage, "r")
            assert await storage.claim_run("r", server_id=SERVER, takeover=True, caller=LOCAL) is None
            assert await current(storage, "r") == pending

        self.play(tmp_path, scenario)

    def test_after_a_takeover_the_first_server_writes_nothing_more(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            old = await started(storage, "r")
            await storage.append_events("r", old.epoch, words("old"), caller=LOCAL)
            new = await storage.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert new is not None
            await refused(storage.append_events("r", old.epoch, words("no"), caller=LOCAL), Conflict, "lease_lost")
            await refused(finished(storage, old, "no"), Conflict, "lease_lost")
            await refused(storage.append_events("r", old.epoch, [], caller=LOCAL), Conflict, "lease_lost")
            assert await current(storage, "r") == new
            assert await storage.append_events("r", new.epoch, words("new"), caller=LOCAL) == 2
            assert await log_texts(storage) == [b'{"text":"old"}', b'{"text":"new"}']

        self.play(tmp_path, scenario)

    def test_an_epoch_of_the_future_or_an_unknown_run_is_refused_too(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            for run_id, epoch in (("r", run.epoch + 1), ("r", 0), ("unknown", 1)):
                write = storage.append_events(run_id, epoch, words("no"), caller=LOCAL)
                await refused(write, Conflict, "lease_lost")
            assert await log_texts(storage) == []

        self.play(tmp_path, scenario)

    def test_ending_appends_the_last_events_and_sets_the_status(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for number, status in enumerate(FINAL):
                run = await started(storage, f"r{number}", f"t{number}")
                await storage.append_events(run.run_id, run.epoch, words("one"), caller=LOCAL)
                seq = await storage.finish_run(
                    run.run_id,
                    run.epoch,
                    words("two", "end"),
                    status=status,
                    error_code="CODE",
                    error="why",
                    caller=LOCAL,
                )
                assert seq == 2
                ended = await current(storage, run.run_id)
                assert ended.ended_at is not None
                assert ended == replace(run, status=status, error_code="CODE", error="why", ended_at=ended.ended_at)
                assert [event.seq for event in await log(storage, f"t{number}")] == [1, 2, 3]
            assert list(await storage.unfinished_runs(caller=LOCAL)) == []

        self.play(tmp_path, scenario)

    def test_a_run_ends_once_and_is_never_written_again(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            await finished(storage, run, "end")
            ended = await current(storage, "r")
            await refused(finished(storage, run, "again", status=RunStatus.ERROR), Conflict, "lease_lost")
            await refused(storage.append_events("r", run.epoch, words("late"), caller=LOCAL), Conflict, "lease_lost")
            assert await current(storage, "r") == ended
            assert await log_texts(storage) == [b'{"text":"end"}']

        self.play(tmp_path, scenario)

    def test_a_run_cannot_end_as_something_that_is_not_final(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            for status in (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.CANCELLING):
                await refused(finished(storage, run, "no", status=status), InvalidRequest, "invalid_status")
            assert await current(storage, "r") == run
            assert await log_texts(storage) == []

        self.play(tmp_path, scenario)

    def test_the_terminal_event_and_the_final_status_appear_together(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            end = asyncio.create_task(finished(storage, run, "end"))
            while True:
                done = end.done()
                before = await current(storage, "r")
                events = await log_texts(storage)
                after = await current(storage, "r")
                assert not before.status.final or events, "the status was final before the terminal event was there"
                assert not events or after.status.final, "the terminal event was there before the status was final"
                if done:
                    break
                await asyncio.sleep(0)
            await end

        self.play(tmp_path, scenario)

    def test_cancelling_a_running_run_is_written_down(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            answer = await storage.request_cancel("r", reason=CancelReason.SHUTDOWN, caller=LOCAL)
            assert answer is not None
            assert answer.cancel_requested_at is not None
            assert answer == replace(
                run,
                status=RunStatus.CANCELLING,
                cancel_reason=CancelReason.SHUTDOWN,
                cancel_requested_at=answer.cancel_requested_at,
            )
            assert await current(storage, "r") == answer
            assert await storage.append_events("r", run.epoch, words("tail"), caller=LOCAL) == 1, "it may still write"

        self.play(tmp_path, scenario)

    def test_a_cancelled_pending_run_stays_pending_with_the_request(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await enqueued(storage, "r")
            answer = await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            assert answer is not None
            assert (answer.status, answer.cancel_reason) == (RunStatus.PENDING, CancelReason.STOPPED)
            assert answer.cancel_requested_at is not None
            assert await storage.next_pending("t", caller=LOCAL) == answer

        self.play(tmp_path, scenario)

    def test_a_pending_run_can_be_ended_without_a_claim(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await started(storage, "active")
            pending = await enqueued(storage, "r")
            assert await finished(storage, pending, "end", status=RunStatus.CANCELLED) == 1
            assert (await current(storage, "r")).status is RunStatus.CANCELLED
            assert await storage.next_pending("t", caller=LOCAL) is None
            assert (await current(storage, "active")).status is RunStatus.RUNNING

        self.play(tmp_path, scenario)

    def test_the_first_reason_to_cancel_stays(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await started(storage, "r")
            await enqueued(storage, "waiting")
            for name in ("r", "waiting"):
                first = await storage.request_cancel(name, reason=CancelReason.STOPPED, caller=LOCAL)
                again = await storage.request_cancel(name, reason=CancelReason.SHUTDOWN, caller=LOCAL)
                assert again == first
                assert await current(storage, name) == first

        self.play(tmp_path, scenario)

    def test_a_run_that_ended_or_never_was_cannot_be_cancelled(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            await finished(storage, run)
            ended = await current(storage, "r")
            for name in ("r", "unknown"):
                assert await storage.request_cancel(name, reason=CancelReason.STOPPED, caller=LOCAL) is None
            assert await current(storage, "r") == ended

        self.play(tmp_path, scenario)

    def test_unfinished_runs_are_all_that_are_not_final_oldest_first(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await started(storage, "running", "a")
            await started(storage, "cancelling", "b")
            await storage.request_cancel("cancelling", reason=CancelReason.STOPPED, caller=LOCAL)
            await enqueued(storage, "pending", "a")
            await finished(storage, await started(storage, "ended", "c"))
            await storage.admit_run(new_run("front", "b"), caller=LOCAL)
            found = await storage.unfinished_runs(caller=LOCAL)
            assert [run.run_id for run in found] == ["running", "cancelling", "pending", "front"]
            assert [run.status for run in found] == ["running", "cancelling", "pending", "pending"]

        self.play(tmp_path, scenario)
