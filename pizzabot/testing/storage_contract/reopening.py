"""The storage contract, part: opening again finds everything (`durable`) or nothing."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    new_run,
    refused,
    started,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot.testing.storage_contract.graph import put_checkpoint, thread_config
from pizzabot_hookspecs import LOCAL, Unavailable
from pizzabot_hookspecs.storage_backends import (
    Storage,
)


class ReopeningContract(WholeSuite):
    def test_opening_again_finds_threads_and_settings(self, tmp_path: Path) -> None:
        seen: list[object] = []

        async def first(storage: Storage) -> None:
            await storage.create_thread("empty", caller=LOCAL, title="Pizza", metadata={"a": [1]})
            await started(storage, "r")
            await storage.put_setting("theme", {"dark": True}, caller=LOCAL)
            seen.extend(await storage.threads(caller=LOCAL))

        async def second(storage: Storage) -> None:
            assert list(await storage.threads(caller=LOCAL)) == (seen if self.durable else [])
            assert await storage.setting("theme", caller=LOCAL) == ({"dark": True} if self.durable else None)

        self.play(tmp_path, first, second)

    def test_opening_again_finds_checkpoints_and_the_store(self, tmp_path: Path) -> None:
        async def first(storage: Storage) -> None:
            await put_checkpoint(await storage.checkpointer(), {"messages": ["hello"]})
            await (await storage.store()).aput(("memories",), "key", {"a": 1})

        async def second(storage: Storage) -> None:
            saver, store = await storage.checkpointer(), await storage.store()
            found, item = await saver.aget_tuple(thread_config()), await store.aget(("memories",), "key")
            if not self.durable:
                assert found is None
                assert item is None
                return
            assert found is not None
            assert found.checkpoint["channel_values"] == {"messages": ["hello"]}
            assert item is not None
            assert item.value == {"a": 1}

        self.play(tmp_path, first, second)

    def test_a_closed_storage_says_so(self, tmp_path: Path) -> None:
        kept: list[Storage] = []

        async def first(storage: Storage) -> None:
            kept.append(storage)

        async def second(_storage: Storage) -> None:
            await refused(kept[0].thread("t", caller=LOCAL), Unavailable, "storage_closed")
            await refused(kept[0].admit_run(new_run("r"), caller=LOCAL), Unavailable, "storage_closed")
            await refused(kept[0].transcript_index("t", caller=LOCAL), Unavailable, "storage_closed")
            await refused(kept[0].append_facts("t", [], caller=LOCAL), Unavailable, "storage_closed")
            await refused(kept[0].files("t", turns=None, caller=LOCAL), Unavailable, "storage_closed")
            await refused(kept[0].folder_grants(caller=LOCAL), Unavailable, "storage_closed")
            await refused(kept[0].checkpointer(), Unavailable, "storage_closed")

        self.play(tmp_path, first, second)
