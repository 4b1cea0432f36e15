"""The storage contract, part: a version of a file and its fact are stored together, or neither is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    SERVER,
    current,
    enqueued,
    finished,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, SYSTEM, Caller, Conflict, NotFound, PizzabotError
from pizzabot_hookspecs.file_storage import FileVersion, NewFileVersion
from pizzabot_hookspecs.storage_backends import NewEvent, RunStatus, Storage, StoredEvent

FACT = "pizzabot.file"
PATH = "/notes/čaj 🫖.md"
ROUNDS = 25
BEYOND_64_BITS = 2**70


def digest(number: int) -> str:
    return f"{number:064x}"


def new_file(path: str = PATH, **fields: Any) -> NewFileVersion:
    values: dict[str, Any] = {
        "thread_id": "t",
        "sha256": digest(1),
        "size": 12,
        "media_type": "text/markdown",
        "author": "agent",
    }
    return NewFileVersion(path=path, **values | fields)


def file_fact(text: str = "{}") -> NewEvent:
    return NewEvent(method="custom", data=text.encode(), timestamp=1_000, name=FACT)


async def put(storage: Storage, path: str = PATH, *, caller: Caller = LOCAL, **fields: Any) -> FileVersion:
    """A version that no epoch guards."""
    return await storage.put_file(new_file(path, **fields), file_fact(), caller=caller)


async def seen(storage: Storage, thread_id: str = "t", *, caller: Caller = LOCAL) -> Sequence[FileVersion]:
    """The newest version of each path, of all branches."""
    return await storage.files(thread_id, turns=None, caller=caller)


async def facts_of(storage: Storage, *, caller: Caller = LOCAL) -> list[StoredEvent]:
    return [event for event in await log(storage, caller=caller) if event.name == FACT]


class FileWritingContract(WholeSuite):
    def test_a_version_is_read_back_as_it_was_put_and_its_fact_stands_in_the_log(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            assert await storage.append_facts("t", words("before"), caller=LOCAL) == 1
            fact = NewEvent(method="custom", data=b'{"x":"\xc5\xbe"}', timestamp=7, namespace=("a:1",), name=FACT)
            new = new_file(sha256=digest(7), size=52_428_800, author="person", turn_id="turn-1")
            made = await storage.put_file(new, fact, caller=LOCAL)
            thread = await storage.thread("t", caller=LOCAL)
            assert thread is not None
            assert made == FileVersion(
                thread_id="t",
                path=PATH,
                version=1,
                sha256=digest(7),
                size=52_428_800,
                media_type="text/markdown",
                author="person",
                turn_id="turn-1",
                run_id=None,
                seq=2,
                created_at=made.created_at,
            )
            assert made.created_at >= thread.created_at
            assert list(await seen(storage)) == [made]
            assert thread.next_seq == 3
            (stored,) = await facts_of(storage)
            assert stored == StoredEvent(
                seq=2, thread_id="t", run_id=None, method="custom", data=fact.data, timestamp=7,
                namespace=("a:1",), name=FACT,
            )  # fmt: skip
            assert await storage.latest_fact("t", [FACT], caller=LOCAL) == stored

        self.play(tmp_path, scenario)

    def test_versions_of_a_path_count_from_one_over_all_branches_and_a_delete_is_one(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for thread_id in ("t", "u"):
                await storage.create_thread(thread_id, caller=LOCAL)
            made = [
                await put(storage, turn_id="one"),
                await put(storage, turn_id="two"),
                await put(storage, "/other"),
                await put(storage, sha256=None, size=0),
                await put(storage, PATH.upper()),
                await put(storage, turn_id="one"),
                await put(storage, thread_id="u"),
            ]
            assert [version.version for version in made] == [1, 2, 1, 3, 1, 4, 1]
            assert [version.seq for version in made] == [1, 2, 3, 4, 5, 6, 1]
            assert made[3].sha256 is None

        self.play(tmp_path, scenario)

    def test_a_run_writes_under_its_epoch_and_its_events_begin_with_the_fact(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            made = await storage.put_file(new_file(run_id="r"), file_fact(), epoch=run.epoch, caller=LOCAL)
            assert (made.run_id, made.seq) == ("r", 1)
            assert await storage.append_events("r", run.epoch, words("a"), caller=LOCAL) == 2
            made = await storage.put_file(new_file(run_id="r"), file_fact(), epoch=run.epoch, caller=LOCAL)
            assert (made.version, made.seq) == (2, 3)
            assert [event.run_id for event in await log(storage)] == ["r"] * 3
            assert (await current(storage, "r")).first_seq == 1
            assert (await storage.log_bounds("t", caller=LOCAL)).latest_run_seq == 1
            other = await started(storage, "other", "u")
            made = await storage.put_file(new_file(thread_id="u", run_id="other"), file_fact(), caller=LOCAL)
            assert (await current(storage, "other")).first_seq == made.seq == 1
            assert await storage.append_events("other", other.epoch, words("a"), caller=LOCAL) == 2

        self.play(tmp_path, scenario)

    def test_a_run_that_does_not_hold_the_epoch_writes_neither_file_nor_fact(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            old = await started(storage, "r")
            held = await storage.claim_run("r", server_id=SERVER, takeover=True, caller=LOCAL)
            assert held is not None
            elsewhere = await started(storage, "elsewhere", "u")
            waiting = await enqueued(storage, "waiting")
            refusals = [
                (new_file(run_id="r"), old.epoch, LOCAL),
                (new_file(run_id="r"), held.epoch + 1, LOCAL),
                (new_file(run_id="r"), held.epoch, BORIS),
                (new_file(run_id="unknown"), 1, LOCAL),
                (new_file(run_id=None), held.epoch, LOCAL),
                (new_file(run_id="elsewhere"), elsewhere.epoch, LOCAL),
                (new_file(run_id="waiting"), waiting.epoch + 1, LOCAL),
            ]
            for new, epoch, caller in refusals:
                call = storage.put_file(new, file_fact(), epoch=epoch, caller=caller)
                await refused(call, Conflict, "lease_lost")
            assert list(await seen(storage)) == []
            assert list(await seen(storage, "u")) == []
            assert await finished(storage, held, "end") == 1, "no number is lost"
            ended = storage.put_file(new_file(run_id="r"), file_fact(), epoch=held.epoch, caller=LOCAL)
            await refused(ended, Conflict, "lease_lost")
            assert list(await seen(storage)) == []
            assert [event.seq for event in await log(storage)] == [1]
            assert list(await log(storage, "u")) == []

        self.play(tmp_path, scenario)

    def test_there_is_no_file_of_a_thread_that_is_not_the_callers_or_of_an_unknown_run(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=ANNA)
            await started(storage, "elsewhere", "u", caller=ANNA)
            await refused(put(storage, caller=BORIS), NotFound, "no_such_thread")
            await refused(put(storage, thread_id="unknown", caller=SYSTEM), NotFound, "no_such_thread")
            assert await storage.thread("unknown", caller=SYSTEM) is None, "a refused file makes no thread"
            for run_id in ("unknown", "elsewhere"):
                await refused(put(storage, run_id=run_id, caller=ANNA), NotFound, "no_such_run")
            assert list(await seen(storage, caller=ANNA)) == []
            assert list(await log(storage, caller=ANNA)) == []
            made = await put(storage, caller=SYSTEM)
            assert list(await seen(storage, caller=ANNA)) == [made]

        self.play(tmp_path, scenario)

    def test_a_value_that_cannot_be_stored_leaves_both_or_neither(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            stored = 1
            await put(storage)
            for number in (BEYOND_64_BITS, -BEYOND_64_BITS):
                try:
                    await put(storage, size=number)
                except PizzabotError:
                    continue
                stored += 1
            assert (await seen(storage))[0].version == stored
            assert len(await facts_of(storage)) == stored
            assert (await put(storage)).seq == stored + 1

        self.play(tmp_path, scenario)

    def test_files_that_are_put_while_a_run_writes_leave_no_gap_and_count_their_versions(self, tmp_path: Path) -> None:
        """Statement 6 of spec/12 §10: the run appends, it writes files, and a person edits them, all at once."""

        async def scenario(first: Storage, second: Storage) -> None:
            run = await started(first, "r")
            written: dict[int, tuple[str | None, bytes]] = {}

            async def write(storage: Storage, place: int) -> None:
                for number in range(ROUNDS):
                    fact, run_id = file_fact(f'"{place}.{number}"'), "r" if place % 2 else None
                    if place < 2:
                        run_id, new = "r", [fact] * (1 + number % 3)
                        seq = await storage.append_events("r", run.epoch, new, caller=LOCAL)
                        written.update(dict.fromkeys(range(seq, seq + len(new)), (run_id, fact.data)))
                        continue
                    epoch = run.epoch if run_id else None
                    made = await storage.put_file(new_file(run_id=run_id), fact, epoch=epoch, caller=LOCAL)
                    written[made.seq] = (run_id, fact.data)

            engines = (first, second) * 3
            await asyncio.gather(*(write(storage, place) for place, storage in enumerate(engines)))
            stored = await log(first)
            assert [event.seq for event in stored] == list(range(1, len(stored) + 1))
            assert {event.seq: (event.run_id, event.data) for event in stored} == written
            versions = await second.file_versions("t", PATH, limit=1_000, caller=LOCAL)
            assert [version.version for version in versions] == list(range(4 * ROUNDS, 0, -1))
            assert [version.seq for version in versions] == sorted({made.seq for made in versions}, reverse=True)
            assert all(written[version.seq][0] == version.run_id for version in versions)

        self.play_two(tmp_path, scenario)

    def test_nobody_sees_a_file_without_its_fact_or_a_fact_without_its_file(self, tmp_path: Path) -> None:
        async def scenario(first: Storage, second: Storage) -> None:
            await first.create_thread("t", caller=LOCAL)
            paths = [f"/{number}" for number in range(5)]

            async def write(path: str) -> None:
                for _ in range(ROUNDS):
                    await put(first, path)
                    await asyncio.sleep(0)

            writing = asyncio.gather(*map(write, paths))
            done = False
            while not done:
                done = writing.done()
                files = {version.seq for version in await seen(second)}
                facts = {event.seq for event in await facts_of(second)}
                assert files <= facts
                later = [await second.file_versions("t", path, limit=1_000, caller=LOCAL) for path in paths]
                assert facts <= {version.seq for versions in later for version in versions}
                await asyncio.sleep(0)
            await writing

        self.play_two(tmp_path, scenario)

    def test_a_file_whose_awaiter_was_cancelled_is_there_with_its_fact_or_not_at_all(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            tasks = [asyncio.create_task(put(storage, f"/{number}")) for number in range(20)]
            await asyncio.sleep(0)
            for task in tasks[::2]:
                task.cancel()
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            last = await put(storage, "/last")
            files, facts = await seen(storage), await facts_of(storage)
            assert sorted(version.seq for version in files) == [event.seq for event in facts]
            assert len(facts) == last.seq
            assert {answer for answer in answers if isinstance(answer, FileVersion)} <= set(files)
            assert sum(isinstance(answer, FileVersion) for answer in answers) >= 10

        self.play(tmp_path, scenario)

    def test_merging_the_events_of_a_run_leaves_its_files(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            made = await storage.put_file(new_file(run_id="r"), file_fact(), epoch=run.epoch, caller=LOCAL)
            await finished(storage, run, "end", status=RunStatus.ERROR)
            await storage.admit_run(new_run("next"), caller=LOCAL)
            await storage.merge_events("r", [], caller=LOCAL)
            assert list(await storage.run_files("t", "r", caller=LOCAL)) == [made]
            again = await put(storage)
            assert again == replace(made, version=2, run_id=None, seq=3, created_at=again.created_at)

        self.play(tmp_path, scenario)
