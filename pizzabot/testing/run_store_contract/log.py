"""The run store contract, part: the log. One order per thread, 1..n without gaps, batches whole or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    RunStore,
    StoreSuite,
    enqueued,
    finished,
    log,
    log_texts,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, InvalidRequest
from pizzabot_hookspecs.storage_backends import (
    LogBounds,
    NewEvent,
    RunStatus,
    StoredEvent,
)

WRITERS = 8
BATCHES = 12


class LogContract(StoreSuite):
    def test_an_event_is_read_back_byte_for_byte(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            data = '{"text":"Zlín ☕ 🫖\\u0000\\ud83d"}'.encode()
            new = [
                NewEvent(method="messages", data=data, timestamp=1_700_000_000_123, namespace=("a:1", "b|ž"), node="n"),
                NewEvent(method="custom", data=b"{}", timestamp=1_700_000_000_123, name="pizzabot.turn"),
                NewEvent(method="values", data=b"x" * 200_000, timestamp=0),
            ]
            await storage.append_events("r", run.epoch, new, caller=LOCAL)
            assert list(await log(storage)) == [
                StoredEvent(
                    seq=seq,
                    thread_id="t",
                    run_id="r",
                    method=event.method,
                    data=event.data,
                    timestamp=event.timestamp,
                    namespace=event.namespace,
                    node=event.node,
                    name=event.name,
                )
                for seq, event in enumerate(new, start=1)
            ]
            assert (await log(storage))[0].event_id == "synth:r:1"

        self.play(tmp_path, scenario)

    def test_batches_of_any_size_follow_each_other_without_gaps(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            expected = 1
            for size in (1, 2, 31, 32, 33, 64, 100, 0, 1):
                texts = [f"{size}-{place}" for place in range(size)]
                assert await storage.append_events("r", run.epoch, words(*texts), caller=LOCAL) == expected
                expected += size
            events = await log(storage)
            assert [event.seq for event in events] == list(range(1, expected))
            assert [event.data for event in events[-2:]] == [b'{"text":"100-99"}', b'{"text":"1-0"}']

        self.play(tmp_path, scenario)

    def test_numbers_are_per_thread_and_go_on_from_run_to_run(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            first = await started(storage, "r1")
            other = await started(storage, "other", "u")
            assert await finished(storage, first, "one", "two") == 1
            assert await storage.append_events("other", other.epoch, words("x"), caller=LOCAL) == 1
            second = await started(storage, "r2")
            assert await storage.append_events("r2", second.epoch, words("three"), caller=LOCAL) == 3
            assert [event.run_id for event in await log(storage)] == ["r1", "r1", "r2"]

        self.play(tmp_path, scenario)

    def test_writers_at_once_on_one_thread_leave_no_gap_and_no_torn_batch(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            runs = [await started(storage, "w0")]
            runs += [await enqueued(storage, f"w{number}") for number in range(1, WRITERS)]

            async def write(place: int) -> dict[int, list[bytes]]:
                run, written = runs[place], {}
                for batch in range(BATCHES):
                    new = words(*(f"{place}.{batch}.{part}" for part in range(1 + (place + batch) % 5)))
                    seq = await storage.append_events(run.run_id, run.epoch, new, caller=LOCAL)
                    written[seq] = [event.data for event in new]
                return written

            batches = await asyncio.gather(*(write(place) for place in range(WRITERS)))
            stored = await log(storage)
            assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
            data = [event.data for event in stored]
            for written in batches:
                for seq, texts in written.items():
                    assert data[seq - 1 : seq - 1 + len(texts)] == texts
            assert len(stored) == sum(len(texts) for written in batches for texts in written.values())

        self.play(tmp_path, scenario)

    def test_a_write_whose_awaiter_was_cancelled_is_whole_or_absent(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            batch = words(*(f"{place}" for place in range(40)))
            tasks = [asyncio.create_task(storage.append_events("r", run.epoch, batch, caller=LOCAL)) for _ in range(20)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            seq = await storage.append_events("r", run.epoch, words("after"), caller=LOCAL)
            stored = await log_texts(storage)
            assert len(stored) == seq
            assert (seq - 1) % 40 == 0
            for answer in answers:
                if isinstance(answer, int):
                    assert stored[answer - 1 : answer + 39] == [event.data for event in batch]
            assert sum(isinstance(answer, int) for answer in answers) >= 10

        self.play(tmp_path, scenario)

    def test_reading_starts_after_the_cursor_and_stops_at_the_limit(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            await storage.append_events("r", run.epoch, words(*"abcdefghij"), caller=LOCAL)
            for after, limit, expected in (
                (0, 3, [1, 2, 3]),
                (3, 3, [4, 5, 6]),
                (8, 100, [9, 10]),
                (10, 5, []),
                (99, 5, []),
                (-5, 2, [1, 2]),
                (0, 0, []),
            ):
                events = await storage.events("t", after=after, limit=limit, caller=LOCAL)
                assert [event.seq for event in events] == expected
            refusal = storage.events("t", after=0, limit=-1, caller=LOCAL)
            await refused(refusal, InvalidRequest, "invalid_limit")

        self.play(tmp_path, scenario)

    def test_bounds_name_first_last_and_where_the_latest_run_begins(self, tmp_path: Path) -> None:
        async def bounds(storage: RunStore) -> tuple[int, int, int | None]:
            found = await storage.log_bounds("t", caller=LOCAL)
            return found.first_seq, found.last_seq, found.latest_run_seq

        async def scenario(storage: RunStore) -> None:
            assert await bounds(storage) == (0, 0, None)
            first = await started(storage, "r1")
            assert await bounds(storage) == (0, 0, None)
            await storage.append_events("r1", first.epoch, words("one", "two"), caller=LOCAL)
            assert await bounds(storage) == (1, 2, 1)
            await finished(storage, first, "three")
            assert await bounds(storage) == (1, 3, 1)
            second = await started(storage, "r2")
            assert await bounds(storage) == (1, 3, 1), "a run without an event has not begun in the log"
            await storage.append_events("r2", second.epoch, words("four"), caller=LOCAL)
            await storage.append_events("r2", second.epoch, words("five"), caller=LOCAL)
            assert await bounds(storage) == (1, 5, 4)

        self.play(tmp_path, scenario)

    def test_a_waiting_run_that_has_events_is_not_the_latest_before_it_begins(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            active = await started(storage, "active")
            await storage.append_events("active", active.epoch, words("one"), caller=LOCAL)
            waiting = await enqueued(storage, "waiting")
            await storage.append_events("waiting", waiting.epoch, words("two"), caller=LOCAL)
            await finished(storage, active, "three")
            before = await storage.log_bounds("t", caller=LOCAL)
            assert before == LogBounds(first_seq=1, last_seq=3, latest_run_seq=1)
            await storage.claim_run("waiting", server_id="s", caller=LOCAL)
            after = await storage.log_bounds("t", caller=LOCAL)
            assert after == LogBounds(first_seq=1, last_seq=3, latest_run_seq=2)

        self.play(tmp_path, scenario)

    def test_a_takeover_does_not_move_where_the_run_begins(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            await storage.append_events("r", run.epoch, words("one"), caller=LOCAL)
            taken = await storage.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert taken is not None
            await finished(storage, taken, "two", status=RunStatus.ERROR)
            assert (await storage.log_bounds("t", caller=LOCAL)).latest_run_seq == 1

        self.play(tmp_path, scenario)

    def test_two_engines_that_write_to_one_thread_leave_no_gap(self, tmp_path: Path) -> None:
        async def scenario(first: RunStore, second: RunStore) -> None:
            for name in "ab":
                await enqueued(first, name)

            async def write(storage: RunStore, name: str) -> list[int]:
                batch = words(name, name, name)
                return [await storage.append_events(name, 0, batch, caller=LOCAL) for _ in range(30)]

            seqs = await asyncio.gather(write(first, "a"), write(second, "b"))
            assert sorted(seqs[0] + seqs[1]) == list(range(1, 180, 3))
            stored = await log(first)
            assert [event.seq for event in stored] == list(range(1, 181))
            for name, firsts in zip("ab", seqs, strict=True):
                assert all(stored[seq - 1 + part].run_id == name for seq in firsts for part in range(3))

        self.play_two(tmp_path, scenario)
