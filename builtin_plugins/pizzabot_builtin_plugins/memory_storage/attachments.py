"""Attachments, of no thread until a message refers to them, and granted folders."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pizzabot_builtin_plugins.memory_storage.rows import may_touch, no_such_thread
from pizzabot_builtin_plugins.memory_storage.state import State
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.file_storage import Attachment, FolderGrant


class AttachmentTables(State):
    def add_attachment(self, attachment: Attachment, *, caller: Caller) -> None:
        owner = attachment.owner if caller.system else caller.owner
        if attachment.id in self._attachments:
            raise Conflict("already_exists", f"attachment {attachment.id!r} exists already: mint another id")
        if attachment.thread_id is not None:
            row = self._thread_row(attachment.thread_id, caller)
            if row is None or row.thread.owner != owner:
                raise no_such_thread(attachment.thread_id)
        self._attachments[attachment.id] = replace(attachment, owner=owner, thread_id=None)
        self._attached_to[attachment.id] = [] if attachment.thread_id is None else [attachment.thread_id]

    def attachment(self, attachment_id: str, *, caller: Caller) -> Attachment | None:
        found = self._attachments.get(attachment_id)
        if found is None or not may_touch(found.owner, caller):
            return None
        return replace(found, thread_id=next(iter(self._attached_to[attachment_id]), None))

    def claim_attachments(self, thread_id: str, attachment_ids: Collection[str], *, caller: Caller) -> None:
        row = self._thread_row(thread_id, caller)
        if row is None:
            raise no_such_thread(thread_id)
        self.belong(thread_id, attachment_ids, owner=row.thread.owner)

    def belong(self, thread_id: str, attachment_ids: Collection[str], *, owner: str) -> None:
        for attachment_id in attachment_ids:
            found = self._attachments.get(attachment_id)
            if found is None or found.owner != owner:
                continue
            threads = self._attached_to[attachment_id]
            if thread_id not in threads:
                threads.append(thread_id)

    def thread_attachments(self, thread_id: str, *, caller: Caller) -> Sequence[Attachment]:
        ids = [attachment_id for attachment_id, threads in self._attached_to.items() if thread_id in threads]
        found = [row for one in ids if (row := self.attachment(one, caller=caller)) is not None]
        return sorted(found, key=lambda attachment: (attachment.created_at, attachment.id))

    def leave_attachments(self, thread_id: str) -> None:
        """The thread goes, and with it what was attached to it alone."""
        for attachment_id, threads in list(self._attached_to.items()):
            if thread_id in threads:
                threads.remove(thread_id)
                if not threads:
                    del self._attachments[attachment_id], self._attached_to[attachment_id]

    def delete_attachment(self, attachment_id: str, *, caller: Caller) -> bool:
        if self.attachment(attachment_id, caller=caller) is None:
            return False
        del self._attachments[attachment_id], self._attached_to[attachment_id]
        return True

    def folder_grants(self, *, caller: Caller) -> Sequence[FolderGrant]:
        grants = [grant for grant in self._grants.values() if may_touch(grant.owner, caller)]
        return sorted(grants, key=lambda grant: (grant.label.casefold(), grant.id, grant.owner))

    def add_folder_grant(self, grant: FolderGrant, *, caller: Caller) -> None:
        owner = grant.owner if caller.system else caller.owner
        for taken in self._grants.values():
            if taken.owner == owner and (taken.id == grant.id or taken.path == grant.path):
                raise Conflict(
                    "already_exists",
                    f"folder {taken.path!r} is granted already, with the id {taken.id!r}: use that grant, or take it "
                    "away first",
                )
        self._grants[owner, grant.id] = replace(grant, owner=owner)

    def delete_folder_grant(self, grant_id: str, *, caller: Caller) -> bool:
        places = [place for place in self._grants if place[1] == grant_id and may_touch(place[0], caller)]
        for place in places:
            del self._grants[place]
        return bool(places)
