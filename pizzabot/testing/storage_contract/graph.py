"""The storage contract, part: what a LangGraph runtime keeps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs.storage_backends import Storage

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint


class GraphContract(WholeSuite):
    def test_first_callers_at_once_get_the_same_checkpointer_and_store(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            savers = await asyncio.gather(*(storage.checkpointer() for _ in range(20)))
            stores = await asyncio.gather(*(storage.store() for _ in range(20)))
            assert len({id(saver) for saver in savers}) == 1
            assert len({id(store) for store in stores}) == 1

        self.play(tmp_path, scenario)

    def test_a_checkpoint_with_messages_is_read_back_and_deleted(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            from langchain_core.messages import AIMessage, HumanMessage

            saver = await storage.checkpointer()
            messages = [HumanMessage("pizza?", id="m1"), AIMessage("Margherita 🍕", id="m2")]
            await put_checkpoint(saver, {"messages": messages})
            found = await saver.aget_tuple(thread_config())
            assert found is not None
            assert found.checkpoint["channel_values"]["messages"] == messages
            await saver.adelete_thread("t")
            assert await saver.aget_tuple(thread_config()) is None

        self.play(tmp_path, scenario)

    def test_a_lone_surrogate_never_makes_the_serializer_change_its_format(self, tmp_path: Path) -> None:
        """CVE-2025-64439: a fallback to another format on write was a way to run code on read."""

        async def scenario(storage: Storage) -> None:
            saver = await storage.checkpointer()
            broken = {"messages": ["half a pair: \ud83d"]}
            try:
                kind, _ = saver.serde.dumps_typed(broken)
            except (TypeError, ValueError):
                kind = "refused"
            assert kind in {"msgpack", "refused"}
            kind, data = saver.serde.dumps_typed({"messages": ["whole: 🫖"]})
            assert kind == "msgpack"
            assert saver.serde.loads_typed((kind, data)) == {"messages": ["whole: 🫖"]}

        self.play(tmp_path, scenario)

    def test_a_type_that_is_not_langgraphs_own_is_not_rebuilt_from_a_checkpoint(self, tmp_path: Path) -> None:
        """CVE-2026-28277: who can write the checkpoint file must not choose what is called when it is read."""

        async def scenario(storage: Storage) -> None:
            from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

            saver = await storage.checkpointer()
            written = JsonPlusSerializer().dumps_typed(Strange(text="x"))
            assert not isinstance(saver.serde.loads_typed(written), Strange)

        self.play(tmp_path, scenario)

    def test_the_store_keeps_values_by_namespace_and_key(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            store = await storage.store()
            await store.aput(("memories", "anna"), "likes", {"topping": "basil"})
            item = await store.aget(("memories", "anna"), "likes")
            assert item is not None
            assert item.value == {"topping": "basil"}
            assert await store.aget(("memories", "boris"), "likes") is None
            await store.adelete(("memories", "anna"), "likes")
            assert await store.aget(("memories", "anna"), "likes") is None

        self.play(tmp_path, scenario)


@dataclass(frozen=True)
class Strange:
    """Stands for any type that a checkpoint could name."""

    text: str


def thread_config() -> RunnableConfig:
    return {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


async def put_checkpoint(saver: BaseCheckpointSaver[Any], values: dict[str, Any]) -> None:
    from langgraph.checkpoint.base import empty_checkpoint

    versions: dict[str, Any] = dict.fromkeys(values, "1")
    checkpoint: Checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}
    await saver.aput(thread_config(), checkpoint, {"source": "input", "step": -1, "parents": {}}, versions)
