"""The storage contract notices what goes wrong with facts, transcripts and copies: one fault each, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing import StorageContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs import SYSTEM, Caller
from pizzabot_hookspecs.storage_backends import (
    NewEvent,
    Run,
    StoredEvent,
    Thread,
    ThreadCopy,
    TranscriptIndex,
    TurnRow,
)

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


class TakesTheNumberBeforeItWrites(MemoryStorage):
    """The classic: the thread's number is read, then a run writes."""

    async def append_facts(self, thread_id: str, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        thread = await self.thread(thread_id, caller=caller)
        await asyncio.sleep(0)
        first = await super().append_facts(thread_id, events, caller=caller)
        return thread.next_seq if thread else first


class WritesFactsOneByOne(MemoryStorage):
    async def append_facts(self, thread_id: str, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        first = await super().append_facts(thread_id, events[:1], caller=caller)
        for event in events[1:]:
            await asyncio.sleep(0)
            await super().append_facts(thread_id, [event], caller=caller)
        return first


class WritesFactsToAnybodysThread(MemoryStorage):
    async def append_facts(self, thread_id: str, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        return await super().append_facts(thread_id, events, caller=SYSTEM)


class MakesTheThreadOfAFact(MemoryStorage):
    async def append_facts(self, thread_id: str, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        if await self.thread(thread_id, caller=SYSTEM) is None:
            await self.create_thread(thread_id, caller=caller)
        return await super().append_facts(thread_id, events, caller=caller)


class GivesFactsToTheLatestRun(MemoryStorage):
    async def append_facts(self, thread_id: str, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        first = await super().append_facts(thread_id, events, caller=caller)
        row = self._tables._threads[thread_id]
        if row.runs:
            row.events = [replace(event, run_id=event.run_id or row.runs[-1]) for event in row.events]
        return first


class FindsFactsOfTheThreadAlone(MemoryStorage):
    async def latest_fact(self, thread_id: str, names: Collection[str], /, *, caller: Caller) -> StoredEvent | None:
        events = await self.events(thread_id, after=0, limit=10**6, caller=caller)
        return next((event for event in reversed(events) if event.run_id is None and event.name in names), None)


class FindsTheFirstNamesNewestFact(MemoryStorage):
    async def latest_fact(self, thread_id: str, names: Collection[str], /, *, caller: Caller) -> StoredEvent | None:
        for name in names:
            if found := await super().latest_fact(thread_id, [name], caller=caller):
                return found
        return None


class ShowsEverybodysFacts(MemoryStorage):
    async def latest_fact(self, thread_id: str, names: Collection[str], /, *, caller: Caller) -> StoredEvent | None:
        return await super().latest_fact(thread_id, names, caller=SYSTEM)


class NeverComparesTheCursor(MemoryStorage):
    async def put_transcript(
        self, thread_id: str, turns: Sequence[TurnRow], /, *, after: int, caller: Caller, **more: Any
    ) -> bool:
        after = (await self.transcript_index(thread_id, caller=caller)).cursor
        return await super().put_transcript(thread_id, turns, after=after, caller=caller, **more)


class ComparesTheCursorAndPutsLater(MemoryStorage):
    async def put_transcript(
        self, thread_id: str, turns: Sequence[TurnRow], /, *, after: int, caller: Caller, **more: Any
    ) -> bool:
        cursor = (await self.transcript_index(thread_id, caller=caller)).cursor
        await asyncio.sleep(0)
        if cursor != after:
            return False
        now = (await self.transcript_index(thread_id, caller=caller)).cursor
        return await super().put_transcript(thread_id, turns, after=now, caller=caller, **more)


class WritesRowsThatCameTooLate(MemoryStorage):
    async def put_transcript(self, thread_id: str, turns: Sequence[TurnRow], /, *, caller: Caller, **more: Any) -> bool:
        done = await super().put_transcript(thread_id, turns, caller=caller, **more)
        row = self._tables._thread_row(thread_id, caller)
        if row is not None:
            row.transcript.turns.update((turn.turn_id, turn) for turn in turns)
        return done


class PutsTheCursorBeforeTheRows(MemoryStorage):
    async def put_transcript(
        self, thread_id: str, turns: Sequence[TurnRow], /, *, cursor: int, caller: Caller, **more: Any
    ) -> bool:
        if not await super().put_transcript(thread_id, [], cursor=cursor, caller=caller, **more):
            return False
        await asyncio.sleep(0)
        return await super().put_transcript(thread_id, turns, caller=caller, **{**more, "after": cursor}, cursor=cursor)


class ReplacesAllRows(MemoryStorage):
    async def put_transcript(self, thread_id: str, turns: Sequence[TurnRow], /, *, caller: Caller, **more: Any) -> bool:
        done = await super().put_transcript(thread_id, turns, caller=caller, **more)
        if done:
            self._tables._threads[thread_id].transcript.turns = {turn.turn_id: turn for turn in turns}
        return done


class PutsForAnybody(MemoryStorage):
    async def put_transcript(self, thread_id: str, turns: Sequence[TurnRow], /, *, caller: Caller, **more: Any) -> bool:
        return await super().put_transcript(thread_id, turns, caller=SYSTEM, **more)


class DropsForAnybody(MemoryStorage):
    async def drop_transcript(self, thread_id: str, /, *, caller: Caller) -> None:
        await super().drop_transcript(thread_id, caller=SYSTEM)


class KeepsTheCursorOfADroppedTranscript(MemoryStorage):
    async def drop_transcript(self, thread_id: str, /, *, caller: Caller) -> None:
        if row := self._tables._thread_row(thread_id, caller):
            row.transcript.turns.clear()


class DropsTheLogToo(MemoryStorage):
    async def drop_transcript(self, thread_id: str, /, *, caller: Caller) -> None:
        await super().drop_transcript(thread_id, caller=caller)
        if row := self._tables._thread_row(thread_id, caller):
            row.events.clear()


class ShowsEverybodysIndex(MemoryStorage):
    async def transcript_index(self, thread_id: str, /, *, caller: Caller) -> TranscriptIndex:
        return await super().transcript_index(thread_id, caller=SYSTEM)


class ShowsEverybodysTurns(MemoryStorage):
    async def transcript_turns(
        self, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller
    ) -> Sequence[TurnRow]:
        return await super().transcript_turns(thread_id, turn_ids, caller=SYSTEM)


class ReturnsTurnsAsTheyWereAskedFor(MemoryStorage):
    async def transcript_turns(
        self, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller
    ) -> Sequence[TurnRow]:
        found = {row.turn_id: row for row in await super().transcript_turns(thread_id, turn_ids, caller=caller)}
        return [found[turn_id] for turn_id in turn_ids if turn_id in found]


class ReadsAThousandTurnsAtMost(MemoryStorage):
    async def transcript_turns(
        self, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller
    ) -> Sequence[TurnRow]:
        return await super().transcript_turns(thread_id, turn_ids[:1_000], caller=caller)


class LeavesTheTranscriptOfADeletedThread(MemoryStorage):
    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        row = self._tables._thread_row(thread_id, caller)
        deleted = await super().delete_thread(thread_id, caller=caller)
        self.left = row.transcript if row else None
        return deleted

    async def create_thread(self, thread_id: str, /, *, caller: Caller, **fields: Any) -> Thread:
        thread = await super().create_thread(thread_id, caller=caller, **fields)
        if left := getattr(self, "left", None):
            self._tables._threads[thread_id].transcript = left
        return thread


class ChangesAdopted(MemoryStorage):
    """Base of faults in what a copy's runs become."""

    def changed(self, run: Run, _of: Run) -> Run:
        return run

    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        thread = await super().adopt_thread(copy, caller=caller)
        for run in copy.runs:
            row = self._tables._runs[run.run_id]
            row.run = self.changed(row.run, run)
        return thread


class KeepsLeases(ChangesAdopted):
    def changed(self, run: Run, of: Run) -> Run:
        return replace(run, server_id=of.server_id, lease_until=of.lease_until)


class KeepsMessageIds(ChangesAdopted):
    def changed(self, run: Run, of: Run) -> Run:
        return replace(run, message_id=of.message_id)


class KeepsTheOwnersOfRuns(ChangesAdopted):
    def changed(self, run: Run, of: Run) -> Run:
        return replace(run, owner=of.owner)


class KeepsTheFirstNumberItWasTold(ChangesAdopted):
    def changed(self, run: Run, of: Run) -> Run:
        return replace(run, first_seq=of.first_seq)


class EndsRunsNow(ChangesAdopted):
    def changed(self, run: Run, of: Run) -> Run:
        return replace(run, ended_at=self._clock())


class OrdersRunsAsTheyCame(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        thread = await super().adopt_thread(copy, caller=caller)
        for place, run in enumerate(copy.runs, start=1):
            self._tables._runs[run.run_id].began = place
        return thread


class OrdersRunsByTheClock(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        thread = await super().adopt_thread(copy, caller=caller)
        claimed = [run for run in copy.runs if run.started_at is not None]
        for place, run in enumerate(sorted(claimed, key=lambda run: run.started_at or 0.0), start=1):
            self._tables._runs[run.run_id].began = place
        return thread


class MarksCopiesAsMerged(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        thread = await super().adopt_thread(copy, caller=caller)
        for run in copy.runs:
            self._tables._runs[run.run_id].merged = True
        return thread


class ForgetsTheNextNumber(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        await super().adopt_thread(copy, caller=caller)
        row = self._tables._threads[copy.thread_id]
        row.thread = replace(row.thread, next_seq=1)
        return row.thread


class ReplacesAThread(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        await self.delete_thread(copy.thread_id, caller=SYSTEM)
        return await super().adopt_thread(copy, caller=caller)


class MakesTheThreadOfARefusedCopy(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        try:
            return await super().adopt_thread(copy, caller=caller)
        except Exception:
            if await self.thread(copy.thread_id, caller=SYSTEM) is None:
                await self.create_thread(copy.thread_id, caller=caller)
            raise


class AdoptsInTwoSteps(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        await super().adopt_thread(replace(copy, events=copy.events[:1]), caller=caller)
        await asyncio.sleep(0)
        await self.delete_thread(copy.thread_id, caller=caller)
        return await super().adopt_thread(copy, caller=caller)


NOTICED_BY: dict[type[MemoryStorage], str] = {
    TakesTheNumberBeforeItWrites: "test_facts_that_are_written_while_runs_write_leave_no_gap_and_no_torn_batch",
    WritesFactsOneByOne: "test_facts_that_are_written_while_runs_write_leave_no_gap_and_no_torn_batch",
    WritesFactsToAnybodysThread: "test_there_are_no_facts_of_a_thread_that_is_not_the_callers",
    MakesTheThreadOfAFact: "test_there_are_no_facts_of_a_thread_that_is_not_the_callers",
    GivesFactsToTheLatestRun: "test_facts_and_events_of_runs_have_one_row_of_numbers",
    FindsFactsOfTheThreadAlone: "test_the_latest_fact_is_the_newest_of_all_names_whoever_wrote_it",
    FindsTheFirstNamesNewestFact: "test_the_latest_fact_is_the_newest_of_all_names_whoever_wrote_it",
    ShowsEverybodysFacts: "test_there_are_no_facts_of_a_thread_that_is_not_the_callers",
    NeverComparesTheCursor: "test_a_put_after_another_cursor_writes_nothing",
    ComparesTheCursorAndPutsLater: "test_of_those_who_put_at_once_one_succeeds_wholly",
    WritesRowsThatCameTooLate: "test_a_put_after_another_cursor_writes_nothing",
    PutsTheCursorBeforeTheRows: "test_an_index_is_of_one_moment_while_somebody_puts",
    ReplacesAllRows: "test_putting_a_row_again_replaces_it_and_leaves_the_others",
    PutsForAnybody: "test_transcripts_of_another_owner_are_neither_seen_nor_changed",
    DropsForAnybody: "test_transcripts_of_another_owner_are_neither_seen_nor_changed",
    KeepsTheCursorOfADroppedTranscript: "test_a_dropped_transcript_is_empty_and_is_made_again_from_the_start",
    DropsTheLogToo: "test_a_dropped_transcript_is_empty_and_is_made_again_from_the_start",
    ShowsEverybodysIndex: "test_transcripts_of_another_owner_are_neither_seen_nor_changed",
    ShowsEverybodysTurns: "test_transcripts_of_another_owner_are_neither_seen_nor_changed",
    ReturnsTurnsAsTheyWereAskedFor: "test_turns_are_read_by_their_ids_and_unknown_ones_are_left_out",
    ReadsAThousandTurnsAtMost: "test_turns_are_read_by_their_ids_and_unknown_ones_are_left_out",
    LeavesTheTranscriptOfADeletedThread: "test_a_transcript_goes_with_its_thread_and_no_other",
    KeepsLeases: "test_copied_runs_keep_what_they_were_and_nothing_to_go_on_or_be_found_by",
    KeepsMessageIds: "test_copied_runs_keep_what_they_were_and_nothing_to_go_on_or_be_found_by",
    KeepsTheOwnersOfRuns: "test_copied_runs_keep_what_they_were_and_nothing_to_go_on_or_be_found_by",
    KeepsTheFirstNumberItWasTold: "test_the_latest_run_is_the_one_that_began_last_whatever_the_order_and_the_clock",
    EndsRunsNow: "test_copied_runs_keep_what_they_were_and_nothing_to_go_on_or_be_found_by",
    OrdersRunsAsTheyCame: "test_the_latest_run_is_the_one_that_began_last_whatever_the_order_and_the_clock",
    OrdersRunsByTheClock: "test_the_latest_run_is_the_one_that_began_last_whatever_the_order_and_the_clock",
    MarksCopiesAsMerged: "test_runs_of_a_copy_are_merged_oldest_end_first_and_a_single_one_is_not",
    ForgetsTheNextNumber: "test_the_copy_goes_on_where_its_log_ends",
    ReplacesAThread: "test_a_copy_never_replaces_a_thread_or_a_run",
    MakesTheThreadOfARefusedCopy: "test_what_is_no_copy_is_refused_and_nothing_is_stored",
    AdoptsInTwoSteps: "test_a_copy_whose_awaiter_was_cancelled_is_whole_or_absent",
}
"""Each faulty storage and a test of the contract that fails on it."""


@pytest.mark.parametrize("kind", NOTICED_BY, ids=lambda kind: kind.__name__)
def test_the_contract_fails_on_a_storage_with_one_fault(kind: type[MemoryStorage], fails: Fails) -> None:
    assert fails(StorageContract, kind, NOTICED_BY[kind])
