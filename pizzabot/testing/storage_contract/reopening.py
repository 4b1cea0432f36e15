"""The storage contract, part: opening again finds everything (`durable`) or nothing."""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.storage_contract.base import (
    StorageSuite,
    current,
    enqueued,
    finished,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot.testing.storage_contract.graph import put_checkpoint, thread_config
from pizzabot_hookspecs import LOCAL, Conflict, Unavailable
from pizzabot_hookspecs.storage_backends import CancelReason, RunStatus, Storage


class ReopeningContract(StorageSuite):
    def test_opening_again_finds_every_row_and_goes_on_counting(self, tmp_path: Path) -> None:
        seen: dict[str, object] = {}

        async def everything(storage: Storage) -> dict[str, object]:
            return {
                "threads": list(await storage.threads(caller=LOCAL)),
                "unfinished": list(await storage.unfinished_runs(caller=LOCAL)),
                "ended": await storage.run("ended", caller=LOCAL),
                "queue": await storage.next_pending("t", caller=LOCAL),
                "events": list(await log(storage)),
                "bounds": await storage.log_bounds("t", caller=LOCAL),
                "setting": await storage.setting("theme", caller=LOCAL),
            }

        async def first(storage: Storage) -> None:
            await storage.create_thread("empty", caller=LOCAL, title="Pizza", metadata={"a": [1]})
            await finished(storage, await started(storage, "ended"), "one", "two", status=RunStatus.ERROR)
            run = await started(storage, "running", message_id="m", idempotency_key="key")
            await storage.append_events("running", run.epoch, words("three"), caller=LOCAL)
            await enqueued(storage, "waiting")
            await storage.request_cancel("running", reason=CancelReason.SHUTDOWN, caller=LOCAL)
            await storage.put_setting("theme", {"dark": True}, caller=LOCAL)
            seen.update(await everything(storage))

        async def second(storage: Storage) -> None:
            if not self.durable:
                assert list(await storage.threads(caller=LOCAL)) == []
                assert list(await storage.unfinished_runs(caller=LOCAL)) == []
                assert await storage.setting("theme", caller=LOCAL) is None
                return
            assert await everything(storage) == seen
            again = await storage.admit_run(new_run("x", idempotency_key="key"), caller=LOCAL)
            assert (again.created, again.run.run_id) == (False, "running")
            other = new_run("x", message_id="m", fingerprint="other")
            await refused(storage.admit_run(other, caller=LOCAL), Conflict, "idempotency_mismatch")
            old = await current(storage, "running")
            taken = await storage.claim_run("running", server_id="server-2", takeover=True, caller=LOCAL)
            assert taken is not None
            assert await finished(storage, taken, "four", status=RunStatus.CANCELLED) == 4
            late = storage.append_events("running", old.epoch, words("late"), caller=LOCAL)
            await refused(late, Conflict, "lease_lost")

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
            await refused(kept[0].checkpointer(), Unavailable, "storage_closed")

        self.play(tmp_path, first, second)
