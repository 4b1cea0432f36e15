"""The storage contract notices a wrong thread status and wrong pages: one fault each, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing import StorageContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs import SYSTEM, Caller
from pizzabot_hookspecs.storage_backends import Run, RunStatus, Thread, ThreadStatus

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


class ShowsEverybodysBusyThreads(MemoryStorage):
    async def threads(self, *, caller: Caller, **page: Any) -> Sequence[Thread]:
        return await super().threads(caller=SYSTEM if page.get("status") else caller, **page)


class IgnoresTheOffset(MemoryStorage):
    async def threads(self, *, offset: int = 0, **page: Any) -> Sequence[Thread]:
        return await super().threads(offset=min(offset, 0), **page)


class IgnoresTheWantedStatus(MemoryStorage):
    async def threads(self, *, status: ThreadStatus | None = None, **page: Any) -> Sequence[Thread]:
        return await super().threads(**page)


class ChoosesThePageBeforeTheStatus(MemoryStorage):
    """The classic: filtering what a page happens to hold."""

    async def threads(self, *, status: ThreadStatus | None = None, **page: Any) -> Sequence[Thread]:
        return [thread for thread in await super().threads(**page) if status in (None, thread.status)]


class TellsStatus(MemoryStorage):
    """Base of faults in the status; a list and a single thread tell the same."""

    def told(self, thread: Thread) -> ThreadStatus:
        return thread.status

    async def thread(self, thread_id: str, /, *, caller: Caller) -> Thread | None:
        thread = await super().thread(thread_id, caller=caller)
        return replace(thread, status=self.told(thread)) if thread else None

    async def threads(
        self, *, caller: Caller, limit: int = 200, offset: int = 0, status: ThreadStatus | None = None
    ) -> Sequence[Thread]:
        found = [
            replace(thread, status=self.told(thread)) for thread in await super().threads(caller=caller, limit=10**6)
        ]
        wanted = [thread for thread in found if status in (None, thread.status)]
        return wanted[offset : offset + limit]

    def runs_of(self, thread: Thread) -> list[Run]:
        return [self._tables._runs[name].run for name in self._tables._threads[thread.thread_id].runs]


class ForgetsThatPendingIsBusy(TellsStatus):
    def told(self, thread: Thread) -> ThreadStatus:
        waits = all(not run.status.active for run in self.runs_of(thread)) and thread.status is ThreadStatus.BUSY
        return ThreadStatus.IDLE if waits else thread.status


class CallsAThreadBusyForAMessageThatIsHeld(TellsStatus):
    def told(self, thread: Thread) -> ThreadStatus:
        return ThreadStatus.BUSY if any(not run.status.final for run in self.runs_of(thread)) else thread.status


class AsksBeforeItIsBusy(TellsStatus):
    def told(self, thread: Thread) -> ThreadStatus:
        asked = self._tables._open_of_thread(thread.thread_id)
        return ThreadStatus.INTERRUPTED if asked else thread.status


class FailsForEver(TellsStatus):
    def told(self, thread: Thread) -> ThreadStatus:
        failed = any(run.status is RunStatus.ERROR for run in self.runs_of(thread))
        return ThreadStatus.ERROR if failed and thread.status is ThreadStatus.IDLE else thread.status


class FailsThoughItAsks(TellsStatus):
    def told(self, thread: Thread) -> ThreadStatus:
        last = max(self.runs_of(thread), key=lambda run: run.ended_at or 0.0, default=None)
        return ThreadStatus.ERROR if last and last.status is RunStatus.ERROR else thread.status


class TakesATimeoutForAGoodEnd(TellsStatus):
    def told(self, thread: Thread) -> ThreadStatus:
        last = max(self.runs_of(thread), key=lambda run: run.ended_at or 0.0, default=None)
        return ThreadStatus.IDLE if last and last.status is RunStatus.TIMEOUT else thread.status


class CallsWithdrawnQuestionsOpen(TellsStatus):
    def told(self, thread: Thread) -> ThreadStatus:
        asked = any(
            of_thread == thread.thread_id and interrupt.decided_by is None
            for (of_thread, _), interrupt in self._tables._interrupts.items()
        )
        return ThreadStatus.INTERRUPTED if asked and thread.status is ThreadStatus.IDLE else thread.status


class CountsWhatNeverBegan(TellsStatus):
    def told(self, thread: Thread) -> ThreadStatus:
        last = max(self.runs_of(thread), key=lambda run: run.ended_at or 0.0, default=None)
        hidden = last is not None and last.status is RunStatus.CANCELLED and thread.status is ThreadStatus.ERROR
        return ThreadStatus.IDLE if hidden else thread.status


class KeepsTheStatusOfTheFirstReading(TellsStatus):
    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, ThreadStatus] = {}

    def told(self, thread: Thread) -> ThreadStatus:
        return self.seen.setdefault(thread.thread_id, thread.status)


NOTICED_BY: dict[type[MemoryStorage], str] = {
    ShowsEverybodysBusyThreads: "test_a_status_is_of_the_callers_threads_only_and_of_all_for_the_system",
    IgnoresTheOffset: "test_threads_that_are_so_are_listed_newest_activity_first_page_by_page",
    IgnoresTheWantedStatus: "test_threads_that_are_so_are_listed_newest_activity_first_page_by_page",
    ChoosesThePageBeforeTheStatus: "test_threads_that_are_so_are_listed_newest_activity_first_page_by_page",
    ForgetsThatPendingIsBusy: "test_a_thread_is_busy_while_a_run_of_it_is_not_final",
    CallsAThreadBusyForAMessageThatIsHeld: "test_a_message_that_waits_for_an_answer_makes_no_thread_busy",
    AsksBeforeItIsBusy: "test_a_thread_is_interrupted_while_it_waits_for_a_person_and_nothing_is_busy",
    FailsForEver: "test_a_thread_is_in_error_when_the_run_that_ended_last_failed_or_timed_out",
    FailsThoughItAsks: "test_a_thread_is_interrupted_while_it_waits_for_a_person_and_nothing_is_busy",
    TakesATimeoutForAGoodEnd: "test_a_thread_is_in_error_when_the_run_that_ended_last_failed_or_timed_out",
    CallsWithdrawnQuestionsOpen: "test_a_thread_whose_questions_were_withdrawn_waits_for_nobody",
    CountsWhatNeverBegan: "test_a_message_that_ended_in_the_queue_does_not_hide_the_failure_before_it",
    KeepsTheStatusOfTheFirstReading: "test_a_thread_that_is_so_no_more_is_not_listed_any_more",
}
"""Each faulty storage and a test of the contract that fails on it."""


@pytest.mark.parametrize("kind", NOTICED_BY, ids=lambda kind: kind.__name__)
def test_the_storage_contract_fails_on_a_storage_with_one_fault(kind: type[MemoryStorage], fails: Fails) -> None:
    assert fails(StorageContract, kind, NOTICED_BY[kind])


@pytest.mark.parametrize("name", sorted(set(NOTICED_BY.values())))
def test_what_notices_a_fault_passes_without_it(name: str, fails: Fails) -> None:
    assert not fails(StorageContract, MemoryStorage, name)
