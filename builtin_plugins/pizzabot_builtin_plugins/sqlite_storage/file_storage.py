"""`SqliteFiles`: the contract's `FileStorage`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from pizzabot_builtin_plugins.sqlite_storage import attachments, folder_grants, workspace
from pizzabot_builtin_plugins.sqlite_storage.connected import Connected
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.file_storage import Attachment, FileVersion, FolderGrant, NewFileVersion
from pizzabot_hookspecs.storage_backends import NewEvent


class SqliteFiles(Connected):
    async def put_file(
        self, new: NewFileVersion, event: NewEvent, /, *, epoch: int | None = None, caller: Caller
    ) -> FileVersion:
        work = partial(workspace.put_file, new=new, event=event, epoch=epoch, caller=caller, now=self._clock())
        return await self._write(work, durable=True)

    async def files(
        self, thread_id: str, /, *, turns: Collection[str] | None, path: str | None = None, caller: Caller
    ) -> Sequence[FileVersion]:
        branch = None if turns is None else tuple(turns)
        return await self._read(partial(workspace.files, thread_id=thread_id, turns=branch, path=path, caller=caller))

    async def file_versions(self, thread_id: str, path: str, /, *, limit: int, caller: Caller) -> Sequence[FileVersion]:
        return await self._read(
            partial(workspace.file_versions, thread_id=thread_id, path=path, limit=limit, caller=caller)
        )

    async def run_files(self, thread_id: str, run_id: str, /, *, caller: Caller) -> Sequence[FileVersion]:
        return await self._read(partial(workspace.run_files, thread_id=thread_id, run_id=run_id, caller=caller))

    async def used_blobs(self, digests: Collection[str], /) -> frozenset[str]:
        return await self._read(partial(workspace.used_blobs, digests=tuple(digests)))

    # Attachments

    async def add_attachment(self, attachment: Attachment, /, *, caller: Caller) -> None:
        await self._write(partial(attachments.add_attachment, attachment=attachment, caller=caller), durable=True)

    async def attachment(self, attachment_id: str, /, *, caller: Caller) -> Attachment | None:
        return await self._read(partial(attachments.attachment, attachment_id=attachment_id, caller=caller))

    async def claim_attachments(self, thread_id: str, attachment_ids: Collection[str], /, *, caller: Caller) -> None:
        ids = tuple(attachment_ids)
        await self._write(
            partial(attachments.claim_attachments, thread_id=thread_id, attachment_ids=ids, caller=caller),
            durable=True,
        )

    async def thread_attachments(self, thread_id: str, /, *, caller: Caller) -> Sequence[Attachment]:
        return await self._read(partial(attachments.thread_attachments, thread_id=thread_id, caller=caller))

    async def delete_attachment(self, attachment_id: str, /, *, caller: Caller) -> bool:
        return await self._write(partial(attachments.delete_attachment, attachment_id=attachment_id, caller=caller))

    # Granted folders

    async def folder_grants(self, *, caller: Caller) -> Sequence[FolderGrant]:
        return await self._read(partial(folder_grants.folder_grants, caller=caller))

    async def add_folder_grant(self, grant: FolderGrant, /, *, caller: Caller) -> None:
        await self._write(partial(folder_grants.add_folder_grant, grant=grant, caller=caller), durable=True)

    async def delete_folder_grant(self, grant_id: str, /, *, caller: Caller) -> bool:
        # Durable: a folder that was taken away must not be granted again after a power cut.
        work = partial(folder_grants.delete_folder_grant, grant_id=grant_id, caller=caller)
        return await self._write(work, durable=True)
