"""The storage contract is worth something: it fails on storages, made from the memory backend, with one fault each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing.storage_contract import StorageContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs import SYSTEM, Caller, PizzabotError
from pizzabot_hookspecs.storage_backends import (
    Admission,
    CancelReason,
    LogBounds,
    Multitask,
    NewEvent,
    NewRun,
    Run,
    RunStatus,
    StoredEvent,
    Thread,
)
from pizzabot_hookspecs.wire import JsonValue

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


class ForgetsIdempotencyKeys(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        return await super().admit_run(replace(new, idempotency_key=None), caller=caller)


class ForgetsMessageIds(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        return await super().admit_run(replace(new, message_id=None), caller=caller)


class NeverSeesAMismatch(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        return await super().admit_run(replace(new, fingerprint="same"), caller=caller)


class AdmitsIntoAnyThread(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        return await super().admit_run(new, caller=replace(caller, system=True))


class NeverRejects(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        enqueue = new.multitask is Multitask.REJECT
        return await super().admit_run(replace(new, multitask=Multitask.ENQUEUE) if enqueue else new, caller=caller)


class QueuesReplacementsAtTheEnd(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        admission = await super().admit_run(new, caller=caller)
        queue = self._tables._threads[new.thread_id].queue
        queue.sort(key=lambda run_id: self._tables._runs[run_id].run.created_at)
        return admission


class ChecksTheThreadAndClaimsLater(MemoryStorage):
    """The classic race: a look, a wait, a write."""

    async def claim_run(self, run_id: str, /, *, takeover: bool = False, caller: Caller, **options: Any) -> Run | None:
        row = self._tables._runs.get(run_id)
        held = row is not None and self._tables._threads[row.run.thread_id].active
        await asyncio.sleep(0)
        if row is not None and not held and not takeover and row.run.status is RunStatus.PENDING:
            self._tables._threads[row.run.thread_id].active = None
        return await super().claim_run(run_id, takeover=takeover, caller=caller, **options)


class KeepsTheEpochAtATakeover(MemoryStorage):
    async def claim_run(self, run_id: str, /, *, takeover: bool = False, caller: Caller, **options: Any) -> Run | None:
        run = await super().claim_run(run_id, takeover=takeover, caller=caller, **options)
        if run is None or not takeover:
            return run
        row = self._tables._runs[run_id]
        row.run = replace(row.run, epoch=row.run.epoch - 1)
        return row.run


class IgnoresEpochs(MemoryStorage):
    async def append_events(self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        run = await self.run(run_id, caller=caller)
        return await super().append_events(run_id, run.epoch if run else epoch, events, caller=caller)


class TearsBatches(MemoryStorage):
    async def append_events(self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        first = await super().append_events(run_id, epoch, events[:1], caller=caller)
        for event in events[1:]:
            await asyncio.sleep(0)
            await super().append_events(run_id, epoch, [event], caller=caller)
        return first


class LeavesGaps(MemoryStorage):
    async def append_events(self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        first = await super().append_events(run_id, epoch, events, caller=caller)
        row = self._tables._threads[self._tables._runs[run_id].run.thread_id]
        row.thread = replace(row.thread, next_seq=row.thread.next_seq + 1)
        return first


class EndsInTwoSteps(MemoryStorage):
    async def finish_run(
        self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, status: RunStatus, caller: Caller, **why: Any
    ) -> int:
        first = await super().append_events(run_id, epoch, events, caller=caller)
        await asyncio.sleep(0)
        await super().finish_run(run_id, epoch, [], status=status, caller=caller, **why)
        return first


class EndsTwice(MemoryStorage):
    async def finish_run(
        self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, status: RunStatus, caller: Caller, **why: Any
    ) -> int:
        row = self._tables._runs.get(run_id)
        if row is not None and row.run.status.final:
            row.run = replace(row.run, status=RunStatus.RUNNING)
            self._tables._threads[row.run.thread_id].active = run_id
        return await super().finish_run(run_id, epoch, events, status=status, caller=caller, **why)


class KeepsTheLastReason(MemoryStorage):
    async def request_cancel(self, run_id: str, /, *, reason: CancelReason, caller: Caller) -> Run | None:
        row = self._tables._runs.get(run_id)
        if row is not None:
            row.run = replace(row.run, cancel_reason=None)
        return await super().request_cancel(run_id, reason=reason, caller=caller)


class CancelsPendingRunsAtOnce(MemoryStorage):
    async def request_cancel(self, run_id: str, /, *, reason: CancelReason, caller: Caller) -> Run | None:
        run = await super().request_cancel(run_id, reason=reason, caller=caller)
        if run is None or run.status is not RunStatus.PENDING:
            return run
        await self.finish_run(run_id, run.epoch, [], status=RunStatus.CANCELLED, caller=caller)
        return await self.run(run_id, caller=caller)


class ReadsIncludeTheCursor(MemoryStorage):
    async def events(self, thread_id: str, /, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        return await super().events(thread_id, after=after - 1, limit=limit, caller=caller)


class ShowsEverybodysLogs(MemoryStorage):
    async def events(self, thread_id: str, /, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        return await super().events(thread_id, after=after, limit=limit, caller=replace(caller, system=True))


class ShowsEverybodysThreads(MemoryStorage):
    async def threads(self, *, caller: Caller, **page: Any) -> Sequence[Thread]:
        return await super().threads(caller=SYSTEM, **page)


class ForgetsPinnedModels(MemoryStorage):
    async def pin_model(self, thread_id: str, model_id: str | None, /, *, caller: Caller) -> None:
        await super().pin_model(thread_id, None, caller=caller)


class SharesSettings(MemoryStorage):
    async def setting(self, key: str, /, *, caller: Caller) -> JsonValue:
        return await super().setting(key, caller=SYSTEM)

    async def put_setting(self, key: str, value: JsonValue, /, *, caller: Caller) -> None:
        await super().put_setting(key, value, caller=SYSTEM)


class BeginsTheLatestRunAtItsAdmission(MemoryStorage):
    async def log_bounds(self, thread_id: str, /, *, caller: Caller) -> LogBounds:
        bounds = await super().log_bounds(thread_id, caller=caller)
        rows = [row.first_seq for row in self._tables._runs.values() if row.run.thread_id == thread_id]
        begun = [seq for seq in rows if seq is not None]
        return replace(bounds, latest_run_seq=max(begun) if begun and bounds.last_seq else None)


class ForgetsPendingRuns(MemoryStorage):
    async def unfinished_runs(self, *, caller: Caller) -> Sequence[Run]:
        return [run for run in await super().unfinished_runs(caller=caller) if run.status.active]


class LeavesRunsOfADeletedThread(MemoryStorage):
    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        kept = dict(self._tables._runs)
        deleted = await super().delete_thread(thread_id, caller=caller)
        self._tables._runs = kept
        return deleted


class RaisesWithoutItsCode(MemoryStorage):
    async def append_events(self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        try:
            return await super().append_events(run_id, epoch, events, caller=caller)
        except PizzabotError as error:
            raise RuntimeError(error.detail) from error


NOTICED_BY: dict[type[MemoryStorage], str] = {
    ForgetsIdempotencyKeys: "test_the_same_run_id_key_or_message_id_gives_the_first_run",
    ForgetsMessageIds: "test_the_same_run_id_key_or_message_id_gives_the_first_run",
    NeverSeesAMismatch: "test_the_same_key_with_another_request_is_a_mismatch",
    AdmitsIntoAnyThread: "test_a_thread_of_another_owner_does_not_exist_even_for_a_known_request",
    NeverRejects: "test_reject_is_refused_while_a_run_is_active_or_pending",
    QueuesReplacementsAtTheEnd: "test_interrupt_goes_to_the_front_and_asks_the_active_run_to_stop",
    ChecksTheThreadAndClaimsLater: "test_of_fifty_claims_at_once_on_one_thread_one_succeeds",
    KeepsTheEpochAtATakeover: "test_after_a_takeover_the_first_server_writes_nothing_more",
    IgnoresEpochs: "test_after_a_takeover_the_first_server_writes_nothing_more",
    TearsBatches: "test_writers_at_once_on_one_thread_leave_no_gap_and_no_torn_batch",
    LeavesGaps: "test_batches_of_any_size_follow_each_other_without_gaps",
    EndsInTwoSteps: "test_the_terminal_event_and_the_final_status_appear_together",
    EndsTwice: "test_a_run_ends_once_and_is_never_written_again",
    KeepsTheLastReason: "test_the_first_reason_to_cancel_stays",
    CancelsPendingRunsAtOnce: "test_a_cancelled_pending_run_stays_pending_with_the_request",
    ReadsIncludeTheCursor: "test_reading_starts_after_the_cursor_and_stops_at_the_limit",
    ShowsEverybodysLogs: "test_nobody_reads_runs_or_logs_of_another_owner",
    ShowsEverybodysThreads: "test_each_owner_sees_the_own_threads_only",
    ForgetsPinnedModels: "test_a_pinned_model_is_remembered_and_can_be_taken_back",
    SharesSettings: "test_settings_of_two_owners_are_apart",
    BeginsTheLatestRunAtItsAdmission: "test_a_waiting_run_that_has_events_is_not_the_latest_before_it_begins",
    ForgetsPendingRuns: "test_unfinished_runs_are_all_that_are_not_final_oldest_first",
    LeavesRunsOfADeletedThread: "test_deleting_a_thread_takes_its_runs_and_events_and_no_others",
    RaisesWithoutItsCode: "test_a_run_ends_once_and_is_never_written_again",
}
"""Each faulty storage and a test of the contract that fails on it."""


@pytest.mark.parametrize("kind", NOTICED_BY, ids=lambda kind: kind.__name__)
def test_the_contract_fails_on_a_storage_with_one_fault(kind: type[MemoryStorage], fails: Fails) -> None:
    assert fails(StorageContract, kind, NOTICED_BY[kind])


def test_the_contract_finds_no_fault_in_the_storage_that_the_faults_were_put_into(fails: Fails) -> None:
    names = [name for name in dir(StorageContract) if name.startswith("test_")]
    assert [name for name in names if fails(StorageContract, MemoryStorage, name)] == []


def test_every_part_of_the_contract_notices_a_fault() -> None:
    parts = {
        part.__name__: {name for name in vars(part) if name.startswith("test_")}
        for part in StorageContract.__mro__
        if part.__module__.startswith("pizzabot.testing.")
    }
    noticing = {name for name, tests in parts.items() if tests & set(NOTICED_BY.values())}
    assert noticing >= {
        "ThreadContract",
        "ThreadOwnerContract",
        "SettingContract",
        "DeletingContract",
        "AdmissionContract",
        "QueueContract",
        "ClaimContract",
        "FencingContract",
        "EndingContract",
        "LogContract",
        "RecoveryContract",
        "RunOwnerContract",
    }
