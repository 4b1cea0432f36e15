"""The storage contract, part: what is seen of a thread's files, on a branch, by a run, and by their digests."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.run_store_contract.base import ANNA, BORIS, finished, log, refused, started
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot.testing.storage_contract.file_writing import PATH, digest, file_fact, new_file, put, seen
from pizzabot_hookspecs import LOCAL, SYSTEM, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.storage_backends import Storage

MANY = 5_000


class FileContract(WholeSuite):
    def test_the_newest_version_of_each_path_is_listed_in_the_order_of_the_paths(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            await storage.create_thread("u", caller=LOCAL)
            paths = ["/b", "/a/z", "/a", "/Ž", "/B", "/ž.md", "/a b", "/a%20b", "/🫖", "/\ufb00"]
            for path in paths:
                await put(storage, path)
            newest = {path: await put(storage, path, turn_id="x", sha256=digest(9)) for path in reversed(paths)}
            newest["/b"] = await put(storage, "/b", sha256=None, size=0)
            await put(storage, "/elsewhere", thread_id="u")
            listed = list(await seen(storage))
            assert listed == [newest[path] for path in sorted(paths)]
            assert listed[[file.path for file in listed].index("/b")].sha256 is None, "a deleted file is told as such"
            assert list(await seen(storage, "unknown")) == []

        self.play(tmp_path, scenario)

    def test_a_branch_sees_the_versions_of_its_turns_and_those_of_no_turn(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            for path, turn_id in (
                ("/all", None), ("/all", "one"), ("/both", "one"), ("/both", "two"), ("/late", "one"), ("/late", None),
                ("/mine", "one"), ("/others", "two"), ("/all", "two"),
            ):  # fmt: skip
                await put(storage, path, turn_id=turn_id)
            await put(storage, "/mine", turn_id="two", sha256=None)
            await put(storage, "/both", turn_id="")

            async def branch(*turns: str) -> dict[str, int]:
                files = await storage.files("t", turns=turns, caller=LOCAL)
                assert [file.path for file in files] == sorted(file.path for file in files)
                return {file.path: file.version for file in files}

            assert await branch() == {"/all": 1, "/late": 2}
            assert await branch("one") == {"/all": 2, "/both": 1, "/late": 2, "/mine": 1}
            assert await branch("two") == {"/all": 3, "/both": 2, "/late": 2, "/mine": 2, "/others": 1}
            assert await branch("two", "one", "two") == await branch("one", "two")
            assert await branch("") == {"/all": 1, "/both": 3, "/late": 2}
            assert await branch("ONE", "%", "None") == await branch()
            every = {file.path: file.version for file in await seen(storage)}
            assert every == {"/all": 3, "/both": 3, "/late": 2, "/mine": 2, "/others": 1}
            many = [f"turn-{number}" for number in range(MANY)]
            assert await branch(*many) == await branch()
            assert await branch(*many, "one") == await branch("one")

        self.play(tmp_path, scenario)

    def test_one_path_is_asked_for_alone_and_as_it_is_written(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            for path in ("/a", "/A", "/a/b", "/a%"):
                await put(storage, path, turn_id="one")
                await put(storage, path, turn_id="two")
            asked: list[tuple[list[str] | None, int]] = [(None, 2), (["one"], 1), (["two"], 2), (["one", "two"], 2)]
            for turns, version in asked:
                (found,) = await storage.files("t", turns=turns, path="/a", caller=LOCAL)
                assert (found.path, found.version) == ("/a", version)
            for path in ("/nothing", "", "/a_"):
                assert list(await storage.files("t", turns=None, path=path, caller=LOCAL)) == []
            for others in ("one or two", "three"):
                assert list(await storage.files("t", turns=[others], path="/a", caller=LOCAL)) == []

        self.play(tmp_path, scenario)

    def test_the_versions_of_a_path_are_those_of_every_branch_newest_first(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            made = []
            for number in range(6):
                made.append(await put(storage, turn_id=f"turn-{number % 2}", sha256=digest(number)))
                await put(storage, "/other")
            for limit in (0, 1, 4, 6, 100):
                found = await storage.file_versions("t", PATH, limit=limit, caller=LOCAL)
                assert list(found) == made[::-1][:limit]
            assert list(await storage.file_versions("t", "/nothing", limit=9, caller=LOCAL)) == []
            call = storage.file_versions("t", PATH, limit=-1, caller=LOCAL)
            await refused(call, InvalidRequest, "invalid_limit")

        self.play(tmp_path, scenario)

    def test_the_files_of_a_run_are_those_it_wrote_in_its_order(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r")
            made = []
            for path in ("/z", "/a", "/z", "/m"):
                new = new_file(path, run_id="r", turn_id="one")
                made.append(await storage.put_file(new, file_fact(), epoch=run.epoch, caller=LOCAL))
                await put(storage, path, author="person")
            await finished(storage, run, "end")
            again = await started(storage, "again")
            await storage.put_file(new_file("/z", run_id="again"), file_fact(), epoch=again.epoch, caller=LOCAL)
            assert list(await storage.run_files("t", "r", caller=LOCAL)) == made
            assert [file.version for file in made] == [1, 1, 3, 1]
            assert list(await storage.run_files("t", "unknown", caller=LOCAL)) == []
            assert list(await storage.run_files("u", "r", caller=LOCAL)) == []

        self.play(tmp_path, scenario)

    def test_files_of_another_owner_are_not_seen(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r", caller=ANNA)
            made = await storage.put_file(new_file(run_id="r"), file_fact(), epoch=run.epoch, caller=ANNA)
            for caller, expected in ((ANNA, [made]), (SYSTEM, [made]), (BORIS, [])):
                assert list(await seen(storage, caller=caller)) == expected
                assert list(await storage.files("t", turns=[], caller=caller)) == expected
                assert list(await storage.files("t", turns=None, path=PATH, caller=caller)) == expected
                assert list(await storage.file_versions("t", PATH, limit=9, caller=caller)) == expected
                assert list(await storage.run_files("t", "r", caller=caller)) == expected

        self.play(tmp_path, scenario)

    def test_of_any_number_of_digests_those_that_any_row_of_any_owner_names_are_used(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for caller, thread_id in ((ANNA, "a"), (BORIS, "b")):
                await storage.create_thread(thread_id, caller=caller)
            for number in (3, 3, 4_000):
                await put(storage, thread_id="a", sha256=digest(number), caller=ANNA)
            await put(storage, thread_id="a", sha256=None, caller=ANNA)
            await put(storage, thread_id="b", sha256=digest(4_999), turn_id="gone", caller=BORIS)
            digests = [digest(number) for number in range(MANY)]
            used = await storage.used_blobs(digests)
            assert used == {digest(3), digest(4_000), digest(4_999)}
            assert isinstance(used, frozenset)
            assert await storage.used_blobs([digest(3), digest(3), digest(MANY)]) == {digest(3)}
            assert await storage.used_blobs(["", "%", digest(10).upper(), "None"]) == frozenset()
            assert await storage.used_blobs([]) == frozenset()
            await storage.delete_thread("a", caller=ANNA)
            assert await storage.used_blobs(digests) == {digest(4_999)}

        self.play(tmp_path, scenario)

    def test_files_go_with_their_thread_and_no_other(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for thread_id in ("t", "u"):
                run = await started(storage, f"r-{thread_id}", thread_id)
                new = new_file(thread_id=thread_id, run_id=run.run_id)
                await storage.put_file(new, file_fact(), epoch=run.epoch, caller=LOCAL)
                await put(storage, thread_id=thread_id)
            kept = list(await seen(storage, "u"))
            assert await storage.delete_thread("t", caller=LOCAL)
            assert list(await seen(storage)) == []
            assert list(await seen(storage, "u")) == kept
            late = storage.put_file(new_file(run_id="r-t"), file_fact(), epoch=1, caller=LOCAL)
            await refused(late, Conflict, "lease_lost")
            await refused(put(storage), NotFound, "no_such_thread")
            await storage.create_thread("t", caller=LOCAL)
            assert list(await seen(storage)) == [], "a thread made again shows nothing old"
            assert list(await storage.file_versions("t", PATH, limit=9, caller=LOCAL)) == []
            assert list(await storage.run_files("t", "r-t", caller=LOCAL)) == []
            made = await put(storage)
            assert (made.version, made.seq) == (1, 1)

        self.play(tmp_path, scenario)

    def test_opening_again_finds_the_files_and_counts_on(self, tmp_path: Path) -> None:
        kept: list[object] = []

        async def first(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            await put(storage)
            kept.append(await put(storage, turn_id="one"))

        async def second(storage: Storage) -> None:
            assert list(await seen(storage)) == (kept if self.durable else [])
            if self.durable:
                made = await put(storage)
                assert (made.version, made.seq) == (3, 3)
                assert len(await log(storage)) == 3

        self.play(tmp_path, first, second)
