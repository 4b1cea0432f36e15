"""The storage contract, part: facts. A thread's own events stand in one log with those of its runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    enqueued,
    finished,
    log,
    log_texts,
    refused,
    started,
    words,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, SYSTEM, NotFound
from pizzabot_hookspecs.storage_backends import LogBounds, MergedEvents, NewEvent, Storage, StoredEvent

ROUNDS = 25
HEAD, TURN = "pizzabot.head", "pizzabot.turn"


def fact(name: str, text: str = "{}") -> NewEvent:
    return NewEvent(method="custom", data=text.encode(), timestamp=1_000, name=name)


async def latest(storage: Storage, *names: str, thread_id: str = "t") -> int | None:
    """The `seq` of the newest fact of these names."""
    found = await storage.latest_fact(thread_id, names, caller=LOCAL)
    return found.seq if found else None


class FactContract(WholeSuite):
    def test_a_fact_is_read_back_as_an_event_of_no_run(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            data = '{"name":"pizzabot.head","text":"Zlín ☕ \\ud83d"}'.encode()
            new = [
                NewEvent(method="custom", data=data, timestamp=1_700_000_000_123, namespace=("a:1",), name=HEAD),
                NewEvent(method="custom", data=b"{}", timestamp=0, node="n"),
            ]
            assert await storage.append_facts("t", new, caller=LOCAL) == 1
            stored = [
                StoredEvent(
                    seq=seq,
                    thread_id="t",
                    run_id=None,
                    method=event.method,
                    data=event.data,
                    timestamp=event.timestamp,
                    namespace=event.namespace,
                    node=event.node,
                    name=event.name,
                )
                for seq, event in enumerate(new, start=1)
            ]
            assert list(await log(storage)) == stored
            assert stored[0].event_id == "synth:thread:1"
            assert await storage.latest_fact("t", [HEAD], caller=LOCAL) == stored[0]
            bounds = LogBounds(first_seq=1, last_seq=2, latest_run_seq=None)
            assert await storage.log_bounds("t", caller=LOCAL) == bounds

        self.play(tmp_path, scenario)

    def test_facts_and_events_of_runs_have_one_row_of_numbers(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            assert await storage.append_facts("t", [fact(HEAD), fact(HEAD)], caller=LOCAL) == 1
            assert await storage.append_events("r", run.epoch, words("a", "b", "c"), caller=LOCAL) == 3
            assert await storage.append_facts("t", [], caller=LOCAL) == 6
            assert await storage.append_facts("t", [fact(HEAD)] * 40, caller=LOCAL) == 6
            assert await finished(storage, run, "end") == 46
            assert await storage.append_facts("t", [fact(HEAD)], caller=LOCAL) == 47
            stored = await log(storage)
            assert [event.seq for event in stored] == list(range(1, 48))
            assert [event.seq for event in stored if event.run_id == "r"] == [3, 4, 5, 46]
            assert {event.run_id for event in stored} == {"r", None}
            bounds = LogBounds(first_seq=1, last_seq=47, latest_run_seq=3)
            assert await storage.log_bounds("t", caller=LOCAL) == bounds
            thread = await storage.thread("t", caller=LOCAL)
            assert thread is not None
            assert thread.next_seq == 48

        self.play(tmp_path, scenario)

    def test_facts_that_are_written_while_runs_write_leave_no_gap_and_no_torn_batch(self, tmp_path: Path) -> None:
        async def scenario(first: Storage, second: Storage) -> None:
            runs = [await started(first, "active"), await enqueued(first, "waiting")]

            async def write(storage: Storage, place: int) -> dict[int, Sequence[NewEvent]]:
                written: dict[int, Sequence[NewEvent]] = {}
                for number in range(ROUNDS):
                    new = words(*(f"{place}.{number}.{part}" for part in range(1 + (place + number) % 4)))
                    if place < len(runs):
                        run = runs[place]
                        seq = await storage.append_events(run.run_id, run.epoch, new, caller=LOCAL)
                    else:
                        seq = await storage.append_facts("t", new, caller=LOCAL)
                    written[seq] = new
                return written

            engines = (first, second, first, second, first, second)
            batches = await asyncio.gather(*(write(storage, place) for place, storage in enumerate(engines)))
            stored = await log(first)
            assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
            assert len(stored) == sum(len(new) for written in batches for new in written.values())
            for place, written in enumerate(batches):
                for seq, new in written.items():
                    batch = stored[seq - 1 : seq - 1 + len(new)]
                    assert [event.data for event in batch] == [event.data for event in new]
                    owner = runs[place].run_id if place < len(runs) else None
                    assert {event.run_id for event in batch} == {owner}

        self.play_two(tmp_path, scenario)

    def test_facts_whose_awaiter_was_cancelled_are_all_there_or_none(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            batch = [fact(HEAD, f"{place}") for place in range(40)]
            tasks = [asyncio.create_task(storage.append_facts("t", batch, caller=LOCAL)) for _ in range(20)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            seq = await storage.append_facts("t", [fact(HEAD, "after")], caller=LOCAL)
            stored = await log_texts(storage)
            assert len(stored) == seq
            assert (seq - 1) % 40 == 0
            for answer in answers:
                if isinstance(answer, int):
                    assert stored[answer - 1 : answer + 39] == [event.data for event in batch]
            assert sum(isinstance(answer, int) for answer in answers) >= 10

        self.play(tmp_path, scenario)

    def test_opening_again_goes_on_with_the_numbers_and_knows_the_newest_fact(self, tmp_path: Path) -> None:
        ids: list[str] = []

        async def first(storage: Storage) -> None:
            run = await started(storage, "r")
            await storage.append_facts("t", [fact(TURN), fact(HEAD)], caller=LOCAL)
            await finished(storage, run, "end")
            ids.extend(event.event_id for event in await log(storage))

        async def second(storage: Storage) -> None:
            if not self.durable:
                assert await storage.latest_fact("t", [TURN, HEAD], caller=LOCAL) is None
                return
            assert ids == ["synth:thread:1", "synth:thread:2", "synth:r:3"]
            assert [event.event_id for event in await log(storage)] == ids
            assert await latest(storage, TURN, HEAD) == 2
            assert await storage.append_facts("t", [fact(TURN)], caller=LOCAL) == 4
            assert [event.event_id for event in await log(storage)] == [*ids, "synth:thread:4"]
            assert await latest(storage, TURN, HEAD) == 4

        self.play(tmp_path, first, second)

    def test_the_latest_fact_is_the_newest_of_all_names_whoever_wrote_it(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            assert await latest(storage, TURN, HEAD) is None
            await storage.append_events("r", run.epoch, [fact(TURN), *words("a", "b")], caller=LOCAL)
            await storage.append_facts("t", [fact(HEAD)], caller=LOCAL)
            await storage.append_events("r", run.epoch, [fact(TURN), fact("plugin.own"), *words("c")], caller=LOCAL)
            await started(storage, "other", "u")
            await storage.append_facts("u", [fact(HEAD)] * 9, caller=LOCAL)
            for names, expected in (
                ([TURN], 5), ([HEAD], 4), ([HEAD, TURN], 5), ([TURN, HEAD, TURN], 5), (["plugin.own", HEAD], 6),
                (["pizzabot"], None), (["pizzabot.%"], None), (["pizzabot.HEAD"], None), ([""], None), ([], None),
            ):  # fmt: skip
                assert await latest(storage, *names) == expected, names
            many = {f"name-{number}" for number in range(3_000)}
            assert await latest(storage, *many) is None
            assert await latest(storage, *many, HEAD) == 4
            assert await latest(storage, TURN, thread_id="unknown") is None

        self.play(tmp_path, scenario)

    def test_merging_leaves_facts_where_they_are(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            await storage.append_events("r", run.epoch, words("a", "b"), caller=LOCAL)
            await storage.append_facts("t", [fact(HEAD)], caller=LOCAL)
            await finished(storage, run, "c", "d")
            await storage.merge_events("r", [MergedEvents(first_seq=1, last_seq=2, data=b"ab")], caller=LOCAL)
            assert [(event.seq, event.run_id) for event in await log(storage)] == [
                (2, "r"), (3, None), (4, "r"), (5, "r")
            ]  # fmt: skip
            assert await latest(storage, HEAD) == 3
            assert await storage.append_facts("t", [fact(HEAD)], caller=LOCAL) == 6

        self.play(tmp_path, scenario)

    def test_there_are_no_facts_of_a_thread_that_is_not_the_callers(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=ANNA)
            await storage.append_facts("t", [fact(HEAD, "hers")], caller=ANNA)
            await refused(storage.append_facts("t", [fact(HEAD)], caller=BORIS), NotFound, "no_such_thread")
            await refused(storage.append_facts("unknown", [fact(HEAD)], caller=ANNA), NotFound, "no_such_thread")
            await refused(storage.append_facts("unknown", [], caller=SYSTEM), NotFound, "no_such_thread")
            assert await storage.thread("unknown", caller=SYSTEM) is None, "a refused fact makes no thread"
            assert await storage.latest_fact("t", [HEAD], caller=BORIS) is None
            assert await log_texts(storage, caller=ANNA) == [b"hers"]
            assert await storage.append_facts("t", [fact(HEAD, "system")], caller=SYSTEM) == 2
            found = await storage.latest_fact("t", [HEAD], caller=SYSTEM)
            assert found is not None
            assert found == await storage.latest_fact("t", [HEAD], caller=ANNA)
            assert found.data == b"system"

        self.play(tmp_path, scenario)

    def test_facts_go_with_their_thread(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            await storage.append_facts("t", [fact(HEAD)] * 3, caller=LOCAL)
            await storage.delete_thread("t", caller=LOCAL)
            await refused(storage.append_facts("t", [fact(HEAD)], caller=LOCAL), NotFound, "no_such_thread")
            assert await latest(storage, HEAD) is None
            await storage.create_thread("t", caller=LOCAL)
            assert await latest(storage, HEAD) is None
            assert await storage.append_facts("t", [fact(TURN)], caller=LOCAL) == 1

        self.play(tmp_path, scenario)
