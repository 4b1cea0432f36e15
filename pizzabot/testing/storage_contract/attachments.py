"""The storage contract, part: attachments belong to their owner, and to every thread that refers to them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pizzabot.testing.run_store_contract.base import ANNA, BORIS, refused
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, SYSTEM, Caller, Conflict, NotFound
from pizzabot_hookspecs.file_storage import Attachment
from pizzabot_hookspecs.storage_backends import Storage, ThreadCopy

LONG_AGO = 1_700_000_000.25


def attached(attachment_id: str, **fields: Any) -> Attachment:
    values: dict[str, Any] = {
        "owner": "local",
        "thread_id": None,
        "filename": "čaj 🫖.png",
        "media_type": "image/png",
        "size": 1_024,
        "created_at": LONG_AGO,
    }
    return Attachment(id=attachment_id, **values | fields)


async def ids_of(storage: Storage, thread_id: str, *, caller: Caller = LOCAL) -> Sequence[str]:
    return [found.id for found in await storage.thread_attachments(thread_id, caller=caller)]


class AttachmentContract(WholeSuite):
    def test_an_attachment_is_read_back_as_it_was_added(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=LOCAL)
            free, of_thread = attached("a"), attached("b", thread_id="t", size=0)
            for new in (free, of_thread):
                await storage.add_attachment(new, caller=LOCAL)
            assert await storage.attachment("a", caller=LOCAL) == free
            assert await storage.attachment("b", caller=LOCAL) == of_thread
            assert await storage.attachment("c", caller=LOCAL) is None
            assert list(await storage.thread_attachments("t", caller=LOCAL)) == [of_thread]
            assert await ids_of(storage, "unknown") == []

        self.play(tmp_path, scenario)

    def test_an_id_is_used_once_and_a_thread_has_to_be_there(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("anna's", caller=ANNA)
            await storage.add_attachment(attached("a"), caller=ANNA)
            for caller in (ANNA, BORIS, SYSTEM):
                again = storage.add_attachment(attached("a", filename="other"), caller=caller)
                await refused(again, Conflict, "already_exists")
            kept = await storage.attachment("a", caller=ANNA)
            assert kept == attached("a", owner="anna"), "it is the caller's, whatever the row says"
            for caller, thread_id in ((BORIS, "anna's"), (BORIS, "unknown"), (SYSTEM, "unknown")):
                call = storage.add_attachment(attached("b", owner="boris", thread_id=thread_id), caller=caller)
                await refused(call, NotFound, "no_such_thread")
            assert await storage.attachment("b", caller=SYSTEM) is None

        self.play(tmp_path, scenario)

    def test_claimed_ones_belong_to_each_thread_that_did_and_unknown_ones_are_passed_over(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for thread_id in ("t", "u"):
                await storage.create_thread(thread_id, caller=LOCAL)
            for number, name in enumerate("dcba"):
                await storage.add_attachment(attached(name, created_at=LONG_AGO + number // 2), caller=LOCAL)
            await storage.claim_attachments("t", ["a", "unknown", "c", "a"], caller=LOCAL)
            await storage.claim_attachments("u", {"a", "b"}, caller=LOCAL)
            assert await storage.attachment("a", caller=LOCAL) == attached("a", created_at=LONG_AGO + 1, thread_id="t")
            assert await ids_of(storage, "t") == ["c", "a"], "oldest first"
            assert await ids_of(storage, "u") == ["a", "b"]
            assert await storage.attachment("d", caller=LOCAL) == attached("d")
            await storage.claim_attachments("t", [], caller=LOCAL)
            await storage.claim_attachments("t", [f"unknown-{number}" for number in range(5_000)], caller=LOCAL)
            await storage.claim_attachments("t", [*(f"unknown-{number}" for number in range(5_000)), "d"], caller=LOCAL)
            assert await ids_of(storage, "t") == ["c", "d", "a"]

        self.play(tmp_path, scenario)

    def test_of_those_who_claim_at_once_all_have_it_and_one_is_the_first(self, tmp_path: Path) -> None:
        async def scenario(first: Storage, second: Storage) -> None:
            threads = [f"t{number}" for number in range(8)]
            for thread_id in threads:
                await first.create_thread(thread_id, caller=LOCAL)
            await first.add_attachment(attached("a"), caller=LOCAL)
            engines = zip([first, second] * 4, threads, strict=True)
            await asyncio.gather(*(storage.claim_attachments(of, ["a"], caller=LOCAL) for storage, of in engines))
            assert [await ids_of(first, thread_id) for thread_id in threads] == [["a"]] * len(threads)
            found = [await storage.attachment("a", caller=LOCAL) for storage in (first, second)]
            assert found[0] == found[1]
            assert found[0] is not None
            assert found[0].thread_id in threads

        self.play_two(tmp_path, scenario)

    def test_an_attachment_goes_with_the_last_of_its_threads(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for thread_id in ("t", "u", "v"):
                await storage.create_thread(thread_id, caller=LOCAL)
            await storage.add_attachment(attached("a", thread_id="u"), caller=LOCAL)
            for thread_id in ("t", "v", "u"):
                await storage.claim_attachments(thread_id, ["a"], caller=LOCAL)
            for gone, first in (("v", "u"), ("u", "t")):
                assert await storage.delete_thread(gone, caller=LOCAL)
                assert await storage.attachment("a", caller=LOCAL) == attached("a", thread_id=first)
                assert await ids_of(storage, gone) == []
            assert await ids_of(storage, "t") == ["a"]
            assert await storage.delete_thread("t", caller=LOCAL)
            assert await storage.attachment("a", caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_a_copied_thread_has_the_attachments_it_came_with(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("t", caller=ANNA)
            for name in "ab":
                await storage.add_attachment(attached(name, thread_id="t"), caller=ANNA)
            await storage.add_attachment(attached("boris's"), caller=BORIS)
            copy = ThreadCopy(thread_id="copy", title="Copy", attachments=["a", "unknown", "boris's", "a"])
            await storage.adopt_thread(copy, caller=ANNA)
            assert await ids_of(storage, "copy", caller=ANNA) == ["a"]
            assert await storage.delete_thread("t", caller=ANNA)
            left = [await storage.attachment(name, caller=SYSTEM) for name in ("a", "b", "boris's")]
            assert left == [attached("a", owner="anna", thread_id="copy"), None, attached("boris's", owner="boris")]

        self.play(tmp_path, scenario)

    def test_a_deleted_attachment_is_gone_from_all_its_threads(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for thread_id in ("t", "u"):
                await storage.create_thread(thread_id, caller=LOCAL)
            await storage.add_attachment(attached("a", thread_id="t"), caller=LOCAL)
            await storage.claim_attachments("u", ["a"], caller=LOCAL)
            assert await storage.delete_attachment("a", caller=LOCAL) is True
            assert [await ids_of(storage, thread_id) for thread_id in ("t", "u")] == [[], []]
            await storage.add_attachment(attached("a"), caller=LOCAL)
            assert await storage.attachment("a", caller=LOCAL) == attached("a"), "the old threads are not its own"

        self.play(tmp_path, scenario)

    def test_attachments_of_another_owner_are_neither_seen_nor_changed(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await storage.create_thread("anna's", caller=ANNA)
            await storage.create_thread("boris's", caller=BORIS)
            made = attached("a", owner="anna")
            await storage.add_attachment(made, caller=SYSTEM)
            assert await storage.attachment("a", caller=BORIS) is None
            assert await storage.delete_attachment("a", caller=BORIS) is False
            for caller in (BORIS, SYSTEM):
                await storage.claim_attachments("boris's", ["a"], caller=caller)
            await refused(storage.claim_attachments("anna's", ["a"], caller=BORIS), NotFound, "no_such_thread")
            await refused(storage.claim_attachments("unknown", ["a"], caller=ANNA), NotFound, "no_such_thread")
            for caller in (ANNA, SYSTEM):
                assert await storage.attachment("a", caller=caller) == made
            await storage.claim_attachments("anna's", ["a"], caller=SYSTEM)
            claimed = replace(made, thread_id="anna's")
            assert list(await storage.thread_attachments("anna's", caller=ANNA)) == [claimed]
            assert list(await storage.thread_attachments("anna's", caller=SYSTEM)) == [claimed]
            assert list(await storage.thread_attachments("anna's", caller=BORIS)) == []

        self.play(tmp_path, scenario)

    def test_a_deleted_attachment_is_gone_and_says_whether_it_was_there(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for name in "ab":
                await storage.add_attachment(attached(name), caller=LOCAL)
            assert await storage.delete_attachment("a", caller=LOCAL) is True
            assert await storage.delete_attachment("a", caller=LOCAL) is False
            assert await storage.attachment("a", caller=LOCAL) is None
            assert await storage.attachment("b", caller=LOCAL) == attached("b")
            await storage.add_attachment(attached("a"), caller=LOCAL)

        self.play(tmp_path, scenario)

    def test_claimed_attachments_go_with_their_thread_and_no_others(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for thread_id in ("t", "u"):
                await storage.create_thread(thread_id, caller=LOCAL)
                await storage.add_attachment(attached(f"of {thread_id}", thread_id=thread_id), caller=LOCAL)
            for name in ("claimed", "free"):
                await storage.add_attachment(attached(name), caller=LOCAL)
            await storage.claim_attachments("t", ["claimed"], caller=LOCAL)
            assert await storage.delete_thread("t", caller=LOCAL)
            left = [await storage.attachment(name, caller=LOCAL) for name in ("of t", "claimed", "of u", "free")]
            assert [found.id if found else None for found in left] == [None, None, "of u", "free"]
            await storage.create_thread("t", caller=LOCAL)
            assert await ids_of(storage, "t") == []

        self.play(tmp_path, scenario)

    def test_opening_again_finds_the_attachments_and_whose_they_are(self, tmp_path: Path) -> None:
        made = [attached("a", owner="anna", thread_id="t"), attached("b", owner="anna")]

        async def first(storage: Storage) -> None:
            await storage.create_thread("t", caller=ANNA)
            await storage.add_attachment(replace(made[0], thread_id=None), caller=ANNA)
            await storage.add_attachment(made[1], caller=ANNA)
            await storage.claim_attachments("t", ["a"], caller=ANNA)

        async def second(storage: Storage) -> None:
            found = [await storage.attachment(name, caller=ANNA) for name in "ab"]
            assert found == (made if self.durable else [None, None])

        self.play(tmp_path, first, second)
