"""The storage contract notices what goes wrong with attachments and granted folders: one fault each, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing import StorageContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs import SYSTEM, Caller, Conflict
from pizzabot_hookspecs.file_storage import Attachment, FolderGrant
from pizzabot_hookspecs.storage_backends import Thread, ThreadCopy

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


class AddsAttachmentsAgain(MemoryStorage):
    async def add_attachment(self, attachment: Attachment, /, *, caller: Caller) -> None:
        if self._tables._attachments.pop(attachment.id, None) is not None:
            del self._tables._attached_to[attachment.id]
        await super().add_attachment(attachment, caller=caller)


class BelievesTheOwnerOfAnAttachment(MemoryStorage):
    async def add_attachment(self, attachment: Attachment, /, *, caller: Caller) -> None:
        await super().add_attachment(attachment, caller=replace(caller, system=True))


class ShowsEverybodysAttachments(MemoryStorage):
    async def attachment(self, attachment_id: str, /, *, caller: Caller) -> Attachment | None:
        return await super().attachment(attachment_id, caller=SYSTEM)


class ShowsEverybodysThreadAttachments(MemoryStorage):
    async def thread_attachments(self, thread_id: str, /, *, caller: Caller) -> Sequence[Attachment]:
        return await super().thread_attachments(thread_id, caller=SYSTEM)


class ClaimsForOneThreadOnly(MemoryStorage):
    async def claim_attachments(self, thread_id: str, attachment_ids: Collection[str], /, *, caller: Caller) -> None:
        for attachment_id in attachment_ids:
            if await self.attachment(attachment_id, caller=caller) is not None:
                self._tables._attached_to[attachment_id] = []
        await super().claim_attachments(thread_id, attachment_ids, caller=caller)


class ClaimsNothingTwice(MemoryStorage):
    async def claim_attachments(self, thread_id: str, attachment_ids: Collection[str], /, *, caller: Caller) -> None:
        free = [of for of in attachment_ids if not self._tables._attached_to.get(of)]
        await super().claim_attachments(thread_id, free, caller=caller)


class ClaimsForTheSystemAcrossOwners(MemoryStorage):
    async def claim_attachments(self, thread_id: str, attachment_ids: Collection[str], /, *, caller: Caller) -> None:
        await super().claim_attachments(thread_id, attachment_ids, caller=caller)
        for attachment_id in attachment_ids:
            if await self.attachment(attachment_id, caller=caller) is not None:
                self._tables._attached_to[attachment_id].append(thread_id)


class LooksAndClaimsLater(MemoryStorage):
    async def claim_attachments(self, thread_id: str, attachment_ids: Collection[str], /, *, caller: Caller) -> None:
        before = {of: list(threads) for of, threads in self._tables._attached_to.items()}
        await asyncio.sleep(0)
        self._tables._attached_to = before
        await super().claim_attachments(thread_id, attachment_ids, caller=caller)


class ForgetsTheAttachmentsOfACopy(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        return await super().adopt_thread(replace(copy, attachments=()), caller=caller)


class GivesACopyEverybodysAttachments(MemoryStorage):
    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        made = await super().adopt_thread(copy, caller=caller)
        for of in set(copy.attachments) & self._tables._attached_to.keys():
            self._tables._attached_to[of].append(copy.thread_id)
        return made


class DeletesAttachmentsWithTheFirstOfTheirThreads(MemoryStorage):
    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        for of, threads in self._tables._attached_to.items():
            if threads[:1] == [thread_id]:
                self._tables._attached_to[of] = [thread_id]
        return await super().delete_thread(thread_id, caller=caller)


class RemembersTheThreadsOfADeletedAttachment(MemoryStorage):
    async def delete_attachment(self, attachment_id: str, /, *, caller: Caller) -> bool:
        self._before = getattr(self, "_before", {}) | {attachment_id: self._tables._attached_to.get(attachment_id, [])}
        return await super().delete_attachment(attachment_id, caller=caller)

    async def add_attachment(self, attachment: Attachment, /, *, caller: Caller) -> None:
        await super().add_attachment(attachment, caller=caller)
        self._tables._attached_to[attachment.id] += getattr(self, "_before", {}).get(attachment.id, [])


class DeletesAnybodysAttachment(MemoryStorage):
    async def delete_attachment(self, attachment_id: str, /, *, caller: Caller) -> bool:
        return await super().delete_attachment(attachment_id, caller=SYSTEM)


class KeepsAttachmentsOfADeletedThread(MemoryStorage):
    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        kept, threads = dict(self._tables._attachments), dict(self._tables._attached_to)
        deleted = await super().delete_thread(thread_id, caller=caller)
        self._tables._attachments, self._tables._attached_to = kept, threads
        return deleted


class DeletesUnclaimedAttachmentsToo(MemoryStorage):
    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        deleted = await super().delete_thread(thread_id, caller=caller)
        for of in [of for of, threads in self._tables._attached_to.items() if not threads]:
            del self._tables._attachments[of], self._tables._attached_to[of]
        return deleted


class ListsGrantsByCase(MemoryStorage):
    async def folder_grants(self, *, caller: Caller) -> Sequence[FolderGrant]:
        return sorted(await super().folder_grants(caller=caller), key=lambda grant: (grant.label, grant.id))


class KnowsTheCaseOfAsciiAlone(MemoryStorage):
    async def folder_grants(self, *, caller: Caller) -> Sequence[FolderGrant]:
        def label(grant: FolderGrant) -> bytes:
            return grant.label.encode().lower()

        return sorted(await super().folder_grants(caller=caller), key=lambda grant: (label(grant), grant.id))


class GrantsAPathTwice(MemoryStorage):
    async def add_folder_grant(self, grant: FolderGrant, /, *, caller: Caller) -> None:
        owner = grant.owner if caller.system else caller.owner
        if (owner, grant.id) not in self._tables._grants:
            self._tables._grants[owner, grant.id] = replace(grant, owner=owner)
            return
        await super().add_folder_grant(grant, caller=caller)


class GrantsAPathToOneOwnerOnly(MemoryStorage):
    async def add_folder_grant(self, grant: FolderGrant, /, *, caller: Caller) -> None:
        if grant.path in {known.path for known in self._tables._grants.values()}:
            raise Conflict("already_exists", f"folder {grant.path!r} is granted already")
        await super().add_folder_grant(grant, caller=caller)


class ReplacesGrants(MemoryStorage):
    async def add_folder_grant(self, grant: FolderGrant, /, *, caller: Caller) -> None:
        await self.delete_folder_grant(grant.id, caller=caller)
        await super().add_folder_grant(grant, caller=caller)


class LooksAndGrantsLater(MemoryStorage):
    async def add_folder_grant(self, grant: FolderGrant, /, *, caller: Caller) -> None:
        known = dict(self._tables._grants)
        await asyncio.sleep(0)
        before, self._tables._grants = self._tables._grants, known
        await super().add_folder_grant(grant, caller=caller)
        self._tables._grants = before | self._tables._grants


class ShowsEverybodysGrants(MemoryStorage):
    async def folder_grants(self, *, caller: Caller) -> Sequence[FolderGrant]:
        return await super().folder_grants(caller=SYSTEM)


class TakesAwayAnybodysGrant(MemoryStorage):
    async def delete_folder_grant(self, grant_id: str, /, *, caller: Caller) -> bool:
        return await super().delete_folder_grant(grant_id, caller=SYSTEM)


NOTICED_BY: dict[type[MemoryStorage], str] = {
    AddsAttachmentsAgain: "test_an_id_is_used_once_and_a_thread_has_to_be_there",
    BelievesTheOwnerOfAnAttachment: "test_an_id_is_used_once_and_a_thread_has_to_be_there",
    ShowsEverybodysAttachments: "test_attachments_of_another_owner_are_neither_seen_nor_changed",
    ShowsEverybodysThreadAttachments: "test_attachments_of_another_owner_are_neither_seen_nor_changed",
    ClaimsForOneThreadOnly: "test_claimed_ones_belong_to_each_thread_that_did_and_unknown_ones_are_passed_over",
    ClaimsNothingTwice: "test_claimed_ones_belong_to_each_thread_that_did_and_unknown_ones_are_passed_over",
    ClaimsForTheSystemAcrossOwners: "test_attachments_of_another_owner_are_neither_seen_nor_changed",
    LooksAndClaimsLater: "test_of_those_who_claim_at_once_all_have_it_and_one_is_the_first",
    ForgetsTheAttachmentsOfACopy: "test_a_copied_thread_has_the_attachments_it_came_with",
    GivesACopyEverybodysAttachments: "test_a_copied_thread_has_the_attachments_it_came_with",
    DeletesAttachmentsWithTheFirstOfTheirThreads: "test_an_attachment_goes_with_the_last_of_its_threads",
    RemembersTheThreadsOfADeletedAttachment: "test_a_deleted_attachment_is_gone_from_all_its_threads",
    DeletesAnybodysAttachment: "test_attachments_of_another_owner_are_neither_seen_nor_changed",
    KeepsAttachmentsOfADeletedThread: "test_claimed_attachments_go_with_their_thread_and_no_others",
    DeletesUnclaimedAttachmentsToo: "test_claimed_attachments_go_with_their_thread_and_no_others",
    ListsGrantsByCase: "test_grants_are_listed_by_label_without_regard_to_case_then_by_id",
    KnowsTheCaseOfAsciiAlone: "test_grants_are_listed_by_label_without_regard_to_case_then_by_id",
    GrantsAPathTwice: "test_an_id_or_a_path_that_the_owner_has_already_is_refused",
    GrantsAPathToOneOwnerOnly: "test_an_id_or_a_path_that_the_owner_has_already_is_refused",
    ReplacesGrants: "test_an_id_or_a_path_that_the_owner_has_already_is_refused",
    LooksAndGrantsLater: "test_of_those_who_grant_a_folder_at_once_one_does",
    ShowsEverybodysGrants: "test_grants_of_another_owner_are_neither_seen_nor_taken_away",
    TakesAwayAnybodysGrant: "test_grants_of_another_owner_are_neither_seen_nor_taken_away",
}
"""Each faulty storage and a test of the contract that fails on it."""


@pytest.mark.parametrize("kind", NOTICED_BY, ids=lambda kind: kind.__name__)
def test_the_contract_fails_on_a_storage_with_one_fault(kind: type[MemoryStorage], fails: Fails) -> None:
    assert fails(StorageContract, kind, NOTICED_BY[kind])
