"""`HostAttachments`: adding, getting and deleting attachments; `TurnAttachments`: their bytes for a model call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

from pizzabot.host.attachments.bytes_on_disk import AttachmentBytes
from pizzabot.host.attachments.kinds import MAX_ATTACHMENT_BYTES, ceiling_of, type_of
from pizzabot.host.attachments.names import clean_name
from pizzabot.host.ids import checked_id, uuid7
from pizzabot_hookspecs import SYSTEM, Caller, InvalidRequest, Logger, NotFound, TooLarge
from pizzabot_hookspecs.file_storage import Attachment, FileStorage
from pizzabot_hookspecs.files import AttachedFile
from pizzabot_hookspecs.host_files import StoredFile
from pizzabot_hookspecs.wire import JsonValue

SHOWN_INLINE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf", "text/plain"})
"""Types that a browser may show from the address of the server; others are only ever downloads."""


class HostAttachments:
    """Implements `pizzabot_hookspecs.host_files.AttachmentFiles`; the docstrings are there."""

    def __init__(
        self,
        storage: FileStorage,
        content: AttachmentBytes,
        *,
        clock: Callable[[], float],
    ) -> None:
        self._storage = storage
        self._content = content
        self._clock = clock

    async def add(
        self,
        content: AsyncIterator[bytes],
        /,
        *,
        filename: str,
        media_type: str | None = None,
        thread_id: str | None = None,
        caller: Caller,
    ) -> Mapping[str, JsonValue]:
        thread = None if thread_id is None else checked_id(thread_id, what="thread_id")
        name = clean_name(filename)
        async with self._content.arriving(content, max_bytes=MAX_ATTACHMENT_BYTES) as (incoming, _):
            kind = _checked_kind(name, media_type, incoming.size)
            row = Attachment(
                id=uuid7(),
                owner=caller.owner,
                thread_id=thread,
                filename=name,
                media_type=kind,
                size=incoming.size,
                created_at=self._clock(),
            )
            async with self._content.kept(row.id, incoming):
                await self._storage.add_attachment(row, caller=caller)
        return shown(row)

    async def get(self, attachment_id: str, /, *, caller: Caller) -> StoredFile:
        row = await self._storage.attachment(attachment_id, caller=caller)
        size = None if row is None else await self._content.size(row.id)
        if row is None or size is None:
            raise NotFound("no_such_attachment", f"there is no attachment {attachment_id!r}")

        def opened(start: int, end: int, /) -> AsyncGenerator[bytes, None]:
            return self._content.chunks(attachment_id, start, end)

        return StoredFile(
            name=row.filename,
            media_type=row.media_type,
            size=size,
            tag=row.id,
            inline=row.media_type in SHOWN_INLINE,
            opened=opened,
        )

    async def delete(self, attachment_id: str, /, *, caller: Caller) -> bool:
        deleted = await self._storage.delete_attachment(attachment_id, caller=caller)
        if deleted:  # the row first: a file that nobody names is swept away later
            await self._content.remove(attachment_id)
        return deleted

    async def of_thread(self, thread_id: str, /, *, caller: Caller) -> Sequence[str]:
        """The ids of what belongs to a thread: what `forget` is called with once its rows are gone."""
        return [row.id for row in await self._storage.thread_attachments(thread_id, caller=caller)]

    async def forget(self, attachment_ids: Sequence[str], /) -> None:
        """What belongs to another thread as well has its row yet, and stays."""
        for attachment_id in attachment_ids:
            if await self._storage.attachment(attachment_id, caller=SYSTEM) is None:
                await self._content.remove(attachment_id)

    async def sweep(self, logger: Logger) -> int:
        """Remove files that no row names: what a crash has left. How many there were."""
        removed = 0
        for attachment_id in await self._content.ids():
            if await self._storage.attachment(attachment_id, caller=SYSTEM) is None:
                await self._content.remove(attachment_id)
                removed += 1
        if removed:
            logger.info("attachments.swept", files=removed)
        return removed


class TurnAttachments:
    """Implements `pizzabot_hookspecs.files.Attachments` for the caller of a turn."""

    def __init__(self, storage: FileStorage, content: AttachmentBytes, *, caller: Caller) -> None:
        self._storage = storage
        self._content = content
        self._caller = caller

    async def resolve(self, attachment_id: str, /) -> AttachedFile | None:
        row = await self._storage.attachment(attachment_id, caller=self._caller)
        content = None if row is None else await self._content.read(row.id)
        if row is None or content is None:
            return None
        return AttachedFile(id=row.id, name=row.filename, media_type=row.media_type, content=content)


def shown(row: Attachment) -> Mapping[str, JsonValue]:
    return {
        "id": row.id,
        "url": f"attachment://{row.id}",
        "mediaType": row.media_type,
        "filename": row.filename,
        "sizeBytes": row.size,
    }


def _checked_kind(name: str, given: str | None, size: int) -> str:
    """In the order of spec/03 §3; that it is no larger than any may be was seen to when it arrived."""
    if size == 0:
        raise InvalidRequest("empty", f"the file {name} is empty")
    kind = type_of(name, given)
    if kind is None:
        raise InvalidRequest(
            "unsupported_type", f"files like {name} cannot be shown to a model: attach an image, a document or text"
        )
    if size > ceiling_of(kind):
        raise TooLarge("too_large", f"{name} has {size} bytes; {kind} may have {ceiling_of(kind)}")
    return kind
