"""The run store contract, part: merging. Deltas of an ended run become one; every cursor still reads on (rule 5)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    EVERYTHING,
    SERVER,
    RunStore,
    StoreSuite,
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
from pizzabot_hookspecs import LOCAL, SYSTEM, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.storage_backends import CancelReason, MergedEvents, NewEvent, Run, RunStatus

FAR_AWAY = 100_000_000_000.0


def part(first_seq: int, last_seq: int, data: bytes = b"merged") -> MergedEvents:
    return MergedEvents(first_seq=first_seq, last_seq=last_seq, data=data)


async def ended(storage: RunStore, run_id: str, *texts: str, thread_id: str = "t") -> Run:
    await finished(storage, await started(storage, run_id, thread_id), *texts)
    return await current(storage, run_id)


async def mergeable(storage: RunStore, *, before: float = FAR_AWAY, limit: int = 100) -> list[str]:
    return [run.run_id for run in await storage.mergeable_runs(ended_before=before, limit=limit, caller=LOCAL)]


class MergingContract(StoreSuite):
    def test_merged_events_stand_in_the_last_ones_place_and_nothing_else_changes(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            new = [
                NewEvent(
                    method="messages", data=b"%d" % number, timestamp=number, namespace=("a:1",), node=f"n{number}"
                )
                for number in range(1, 9)
            ]
            await storage.append_events("r", run.epoch, new, caller=LOCAL)
            await finished(storage, run, "end")
            before = {event.seq: event for event in await log(storage)}
            await storage.merge_events("r", [part(2, 4, b"234"), part(6, 7, b"67")], caller=LOCAL)
            assert list(await log(storage)) == [
                before[1],
                replace(before[4], data=b"234"),
                before[5],
                replace(before[7], data=b"67"),
                before[8],
                before[9],
            ]

        self.play(tmp_path, scenario)

    def test_every_cursor_reads_on_where_it_would_have(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await ended(storage, "r", *"abcdefghij")
            await ended(storage, "next", *"kl")
            await storage.merge_events("r", [part(3, 6, b"cdef"), part(8, 9, b"hi")], caller=LOCAL)
            merged = list(await log(storage))
            assert [event.seq for event in merged] == [1, 2, 6, 7, 9, 10, 11, 12]
            for after in range(-1, 14):
                rest = [event for event in merged if event.seq > after]
                for limit in (0, 1, 3, EVERYTHING):
                    page = await storage.events("t", after=after, limit=limit, caller=LOCAL)
                    assert list(page) == rest[:limit], f"after {after}, at most {limit}"

        self.play(tmp_path, scenario)

    def test_numbers_and_bounds_go_on_as_if_nothing_was_merged(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await ended(storage, "r", *"abcd")
            await ended(storage, "next", "e")
            bounds = await storage.log_bounds("t", caller=LOCAL)
            await storage.merge_events("r", [part(2, 4)], caller=LOCAL)
            assert await storage.log_bounds("t", caller=LOCAL) == bounds
            last = await started(storage, "last")
            assert await storage.append_events("last", last.epoch, words("f"), caller=LOCAL) == 6
            assert (await storage.log_bounds("t", caller=LOCAL)).latest_run_seq == 6

        self.play(tmp_path, scenario)

    def test_the_last_event_of_a_thread_can_be_merged_and_no_number_is_used_again(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await ended(storage, "r", *"abc")
            await storage.merge_events("r", [part(1, 3, b"abc")], caller=LOCAL)
            assert await log_texts(storage) == [b"abc"]
            following = await started(storage, "next")
            assert await storage.append_events("next", following.epoch, words("d"), caller=LOCAL) == 4
            assert [event.seq for event in await log(storage)] == [3, 4]

        self.play(tmp_path, scenario)

    def test_merging_while_another_run_writes_loses_nothing(self, tmp_path: Path) -> None:
        async def scenario(first: RunStore, second: RunStore) -> None:
            await ended(first, "r", *(str(number) for number in range(60)))
            run = await started(first, "next")
            writes = [first.append_events("next", run.epoch, words(f"{n}"), caller=LOCAL) for n in range(30)]
            ranges = [part(start, start + 4, b"five") for start in range(1, 56, 5)]
            await asyncio.gather(*writes[:15], second.merge_events("r", ranges, caller=LOCAL), *writes[15:])
            events = await log(first)
            assert [event.seq for event in events] == [*range(5, 56, 5), *range(56, 91)]
            assert [event.data for event in events[:11]] == [b"five"] * 11

        self.play_two(tmp_path, scenario)

    def test_a_run_is_merged_once_and_remembered_also_when_there_was_nothing_to_merge(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            for name in ("a", "b", "c"):
                await ended(storage, name, "one", "two")
            assert await mergeable(storage) == ["a", "b"]
            before = await current(storage, "a")
            await storage.merge_events("a", [], caller=LOCAL)
            assert await mergeable(storage) == ["b"]
            assert await current(storage, "a") == before
            await storage.merge_events("b", [part(3, 4)], caller=LOCAL)
            assert await mergeable(storage) == []
            assert len(await log(storage)) == 5

        self.play(tmp_path, scenario)

    def test_merging_again_what_was_merged_changes_nothing(self, tmp_path: Path) -> None:
        """Whoever does not learn that a merge succeeded may send it again."""

        async def scenario(storage: RunStore) -> None:
            await ended(storage, "r", *"abcdef")
            for _ in range(2):
                await storage.merge_events("r", [part(2, 4, b"bcd")], caller=LOCAL)
                assert [(event.seq, event.data) for event in await log(storage)][1] == (4, b"bcd")
                assert [event.seq for event in await log(storage)] == [1, 4, 5, 6]

        self.play(tmp_path, scenario)

    def test_the_newest_run_of_a_thread_is_left_alone_until_the_next_has_begun(self, tmp_path: Path) -> None:
        """It is what a reader without a cursor is sent from its start."""

        async def scenario(storage: RunStore) -> None:
            await ended(storage, "r", "one")
            assert await mergeable(storage) == []
            pending = await enqueued(storage, "next")
            assert await mergeable(storage) == []
            await storage.claim_run("next", server_id=SERVER, caller=LOCAL)
            assert await mergeable(storage) == []
            bounds = await storage.log_bounds("t", caller=LOCAL)
            assert bounds.latest_run_seq == 1
            await storage.append_events("next", pending.epoch + 1, words("two"), caller=LOCAL)
            assert await mergeable(storage) == ["r"]

        self.play(tmp_path, scenario)

    def test_mergeable_are_runs_that_ended_before_the_time_oldest_first(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            runs = [await ended(storage, f"r{number}", "x", thread_id=f"t{number % 2}") for number in range(6)]
            await enqueued(storage, "pending", "t0")
            for run in runs:
                assert run.ended_at is not None
                found = await mergeable(storage, before=run.ended_at)
                assert run.run_id not in found, "before means before"
                assert found == [other.run_id for other in runs[:4] if (other.ended_at or 0.0) < run.ended_at]
            assert await mergeable(storage, limit=3) == ["r0", "r1", "r2"]
            assert await mergeable(storage, limit=0) == []
            assert await mergeable(storage, before=0.0) == []
            refusal = storage.mergeable_runs(ended_before=FAR_AWAY, limit=-1, caller=LOCAL)
            await refused(refusal, InvalidRequest, "invalid_limit")

        self.play(tmp_path, scenario)

    def test_a_run_that_is_not_final_is_not_merged(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            await storage.append_events("r", run.epoch, words(*"abc"), caller=LOCAL)
            pending = await enqueued(storage, "pending")
            await refused(storage.merge_events("r", [part(1, 2)], caller=LOCAL), Conflict, "run_active")
            await refused(storage.merge_events("pending", [], caller=LOCAL), Conflict, "run_active")
            await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            await refused(storage.merge_events("r", [part(1, 2)], caller=LOCAL), Conflict, "run_active")
            assert len(await log(storage)) == 3
            assert await current(storage, "pending") == pending

        self.play(tmp_path, scenario)

    def test_a_range_that_is_not_wholly_the_runs_own_is_refused_and_nothing_is_merged(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await ended(storage, "before", *"ab")
            run = await started(storage, "r")
            await storage.append_events("r", run.epoch, words(*"cd"), caller=LOCAL)
            waiting = await enqueued(storage, "waiting")
            await finished(storage, waiting, "cancelled", status=RunStatus.CANCELLED)
            await storage.append_events("r", run.epoch, words(*"fgh"), caller=LOCAL)
            await finished(storage, run, "end")
            await ended(storage, "after", *"jk")
            stored = list(await log(storage))
            assert [event.run_id for event in stored] == [
                *["before"] * 2, *["r"] * 2, "waiting", *["r"] * 4, *["after"] * 2
            ]  # fmt: skip
            wrong: Sequence[tuple[int, int]] = (
                (2, 3), (1, 2), (3, 6), (5, 5), (4, 5), (9, 10), (10, 11), (8, 12), (0, 3), (-1, -1), (4, 3), (99, 99),
            )  # fmt: skip
            for first_seq, last_seq in wrong:
                ranges = [part(6, 7), part(first_seq, last_seq)]
                await refused(storage.merge_events("r", ranges, caller=LOCAL), InvalidRequest, "invalid_range")
            for ranges in ([part(6, 7), part(7, 8)], [part(6, 8), part(7, 7)], [part(6, 7), part(6, 7)]):
                await refused(storage.merge_events("r", ranges, caller=LOCAL), InvalidRequest, "invalid_range")
            assert list(await log(storage)) == stored
            assert "r" in await mergeable(storage), "a refused merge is not remembered"
            await storage.merge_events("r", [part(6, 8, b"fgh"), part(3, 4, b"cd")], caller=LOCAL)
            assert [event.seq for event in await log(storage)] == [1, 2, 4, 5, 8, 9, 10, 11]

        self.play(tmp_path, scenario)

    def test_runs_of_another_owner_are_merged_by_the_system_only(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            for name in ("r", "next"):
                await finished(storage, await started(storage, name, caller=ANNA), "one", "two")
            await storage.admit_run(new_run("his", "u"), caller=BORIS)
            assert list(await storage.mergeable_runs(ended_before=FAR_AWAY, limit=9, caller=BORIS)) == []
            for run_id, caller in (("r", BORIS), ("unknown", SYSTEM)):
                await refused(storage.merge_events(run_id, [part(1, 2)], caller=caller), NotFound, "no_such_run")
            found = await storage.mergeable_runs(ended_before=FAR_AWAY, limit=9, caller=SYSTEM)
            assert [run.run_id for run in found] == ["r"]
            await storage.merge_events("r", [part(1, 2)], caller=SYSTEM)
            assert [event.seq for event in await log(storage, caller=ANNA)] == [2, 3, 4]

        self.play(tmp_path, scenario)
