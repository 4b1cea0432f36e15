"""The storage contract, part: folders that are granted, once each and to their owner alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from pizzabot.testing.run_store_contract.base import ANNA, BORIS, refused
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, SYSTEM, Conflict
from pizzabot_hookspecs.file_storage import FolderGrant
from pizzabot_hookspecs.storage_backends import Storage


def grant(grant_id: str, path: str, **fields: Any) -> FolderGrant:
    values: dict[str, Any] = {
        "owner": "local",
        "label": path.rsplit("/", 1)[-1],
        "read_only": True,
        "created_at": 1_700_000_000.25,
    }
    return FolderGrant(id=grant_id, path=path, **values | fields)


class FolderGrantContract(WholeSuite):
    def test_grants_are_listed_by_label_without_regard_to_case_then_by_id(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            paths = ["/z/Žluté", "/x/beta", "/a/Beta", "/b/alpha", "/c/žebro", "/d/ALPHA", "/e/Zeta"]
            grants = [grant(f"id-{number}", path) for number, path in enumerate(paths)]
            grants[1] = replace(grants[1], read_only=False)
            for place in (3, 6, 0, 2, 5, 1, 4):
                await storage.add_folder_grant(grants[place], caller=LOCAL)
            listed = list(await storage.folder_grants(caller=LOCAL))
            assert listed == [grants[place] for place in (3, 5, 1, 2, 6, 4, 0)]
            assert [found.read_only for found in listed].count(False) == 1

        self.play(tmp_path, scenario)

    def test_an_id_or_a_path_that_the_owner_has_already_is_refused(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.add_folder_grant(grant("a", "/work"), caller=ANNA)
            for again in (grant("a", "/other"), grant("b", "/work"), grant("a", "/work", read_only=False)):
                refusal = await refused(storage.add_folder_grant(again, caller=ANNA), Conflict, "already_exists")
                assert "/work" in refusal.detail
            assert list(await storage.folder_grants(caller=ANNA)) == [grant("a", "/work", owner="anna")]
            await storage.add_folder_grant(grant("b", "/Work"), caller=ANNA)
            await storage.add_folder_grant(grant("a", "/work"), caller=BORIS)
            assert await storage.delete_folder_grant("a", caller=ANNA) is True
            await storage.add_folder_grant(grant("c", "/work"), caller=ANNA)

        self.play(tmp_path, scenario)

    def test_of_those_who_grant_a_folder_at_once_one_does(self, tmp_path: Path) -> None:
        async def scenario(first: Storage, second: Storage) -> None:
            answers = await asyncio.gather(
                *(
                    storage.add_folder_grant(grant(f"id-{number}", "/work"), caller=LOCAL)
                    for number, storage in enumerate([first, second] * 4)
                ),
                return_exceptions=True,
            )
            assert answers.count(None) == 1
            assert [answer.code for answer in answers if isinstance(answer, Conflict)] == ["already_exists"] * 7
            (kept,) = await first.folder_grants(caller=LOCAL)
            assert kept.id == f"id-{answers.index(None)}"

        self.play_two(tmp_path, scenario)

    def test_grants_of_another_owner_are_neither_seen_nor_taken_away(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.add_folder_grant(grant("a", "/anna"), caller=ANNA)
            await storage.add_folder_grant(grant("b", "/boris", owner="boris"), caller=SYSTEM)
            assert [found.id for found in await storage.folder_grants(caller=ANNA)] == ["a"]
            assert [found.id for found in await storage.folder_grants(caller=BORIS)] == ["b"]
            assert [found.owner for found in await storage.folder_grants(caller=SYSTEM)] == ["anna", "boris"]
            assert await storage.delete_folder_grant("a", caller=BORIS) is False
            assert [found.id for found in await storage.folder_grants(caller=ANNA)] == ["a"]
            assert await storage.delete_folder_grant("a", caller=SYSTEM) is True
            assert await storage.delete_folder_grant("a", caller=ANNA) is False
            assert list(await storage.folder_grants(caller=ANNA)) == []

        self.play(tmp_path, scenario)

    def test_opening_again_finds_the_grants_that_were_not_taken_away(self, tmp_path: Path) -> None:
        async def first(storage: Storage) -> None:
            for name in "ab":
                await storage.add_folder_grant(grant(name, f"/{name}", read_only=False), caller=LOCAL)
            await storage.delete_folder_grant("a", caller=LOCAL)

        async def second(storage: Storage) -> None:
            kept = [grant("b", "/b", read_only=False)] if self.durable else []
            assert list(await storage.folder_grants(caller=LOCAL)) == kept

        self.play(tmp_path, first, second)
