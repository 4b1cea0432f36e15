"""The storage contract, part: what a thread's runs and interrupts say of it, and listing threads that are so."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.interrupt_contract.base import decided, ended_waiting, waiting
from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    SERVER,
    current,
    enqueued,
    finished,
    new_run,
    refused,
    started,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, SYSTEM, Caller, InvalidRequest
from pizzabot_hookspecs.storage_backends import CancelReason, RunStatus, Storage, ThreadStatus

FAILED = (RunStatus.ERROR, RunStatus.TIMEOUT)
PAGE = 3


class ThreadStatusContract(WholeSuite):
    def test_a_thread_is_busy_while_a_run_of_it_is_not_final(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            made = await storage.create_thread("t", caller=LOCAL)
            assert made.status is ThreadStatus.IDLE
            assert await status_of(storage) is ThreadStatus.IDLE
            await storage.admit_run(new_run("r"), caller=LOCAL)
            assert await status_of(storage) is ThreadStatus.BUSY, "pending"
            run = await storage.claim_run("r", server_id=SERVER, caller=LOCAL)
            assert run is not None
            assert await status_of(storage) is ThreadStatus.BUSY, "running"
            await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            assert await status_of(storage) is ThreadStatus.BUSY, "cancelling"
            await enqueued(storage, "queued")
            await finished(storage, run)
            assert await status_of(storage) is ThreadStatus.BUSY, "the next one waits for its turn"
            queued = await storage.claim_run("queued", server_id=SERVER, caller=LOCAL)
            assert queued is not None
            await finished(storage, queued)
            assert await status_of(storage) is ThreadStatus.IDLE

        self.play(tmp_path, scenario)

    def test_a_thread_is_in_error_when_the_run_that_ended_last_failed_or_timed_out(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            finals = [status for status in RunStatus if status.final]
            for number, status in enumerate([*finals, *reversed(finals)]):
                await finished(storage, await started(storage, f"r{number}"), "end", status=status)
                expected = ThreadStatus.ERROR if status in FAILED else ThreadStatus.IDLE
                assert await status_of(storage) is expected, status
            await finished(storage, await started(storage, "failed"), status=RunStatus.ERROR)
            running = await started(storage, "next")
            assert await status_of(storage) is ThreadStatus.BUSY
            await finished(storage, running)
            assert await status_of(storage) is ThreadStatus.IDLE

        self.play(tmp_path, scenario)

    def test_a_message_that_ended_in_the_queue_does_not_hide_the_failure_before_it(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            running = await started(storage, "r")
            queued = await enqueued(storage, "queued")
            await finished(storage, running, "end", status=RunStatus.ERROR)
            await finished(storage, queued, "end", status=RunStatus.CANCELLED)
            assert await status_of(storage) is ThreadStatus.ERROR

        self.play(tmp_path, scenario)

    def test_a_thread_is_interrupted_while_it_waits_for_a_person_and_nothing_is_busy(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await waiting(storage, "r", "one", "two")
            assert await status_of(storage) is ThreadStatus.INTERRUPTED
            await decided(storage, "resume-one", "one")
            assert await status_of(storage) is ThreadStatus.BUSY, "a resume may begin though another question is open"
            resume = await storage.claim_run("resume-one", server_id=SERVER, caller=LOCAL)
            assert resume is not None
            assert await status_of(storage) is ThreadStatus.BUSY
            await finished(storage, resume, status=RunStatus.ERROR)
            assert await status_of(storage) is ThreadStatus.INTERRUPTED, "a question comes before a failure"
            await decided(storage, "resume-two", "two")
            last = await storage.claim_run("resume-two", server_id=SERVER, caller=LOCAL)
            assert last is not None
            await finished(storage, last)
            assert await status_of(storage) is ThreadStatus.IDLE

        self.play(tmp_path, scenario)

    def test_a_message_that_waits_for_an_answer_makes_no_thread_busy(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            await enqueued(storage, "queued")
            await ended_waiting(storage, run, "one")
            assert await status_of(storage) is ThreadStatus.INTERRUPTED, "only a person gets it going again"
            await storage.request_cancel("queued", reason=CancelReason.STOPPED, caller=LOCAL)
            assert await status_of(storage) is ThreadStatus.BUSY, "what is to be stopped may begin"
            stopped = await storage.claim_run("queued", server_id=SERVER, caller=LOCAL)
            assert stopped is not None
            await finished(storage, stopped, status=RunStatus.CANCELLED)
            assert await status_of(storage) is ThreadStatus.INTERRUPTED

        self.play(tmp_path, scenario)

    def test_a_thread_whose_questions_were_withdrawn_waits_for_nobody(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await waiting(storage, "r", "one", "two")
            await decided(storage, "resume", "one")
            run = await storage.claim_run("resume", server_id=SERVER, caller=LOCAL)
            assert run is not None
            await storage.finish_run("resume", run.epoch, [], status=RunStatus.CANCELLED, withdraw=True, caller=LOCAL)
            assert await status_of(storage) is ThreadStatus.IDLE

        self.play(tmp_path, scenario)

    def test_threads_that_are_so_are_listed_newest_activity_first_page_by_page(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            expected = await one_of_each(storage, caller=LOCAL, rounds=4)
            everything = [thread for group in zip(*expected.values(), strict=True) for thread in group][::-1]
            assert await listed(storage, None) == everything
            for status, ids in expected.items():
                assert await listed(storage, status) == ids[::-1]
                for offset in range(0, 6, PAGE):
                    page = await storage.threads(caller=LOCAL, limit=PAGE, offset=offset, status=status)
                    assert [thread.thread_id for thread in page] == ids[::-1][offset : offset + PAGE]
                    assert {thread.status for thread in page} <= {status}
            for offset in (0, 2, 14, 16, 1_000):
                page = await storage.threads(caller=LOCAL, limit=PAGE, offset=offset)
                assert [thread.thread_id for thread in page] == everything[offset : offset + PAGE]
                assert [await storage.thread(thread.thread_id, caller=LOCAL) for thread in page] == list(page)
            assert list(await storage.threads(caller=LOCAL, limit=0, status=ThreadStatus.IDLE)) == []
            await refused(storage.threads(caller=LOCAL, offset=-1), InvalidRequest, "invalid_offset")

        self.play(tmp_path, scenario)

    def test_a_status_is_of_the_callers_threads_only_and_of_all_for_the_system(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            hers = await one_of_each(storage, caller=ANNA, rounds=1)
            his = await one_of_each(storage, caller=BORIS, rounds=1)
            for status in ThreadStatus:
                assert await listed(storage, status, caller=ANNA) == hers[status]
                assert await listed(storage, status, caller=BORIS) == his[status]
                assert await listed(storage, status, caller=SYSTEM) == [*his[status], *hers[status]]
                assert await listed(storage, status, caller=LOCAL) == []
            assert len(await storage.threads(caller=SYSTEM, limit=5, offset=4)) == 4

        self.play(tmp_path, scenario)

    def test_a_thread_that_is_so_no_more_is_not_listed_any_more(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            for ending, status in ((RunStatus.ERROR, ThreadStatus.ERROR), (RunStatus.SUCCESS, ThreadStatus.IDLE)):
                assert await listed(storage, ThreadStatus.BUSY) == ["t"]
                await finished(storage, run, status=ending)
                for other in ThreadStatus:
                    assert await listed(storage, other) == (["t"] if other is status else [])
                run = await started(storage, f"after-{ending}")
            await ended_waiting(storage, await current(storage, run.run_id), "one")
            assert await listed(storage, ThreadStatus.INTERRUPTED) == ["t"]
            await storage.delete_thread("t", caller=LOCAL)
            for status in ThreadStatus:
                assert await listed(storage, status) == []

        self.play(tmp_path, scenario)


async def status_of(storage: Storage, thread_id: str = "t") -> ThreadStatus:
    """Of the only thread; what is read alone, in a list and by its status must agree."""
    thread = await storage.thread(thread_id, caller=LOCAL)
    assert thread is not None
    assert list(await storage.threads(caller=LOCAL)) == [thread]
    for status in ThreadStatus:
        assert await listed(storage, status) == ([thread_id] if status is thread.status else [])
    return thread.status


async def listed(storage: Storage, status: ThreadStatus | None, *, caller: Caller = LOCAL) -> list[str]:
    return [thread.thread_id for thread in await storage.threads(caller=caller, status=status)]


async def one_of_each(storage: Storage, *, caller: Caller, rounds: int) -> dict[ThreadStatus, list[str]]:
    """Threads of every status by turns; the ids of each, oldest activity first."""
    made: dict[ThreadStatus, list[str]] = {status: [] for status in ThreadStatus}
    for number in range(rounds):
        for status, ids in made.items():
            name = f"{caller.owner}-{status}-{number}"
            ids.append(name)
            if status is ThreadStatus.INTERRUPTED:
                await waiting(storage, name, name, thread_id=name, caller=caller)
                continue
            run = await started(storage, name, name, caller=caller)
            if status is not ThreadStatus.BUSY:
                failed = status is ThreadStatus.ERROR
                await finished(storage, run, status=FAILED[number % 2] if failed else RunStatus.SUCCESS)
    return made
