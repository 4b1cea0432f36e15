"""The storage contract, part: threads belong to their owner."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import SYSTEM
from pizzabot_hookspecs.storage_backends import (
    Storage,
)


class ThreadOwnerContract(WholeSuite):
    def test_each_owner_sees_the_own_threads_only(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for caller, thread_id in ((ANNA, "a"), (BORIS, "b")):
                await storage.create_thread(thread_id, caller=caller)
            assert await storage.thread("a", caller=BORIS) is None
            assert [thread.thread_id for thread in await storage.threads(caller=ANNA)] == ["a"]
            assert [thread.thread_id for thread in await storage.threads(caller=BORIS)] == ["b"]
            assert [thread.thread_id for thread in await storage.threads(caller=SYSTEM)] == ["b", "a"]

        self.play(tmp_path, scenario)

    def test_nobody_changes_or_deletes_threads_of_another_owner(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            made = await storage.create_thread("t", caller=ANNA)
            await storage.pin_model("t", "theirs", caller=BORIS)
            assert await storage.delete_thread("t", caller=BORIS) is False
            assert await storage.thread("t", caller=ANNA) == made

        self.play(tmp_path, scenario)
