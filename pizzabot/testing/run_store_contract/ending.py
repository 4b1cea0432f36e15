"""The run store contract, part: cancelling and ending, each once and whole (durable-runs rules 3, 7 and 8)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    RunStore,
    StoreSuite,
    current,
    enqueued,
    finished,
    log,
    log_texts,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest
from pizzabot_hookspecs.storage_backends import (
    CancelReason,
    RunStatus,
)

FINAL = [status for status in RunStatus if status.final]


class EndingContract(StoreSuite):
    def test_ending_appends_the_last_events_and_sets_the_status(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
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
                done = replace(run, status=status, error_code="CODE", error="why", ended_at=ended.ended_at, first_seq=1)
                assert ended == done
                assert [event.seq for event in await log(storage, f"t{number}")] == [1, 2, 3]
            assert list(await storage.unfinished_runs(caller=LOCAL)) == []

        self.play(tmp_path, scenario)

    def test_a_run_ends_once_and_is_never_written_again(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            await finished(storage, run, "end")
            ended = await current(storage, "r")
            await refused(finished(storage, run, "again", status=RunStatus.ERROR), Conflict, "lease_lost")
            await refused(storage.append_events("r", run.epoch, words("late"), caller=LOCAL), Conflict, "lease_lost")
            assert await current(storage, "r") == ended
            assert await log_texts(storage) == [b'{"text":"end"}']

        self.play(tmp_path, scenario)

    def test_a_run_cannot_end_as_something_that_is_not_final(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            for status in (RunStatus.PENDING, RunStatus.RUNNING, RunStatus.CANCELLING):
                await refused(finished(storage, run, "no", status=status), InvalidRequest, "invalid_status")
            assert await current(storage, "r") == run
            assert await log_texts(storage) == []

        self.play(tmp_path, scenario)

    def test_the_terminal_event_and_the_final_status_appear_together(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
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
        async def scenario(storage: RunStore) -> None:
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
        async def scenario(storage: RunStore) -> None:
            await enqueued(storage, "r")
            answer = await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            assert answer is not None
            assert (answer.status, answer.cancel_reason) == (RunStatus.PENDING, CancelReason.STOPPED)
            assert answer.cancel_requested_at is not None
            assert await storage.next_pending("t", caller=LOCAL) == answer

        self.play(tmp_path, scenario)

    def test_a_pending_run_can_be_ended_without_a_claim(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await started(storage, "active")
            pending = await enqueued(storage, "r")
            assert await finished(storage, pending, "end", status=RunStatus.CANCELLED) == 1
            assert (await current(storage, "r")).status is RunStatus.CANCELLED
            assert await storage.next_pending("t", caller=LOCAL) is None
            assert (await current(storage, "active")).status is RunStatus.RUNNING

        self.play(tmp_path, scenario)

    def test_the_first_reason_to_cancel_stays(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await started(storage, "r")
            await enqueued(storage, "waiting")
            for name in ("r", "waiting"):
                first = await storage.request_cancel(name, reason=CancelReason.STOPPED, caller=LOCAL)
                again = await storage.request_cancel(name, reason=CancelReason.SHUTDOWN, caller=LOCAL)
                assert again == first
                assert await current(storage, name) == first

        self.play(tmp_path, scenario)

    def test_a_run_that_ended_or_never_was_cannot_be_cancelled(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            await finished(storage, run)
            ended = await current(storage, "r")
            for name in ("r", "unknown"):
                assert await storage.request_cancel(name, reason=CancelReason.STOPPED, caller=LOCAL) is None
            assert await current(storage, "r") == ended

        self.play(tmp_path, scenario)
