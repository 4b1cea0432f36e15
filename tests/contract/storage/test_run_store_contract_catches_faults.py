"""The run store contract notices what goes wrong with leases, merging and the queue: one fault each, in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing import RunStoreContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs import SYSTEM, Caller, PizzabotError
from pizzabot_hookspecs.interrupts import InterruptState
from pizzabot_hookspecs.storage_backends import Admission, MergedEvents, NewRun, Run, StoredEvent

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


class MovesDeadlinesBack(MemoryStorage):
    async def renew_leases(self, server_id: str, /, *, lease_seconds: float, caller: Caller) -> frozenset[str]:
        ours = await super().renew_leases(server_id, lease_seconds=lease_seconds, caller=caller)
        for run_id in ours:
            row = self._tables._runs[run_id]
            row.run = replace(row.run, lease_until=self._clock() + lease_seconds)
        return ours


class RenewsWhatWasTakenOver(MemoryStorage):
    """The classic: renewing by run, without looking whose it is by now."""

    async def renew_leases(self, server_id: str, /, *, lease_seconds: float, caller: Caller) -> frozenset[str]:
        for row in self._tables._runs.values():
            if row.run.status.active:
                row.run = replace(row.run, lease_until=self._clock() + lease_seconds)
        return await super().renew_leases(server_id, lease_seconds=lease_seconds, caller=caller)


class NamesRunsThatHaveEnded(MemoryStorage):
    async def renew_leases(self, server_id: str, /, *, lease_seconds: float, caller: Caller) -> frozenset[str]:
        await super().renew_leases(server_id, lease_seconds=lease_seconds, caller=caller)
        return frozenset(name for name, row in self._tables._runs.items() if row.run.server_id == server_id)


class ForgetsRunsThatAreBeingStopped(MemoryStorage):
    async def renew_leases(self, server_id: str, /, *, lease_seconds: float, caller: Caller) -> frozenset[str]:
        ours = await super().renew_leases(server_id, lease_seconds=lease_seconds, caller=caller)
        return frozenset(name for name in ours if self._tables._runs[name].run.cancel_requested_at is None)


class KeepsTheOldDeadlineAtATakeover(MemoryStorage):
    async def claim_run(self, run_id: str, /, *, caller: Caller, **options: Any) -> Run | None:
        before = await self.run(run_id, caller=caller)
        run = await super().claim_run(run_id, caller=caller, **options)
        if before is None or run is None or before.lease_until is None:
            return run
        row = self._tables._runs[run_id]
        row.run = replace(row.run, lease_until=before.lease_until)
        return row.run


class ClaimsWithoutALease(MemoryStorage):
    async def claim_run(self, run_id: str, /, *, caller: Caller, **options: Any) -> Run | None:
        run = await super().claim_run(run_id, caller=caller, **options)
        if run is not None:
            row = self._tables._runs[run_id]
            row.run = replace(row.run, lease_until=None)
            return row.run
        return run


class LosesARunWhoseDeadlineHasPassed(MemoryStorage):
    async def renew_leases(self, server_id: str, /, *, lease_seconds: float, caller: Caller) -> frozenset[str]:
        passed = {
            name
            for name, row in self._tables._runs.items()
            if row.run.lease_until is not None and row.run.lease_until <= self._clock()
        }
        return await super().renew_leases(server_id, lease_seconds=lease_seconds, caller=caller) - passed


class CountsTheActiveRunAsWaiting(MemoryStorage):
    async def waiting_runs(self, thread_id: str, /, *, caller: Caller) -> int:
        active = await self.active_run(thread_id, caller=caller)
        return await super().waiting_runs(thread_id, caller=caller) + (active is not None)


class NumbersTheLogAnewAfterMerging(MemoryStorage):
    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        await super().merge_events(run_id, merged, caller=caller)
        row = self._tables._threads[self._tables._runs[run_id].run.thread_id]
        row.events = [replace(event, seq=place) for place, event in enumerate(row.events, start=1)]
        row.thread = replace(row.thread, next_seq=len(row.events) + 1)


class KeepsTheFirstPlaceInsteadOfTheLast(MemoryStorage):
    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        await super().merge_events(run_id, merged, caller=caller)
        places = {part.last_seq: part.first_seq for part in merged}
        row = self._tables._threads[self._tables._runs[run_id].run.thread_id]
        row.events = [replace(event, seq=places.get(event.seq, event.seq)) for event in row.events]


class ReadsByPositionAfterMerging(MemoryStorage):
    """Right as long as no number is missing."""

    async def events(self, thread_id: str, /, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        whole = await super().events(thread_id, after=0, limit=1_000_000, caller=caller)
        start = max(after, 0)
        return await super().events(thread_id, after=after, limit=limit, caller=caller) and whole[start : start + limit]


class MergesTheEventsOfOthers(MemoryStorage):
    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        row = self._tables._runs.get(run_id)
        log = self._tables._threads[row.run.thread_id].events if row else []
        kept = list(log)
        log[:] = [replace(event, run_id=run_id) for event in log]
        try:
            await super().merge_events(run_id, merged, caller=caller)
        finally:
            names = {event.seq: event.run_id for event in kept}
            log[:] = [replace(event, run_id=names[event.seq]) for event in log]


class MergesRangeByRange(MemoryStorage):
    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        for part in merged:
            await super().merge_events(run_id, [part], caller=caller)
        await super().merge_events(run_id, [], caller=caller)


class ForgetsThatARunIsMerged(MemoryStorage):
    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        await super().merge_events(run_id, merged, caller=caller)
        self._tables._runs[run_id].merged = bool(merged)


class MergesTheNewestRunToo(MemoryStorage):
    async def mergeable_runs(self, *, ended_before: float, limit: int, caller: Caller) -> Sequence[Run]:
        rows = [row for row in self._tables._runs.values() if not row.merged and row.run.status.final]
        return [row.run for row in rows if (row.run.ended_at or 0.0) < ended_before][:limit]


class MergesRunsThatGoOn(MemoryStorage):
    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        try:
            await super().merge_events(run_id, merged, caller=caller)
        except PizzabotError as error:
            if error.code != "run_active":
                raise


class MergesForAnybody(MemoryStorage):
    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        await super().merge_events(run_id, merged, caller=SYSTEM)


class MakesTheThreadOfARefusedRequest(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        try:
            return await super().admit_run(new, caller=caller)
        except PizzabotError as error:
            if error.code == "run_exists":
                other = replace(new, run_id=f"{new.run_id}-2")
                await super().admit_run(other, caller=caller)
            raise


class KnowsNoRequest(MemoryStorage):
    async def known_request(self, new: NewRun, /, *, caller: Caller) -> Admission | None:
        return None


class AdmitsWhatItIsAskedAbout(MemoryStorage):
    async def known_request(self, new: NewRun, /, *, caller: Caller) -> Admission | None:
        admission = await self.admit_run(new, caller=caller)
        return None if admission.created else admission


class TakesAnotherRequestForTheKnownOne(MemoryStorage):
    async def known_request(self, new: NewRun, /, *, caller: Caller) -> Admission | None:
        return await super().known_request(replace(new, fingerprint="same"), caller=caller)


class KnowsTheRequestsOfEverybody(MemoryStorage):
    async def known_request(self, new: NewRun, /, *, caller: Caller) -> Admission | None:
        return await super().known_request(new, caller=replace(caller, system=True))


class BeginsAMessageWhileAPersonIsAsked(MemoryStorage):
    """What LangGraph then does to the approval is reproduced R3."""

    async def claim_run(self, run_id: str, /, *, caller: Caller, **options: Any) -> Run | None:
        held, self._tables._interrupts = self._tables._interrupts, {}
        try:
            return await super().claim_run(run_id, caller=caller, **options)
        finally:
            self._tables._interrupts = held


class ShowsAsTheFrontWhatMayNotBegin(MemoryStorage):
    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        held, self._tables._interrupts = self._tables._interrupts, {}
        try:
            return await super().next_pending(thread_id, caller=caller)
        finally:
            self._tables._interrupts = held


class HoldsTheWholeQueueWhileAPersonIsAsked(MemoryStorage):
    """A stop of two queued messages then waits for the answer."""

    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        asked = self._tables._open_of_thread(thread_id)
        return None if asked else await super().next_pending(thread_id, caller=caller)


class LooksAtTheFrontOnlyWhileAPersonIsAsked(MemoryStorage):
    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        front = await super().next_pending(thread_id, caller=caller)
        row = self._tables._threads.get(thread_id)
        return front if row and front and front.run_id == row.queue[0] else None


class ClaimsNothingWhileAPersonIsAsked(MemoryStorage):
    async def claim_run(self, run_id: str, /, *, caller: Caller, **options: Any) -> Run | None:
        row = self._tables._runs.get(run_id)
        if row is not None and self._tables._open_of_thread(row.run.thread_id):
            return None
        return await super().claim_run(run_id, caller=caller, **options)


class HoldsMessagesOfEveryThread(MemoryStorage):
    async def claim_run(self, run_id: str, /, *, caller: Caller, **options: Any) -> Run | None:
        asked = any(one.state is InterruptState.OPEN for one in self._tables._interrupts.values())
        row = self._tables._runs.get(run_id)
        if asked and row is not None and row.run.cancel_requested_at is None:
            return None
        return await super().claim_run(run_id, caller=caller, **options)


class HoldsWhatWasHeldForEver(MemoryStorage):
    """The queue is not looked at again when the question is gone."""

    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        known = any(place[0] == thread_id for place in self._tables._interrupts)
        front = await super().next_pending(thread_id, caller=caller)
        return None if known and front and front.cancel_requested_at is None else front


NOTICED_BY: dict[type[MemoryStorage], str] = {
    MovesDeadlinesBack: "test_a_renewal_never_moves_a_deadline_back",
    RenewsWhatWasTakenOver: "test_after_a_takeover_the_first_server_is_told_that_the_run_is_not_its_own",
    NamesRunsThatHaveEnded: "test_a_renewal_is_of_this_servers_active_runs_and_names_them",
    ForgetsRunsThatAreBeingStopped: "test_a_renewal_is_of_this_servers_active_runs_and_names_them",
    KeepsTheOldDeadlineAtATakeover: "test_a_takeover_has_a_lease_of_its_own",
    ClaimsWithoutALease: "test_a_claim_has_a_lease_of_the_length_that_was_asked_for",
    LosesARunWhoseDeadlineHasPassed: "test_a_deadline_that_has_passed_takes_no_run_from_the_server_that_holds_it",
    CountsTheActiveRunAsWaiting: "test_the_queue_says_how_many_wait",
    NumbersTheLogAnewAfterMerging: "test_numbers_and_bounds_go_on_as_if_nothing_was_merged",
    KeepsTheFirstPlaceInsteadOfTheLast: "test_merged_events_stand_in_the_last_ones_place_and_nothing_else_changes",
    ReadsByPositionAfterMerging: "test_every_cursor_reads_on_where_it_would_have",
    MergesTheEventsOfOthers: "test_a_range_that_is_not_wholly_the_runs_own_is_refused_and_nothing_is_merged",
    MergesRangeByRange: "test_a_range_that_is_not_wholly_the_runs_own_is_refused_and_nothing_is_merged",
    ForgetsThatARunIsMerged: "test_a_run_is_merged_once_and_remembered_also_when_there_was_nothing_to_merge",
    MergesTheNewestRunToo: "test_the_newest_run_of_a_thread_is_left_alone_until_the_next_has_begun",
    MergesRunsThatGoOn: "test_a_run_that_is_not_final_is_not_merged",
    MergesForAnybody: "test_runs_of_another_owner_are_merged_by_the_system_only",
    KnowsNoRequest: "test_whether_a_request_is_known_is_said_without_admitting_it",
    AdmitsWhatItIsAskedAbout: "test_whether_a_request_is_known_is_said_without_admitting_it",
    TakesAnotherRequestForTheKnownOne: "test_asking_whether_a_request_is_known_finds_what_admission_would_refuse",
    KnowsTheRequestsOfEverybody: "test_asking_whether_a_request_is_known_finds_what_admission_would_refuse",
    BeginsAMessageWhileAPersonIsAsked: "test_a_queued_message_waits_while_a_person_is_asked",
    ShowsAsTheFrontWhatMayNotBegin: "test_a_queued_message_waits_while_a_person_is_asked",
    HoldsTheWholeQueueWhileAPersonIsAsked: "test_what_is_to_be_stopped_may_begin_while_a_person_is_asked",
    LooksAtTheFrontOnlyWhileAPersonIsAsked: "test_what_is_to_be_stopped_may_begin_while_a_person_is_asked",
    ClaimsNothingWhileAPersonIsAsked: "test_a_run_that_a_dead_server_left_is_taken_over_though_a_person_is_asked",
    HoldsMessagesOfEveryThread: "test_a_queued_message_waits_while_a_person_is_asked",
    HoldsWhatWasHeldForEver: "test_once_nobody_is_asked_any_more_a_queued_message_begins",
    MakesTheThreadOfARefusedRequest: "test_a_run_id_of_another_owner_is_never_answered_with_that_run",
}
"""Each faulty storage and a test of the contract that fails on it."""


@pytest.mark.parametrize("kind", NOTICED_BY, ids=lambda kind: kind.__name__)
def test_the_run_store_contract_fails_on_a_storage_with_one_fault(kind: type[MemoryStorage], fails: Fails) -> None:
    assert fails(RunStoreContract, kind, NOTICED_BY[kind])


@pytest.mark.parametrize("name", sorted(set(NOTICED_BY.values())))
def test_what_notices_a_fault_passes_without_it(name: str, fails: Fails) -> None:
    assert not fails(RunStoreContract, MemoryStorage, name)
