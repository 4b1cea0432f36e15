"""The storage contract notices what goes wrong with the files of a thread: one fault each, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing import StorageContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs import SYSTEM, Caller, Conflict, PizzabotError
from pizzabot_hookspecs.file_storage import FileVersion, NewFileVersion
from pizzabot_hookspecs.storage_backends import NewEvent, Thread, ThreadCopy

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


class WritesTheFactFirst(MemoryStorage):
    """The classic: two transactions."""

    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        seq = await self.append_facts(new.thread_id, [event], caller=caller)
        await asyncio.sleep(0)
        made = await super().put_file(new, event, caller=caller, **fence)
        self._tables._threads[new.thread_id].events.pop()
        return replace(made, seq=seq)


class WritesTheFactLater(MemoryStorage):
    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        made = await super().put_file(new, event, caller=caller, **fence)
        row = self._tables._threads[new.thread_id]
        fact = row.events.pop()
        await asyncio.sleep(0)
        row.events.append(fact)
        return made


class KeepsTheFactOfARefusedFile(MemoryStorage):
    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        try:
            return await super().put_file(new, event, caller=caller, **fence)
        except PizzabotError:
            if await self.thread(new.thread_id, caller=caller):
                await self.append_facts(new.thread_id, [event], caller=caller)
            raise


class FailsWithTheFactWritten(MemoryStorage):
    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        if new.size.bit_length() > 63:
            await self.append_facts(new.thread_id, [event], caller=caller)
            raise Conflict("invalid_number", "a number beyond 64 bits cannot be stored")
        return await super().put_file(new, event, caller=caller, **fence)


class IgnoresTheEpochOfFiles(MemoryStorage):
    async def put_file(
        self, new: NewFileVersion, event: NewEvent, /, *, epoch: int | None = None, caller: Caller
    ) -> FileVersion:
        return await super().put_file(new, event, caller=caller)


class ChecksTheEpochAndWritesLater(MemoryStorage):
    """The check is right, the run is another thread's."""

    async def put_file(
        self, new: NewFileVersion, event: NewEvent, /, *, epoch: int | None = None, caller: Caller
    ) -> FileVersion:
        if epoch is not None:
            run = self._tables._held(new.run_id or "", epoch, caller).run
            new = replace(new, thread_id=run.thread_id)
        return await super().put_file(new, event, epoch=epoch, caller=caller)


class MakesFilesForAnybody(MemoryStorage):
    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        return await super().put_file(new, event, caller=SYSTEM, **fence)


class TakesTheVersionBeforeItWrites(MemoryStorage):
    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        known = await self.file_versions(new.thread_id, new.path, limit=1, caller=caller)
        await asyncio.sleep(0)
        made = await super().put_file(new, event, caller=caller, **fence)
        made = replace(made, version=known[0].version + 1 if known else 1)
        self._tables._threads[new.thread_id].files[new.path][-1] = made
        return made


class CountsVersionsForEachTurn(MemoryStorage):
    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        made = await super().put_file(new, event, caller=caller, **fence)
        versions = self._tables._threads[new.thread_id].files[new.path]
        versions[-1] = replace(made, version=sum(version.turn_id == made.turn_id for version in versions))
        return versions[-1]


class GivesTheFactOfAFileToNoRun(MemoryStorage):
    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        made = await super().put_file(new, event, caller=caller, **fence)
        events = self._tables._threads[new.thread_id].events
        events[-1] = replace(events[-1], run_id=None)
        return made


class ForgetsWhereARunBegins(MemoryStorage):
    async def put_file(self, new: NewFileVersion, event: NewEvent, /, *, caller: Caller, **fence: Any) -> FileVersion:
        made = await super().put_file(new, event, caller=caller, **fence)
        row = self._tables._runs.get(new.run_id or "")
        if row is not None and row.first_seq == made.seq:
            row.first_seq, row.run = None, replace(row.run, first_seq=None)
        return made


class ListsFilesAsTheyWerePut(MemoryStorage):
    async def files(self, thread_id: str, /, **asked: Any) -> Sequence[FileVersion]:
        return sorted(await super().files(thread_id, **asked), key=lambda file: file.seq)


class ListsFilesWithoutRegardToCase(MemoryStorage):
    async def files(self, thread_id: str, /, **asked: Any) -> Sequence[FileVersion]:
        return sorted(await super().files(thread_id, **asked), key=lambda file: file.path.casefold())


class HidesDeletedFiles(MemoryStorage):
    async def files(self, thread_id: str, /, **asked: Any) -> Sequence[FileVersion]:
        return [file for file in await super().files(thread_id, **asked) if file.sha256]


class SeesNoFileOfNoTurn(MemoryStorage):
    async def files(self, thread_id: str, /, *, turns: Collection[str] | None, **asked: Any) -> Sequence[FileVersion]:
        found = await super().files(thread_id, turns=turns, **asked)
        return found if turns is None else [file for file in found if file.turn_id]


class TakesNoTurnForAllTurns(MemoryStorage):
    async def files(self, thread_id: str, /, *, turns: Collection[str] | None, **asked: Any) -> Sequence[FileVersion]:
        return await super().files(thread_id, turns=turns or None, **asked)


class FiltersTheNewestVersions(MemoryStorage):
    """A file disappears from a branch when another branch changes it."""

    async def files(self, thread_id: str, /, *, turns: Collection[str] | None, **asked: Any) -> Sequence[FileVersion]:
        found = await super().files(thread_id, turns=None, **asked)
        return [file for file in found if turns is None or file.turn_id is None or file.turn_id in turns]


class KnowsAThousandTurns(MemoryStorage):
    async def files(self, thread_id: str, /, *, turns: Collection[str] | None, **asked: Any) -> Sequence[FileVersion]:
        return await super().files(thread_id, turns=None if turns is None else list(turns)[:1_000], **asked)


class TakesAPathForAPattern(MemoryStorage):
    async def files(self, thread_id: str, /, *, path: str | None = None, **asked: Any) -> Sequence[FileVersion]:
        return [file for file in await super().files(thread_id, **asked) if file.path.startswith(path or "")]


class ShowsEverybodysFiles(MemoryStorage):
    async def files(self, thread_id: str, /, *, caller: Caller, **asked: Any) -> Sequence[FileVersion]:
        return await super().files(thread_id, caller=SYSTEM, **asked)


class ShowsEverybodysVersions(MemoryStorage):
    async def file_versions(self, thread_id: str, path: str, /, *, limit: int, caller: Caller) -> Sequence[FileVersion]:
        return await super().file_versions(thread_id, path, limit=limit, caller=SYSTEM)


class ShowsTheOldestVersions(MemoryStorage):
    async def file_versions(self, thread_id: str, path: str, /, *, limit: int, caller: Caller) -> Sequence[FileVersion]:
        found = await super().file_versions(
            thread_id, path, limit=max(limit, -1) if limit < 0 else 10**6, caller=caller
        )
        return found[len(found) - min(limit, len(found)) :]


class ShowsEverybodysRunFiles(MemoryStorage):
    async def run_files(self, thread_id: str, run_id: str, /, *, caller: Caller) -> Sequence[FileVersion]:
        return await super().run_files(thread_id, run_id, caller=SYSTEM)


class OrdersFilesOfARunByPath(MemoryStorage):
    async def run_files(self, thread_id: str, run_id: str, /, *, caller: Caller) -> Sequence[FileVersion]:
        return sorted(await super().run_files(thread_id, run_id, caller=caller), key=lambda file: file.path)


class ShowsTheLastVersionOfARunAlone(MemoryStorage):
    async def run_files(self, thread_id: str, run_id: str, /, *, caller: Caller) -> Sequence[FileVersion]:
        found = await super().run_files(thread_id, run_id, caller=caller)
        return [file for file in found if file.version == max(of.version for of in found if of.path == file.path)]


class LooksForAThousandBlobs(MemoryStorage):
    async def used_blobs(self, digests: Collection[str], /) -> frozenset[str]:
        return await super().used_blobs(list(digests)[:1_000])


class ForgetsBlobsOfOldVersions(MemoryStorage):
    async def used_blobs(self, digests: Collection[str], /) -> frozenset[str]:
        rows = self._tables._threads.values()
        newest = {versions[-1].sha256 for row in rows for versions in row.files.values()}
        return await super().used_blobs([digest for digest in digests if digest in newest])


class KeepsFilesOfADeletedThread(MemoryStorage):
    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        row = self._tables._thread_row(thread_id, caller)
        deleted = await super().delete_thread(thread_id, caller=caller)
        self.left = row.files if row else {}
        return deleted

    async def create_thread(self, thread_id: str, /, *, caller: Caller, **fields: Any) -> Thread:
        thread = await super().create_thread(thread_id, caller=caller, **fields)
        self._tables._threads[thread_id].files = getattr(self, "left", {})
        return thread


class AdoptsNoFiles(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        return await super().adopt_thread(replace(copy, files=()), caller=caller)


class NumbersAdoptedFilesAnew(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        thread = await super().adopt_thread(copy, caller=caller)
        files = self._tables._threads[copy.thread_id].files
        for path, versions in files.items():
            files[path] = [replace(file, version=number) for number, file in enumerate(versions, start=1)]
        return thread


class AdoptsAnything(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        thread = await super().adopt_thread(replace(copy, files=()), caller=caller)
        files = self._tables._threads[copy.thread_id].files
        for file in sorted(copy.files, key=lambda file: file.version):
            files.setdefault(file.path, []).append(file)
        return thread


NOTICED_BY: dict[type[MemoryStorage], str] = {
    WritesTheFactFirst: "test_nobody_sees_a_file_without_its_fact_or_a_fact_without_its_file",
    WritesTheFactLater: "test_nobody_sees_a_file_without_its_fact_or_a_fact_without_its_file",
    KeepsTheFactOfARefusedFile: "test_a_run_that_does_not_hold_the_epoch_writes_neither_file_nor_fact",
    FailsWithTheFactWritten: "test_a_value_that_cannot_be_stored_leaves_both_or_neither",
    IgnoresTheEpochOfFiles: "test_a_run_that_does_not_hold_the_epoch_writes_neither_file_nor_fact",
    ChecksTheEpochAndWritesLater: "test_a_run_that_does_not_hold_the_epoch_writes_neither_file_nor_fact",
    MakesFilesForAnybody: "test_there_is_no_file_of_a_thread_that_is_not_the_callers_or_of_an_unknown_run",
    TakesTheVersionBeforeItWrites: "test_files_that_are_put_while_a_run_writes_leave_no_gap_and_count_their_versions",
    CountsVersionsForEachTurn: "test_versions_of_a_path_count_from_one_over_all_branches_and_a_delete_is_one",
    GivesTheFactOfAFileToNoRun: "test_a_run_writes_under_its_epoch_and_its_events_begin_with_the_fact",
    ForgetsWhereARunBegins: "test_a_run_writes_under_its_epoch_and_its_events_begin_with_the_fact",
    ListsFilesAsTheyWerePut: "test_the_newest_version_of_each_path_is_listed_in_the_order_of_the_paths",
    ListsFilesWithoutRegardToCase: "test_the_newest_version_of_each_path_is_listed_in_the_order_of_the_paths",
    HidesDeletedFiles: "test_the_newest_version_of_each_path_is_listed_in_the_order_of_the_paths",
    SeesNoFileOfNoTurn: "test_a_branch_sees_the_versions_of_its_turns_and_those_of_no_turn",
    TakesNoTurnForAllTurns: "test_a_branch_sees_the_versions_of_its_turns_and_those_of_no_turn",
    FiltersTheNewestVersions: "test_a_branch_sees_the_versions_of_its_turns_and_those_of_no_turn",
    KnowsAThousandTurns: "test_a_branch_sees_the_versions_of_its_turns_and_those_of_no_turn",
    TakesAPathForAPattern: "test_one_path_is_asked_for_alone_and_as_it_is_written",
    ShowsEverybodysFiles: "test_files_of_another_owner_are_not_seen",
    ShowsEverybodysVersions: "test_files_of_another_owner_are_not_seen",
    ShowsTheOldestVersions: "test_the_versions_of_a_path_are_those_of_every_branch_newest_first",
    ShowsEverybodysRunFiles: "test_files_of_another_owner_are_not_seen",
    OrdersFilesOfARunByPath: "test_the_files_of_a_run_are_those_it_wrote_in_its_order",
    ShowsTheLastVersionOfARunAlone: "test_the_files_of_a_run_are_those_it_wrote_in_its_order",
    LooksForAThousandBlobs: "test_of_any_number_of_digests_those_that_any_row_of_any_owner_names_are_used",
    ForgetsBlobsOfOldVersions: "test_of_any_number_of_digests_those_that_any_row_of_any_owner_names_are_used",
    KeepsFilesOfADeletedThread: "test_files_go_with_their_thread_and_no_other",
    AdoptsNoFiles: "test_a_copy_has_the_versions_it_was_given_as_they_were_numbered",
    NumbersAdoptedFilesAnew: "test_a_copy_has_the_versions_it_was_given_as_they_were_numbered",
    AdoptsAnything: "test_files_that_are_not_the_copys_are_refused_and_nothing_is_stored",
}
"""Each faulty storage and a test of the contract that fails on it."""


@pytest.mark.parametrize("kind", NOTICED_BY, ids=lambda kind: kind.__name__)
def test_the_contract_fails_on_a_storage_with_one_fault(kind: type[MemoryStorage], fails: Fails) -> None:
    assert fails(StorageContract, kind, NOTICED_BY[kind])
