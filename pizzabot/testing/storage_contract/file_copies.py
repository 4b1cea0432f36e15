"""The storage contract, part: a thread that is a copy has the files that came with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pizzabot.testing.run_store_contract.base import ANNA, BORIS, refused
from pizzabot.testing.storage_contract.adopting import LONG_AGO, copy_of, log_of, run_of
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot.testing.storage_contract.file_writing import PATH, digest, put, seen
from pizzabot_hookspecs import LOCAL, InvalidRequest
from pizzabot_hookspecs.file_storage import FileVersion
from pizzabot_hookspecs.storage_backends import Storage, ThreadCopy


def version_of(version: int, path: str = PATH, **fields: Any) -> FileVersion:
    values: dict[str, Any] = {
        "thread_id": "t",
        "sha256": digest(version),
        "size": version,
        "media_type": "text/plain",
        "author": "agent",
        "turn_id": None,
        "run_id": None,
        "seq": 1,
        "created_at": LONG_AGO + version,
    }
    return FileVersion(path=path, version=version, **values | fields)


def with_files(files: Sequence[FileVersion], *, events: int = 4) -> ThreadCopy:
    return copy_of([run_of("a")], log_of("a", *[None] * (events - 1)), files=files)


class FileCopyContract(WholeSuite):
    def test_a_copy_has_the_versions_it_was_given_as_they_were_numbered(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            files = [
                version_of(7, turn_id="two", sha256=None, size=0, seq=4),
                version_of(2, run_id="a", turn_id="one"),
                version_of(1, "/other", author="person", seq=3),
                version_of(3, turn_id="one", seq=2),
            ]
            await storage.adopt_thread(with_files(files), caller=ANNA)
            found = await storage.file_versions("t", PATH, limit=9, caller=ANNA)
            assert list(found) == [files[0], files[3], files[1]]
            assert list(await seen(storage, caller=ANNA)) == [files[0], files[2]]
            branch = await storage.files("t", turns=["one"], caller=ANNA)
            assert list(branch) == [files[3], files[2]]
            assert list(await storage.run_files("t", "a", caller=ANNA)) == [files[1]]
            assert await storage.used_blobs([digest(3), digest(7)]) == {digest(3)}
            assert list(await seen(storage, caller=BORIS)) == []

        self.play(tmp_path, scenario)

    def test_a_copy_counts_on_from_its_highest_version(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.adopt_thread(with_files([version_of(5), version_of(2)]), caller=LOCAL)
            made = await put(storage)
            assert (made.version, made.seq) == (6, 5)
            assert (await put(storage, "/new")).version == 1
            assert await storage.delete_thread("t", caller=LOCAL)
            assert await storage.used_blobs([digest(5), digest(2)]) == frozenset()

        self.play(tmp_path, scenario)

    def test_many_versions_are_adopted_and_found_when_opened_again(self, tmp_path: Path) -> None:
        files = [version_of(version, f"/{path:04}") for path in range(500) for version in (1, 2, 3)]

        async def first(storage: Storage) -> None:
            await storage.adopt_thread(with_files(files), caller=LOCAL)
            assert list(await seen(storage)) == files[2::3]

        async def second(storage: Storage) -> None:
            assert list(await seen(storage)) == (files[2::3] if self.durable else [])

        self.play(tmp_path, first, second)

    def test_files_that_are_not_the_copys_are_refused_and_nothing_is_stored(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            wrong = {
                "of another thread": [version_of(1, thread_id="u")],
                "of a run that is not in the copy": [version_of(1, run_id="b")],
                "of an event before the first": [version_of(1, seq=0)],
                "of an event behind the last": [version_of(1, seq=5)],
                "a number below one": [version_of(0)],
                "two of one number": [version_of(2), version_of(1), replace(version_of(2), seq=2)],
            }
            for what, files in wrong.items():
                call = storage.adopt_thread(with_files(files), caller=LOCAL)
                refusal = await refused(call, InvalidRequest, "invalid_copy")
                assert PATH in refusal.detail, what
            assert await storage.thread("t", caller=LOCAL) is None
            assert await storage.run("a", caller=LOCAL) is None
            await storage.adopt_thread(with_files([version_of(1, seq=4)]), caller=LOCAL)

        self.play(tmp_path, scenario)
