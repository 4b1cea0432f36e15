"""Attachments that messages refer to: their parts completed from the rows, and the rows claimed for the thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pizzabot.host.runs.requests import RunRequest
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.file_storage import Attachment, FileStorage
from pizzabot_hookspecs.wire import Message, Part


class MessageAttachments:
    def __init__(self, storage: FileStorage) -> None:
        self._storage = storage

    async def completed(self, request: RunRequest, /, *, caller: Caller) -> RunRequest:
        """The request whose file parts say what the rows say; a part of no attachment of the caller's stays as it is,
        without a name or a size of its own."""
        ids = ids_in(request.messages)
        if not ids:
            return request
        found = [await self._storage.attachment(one, caller=caller) for one in ids]
        rows = {row.id: row for row in found if row is not None}
        return replace(request, messages=tuple(_completed(message, rows) for message in request.messages))

    async def claim(self, request: RunRequest, /, *, caller: Caller) -> None:
        """What the messages refer to belongs to the thread from now on, too."""
        if ids := ids_in(request.messages):
            await self._storage.claim_attachments(request.thread_id, ids, caller=caller)


def ids_in(messages: Sequence[Message]) -> list[str]:
    """The ids of the attachments, each once."""
    named = (part.get("attachmentId") for message in messages for part in message.parts if part["type"] == "file")
    return list(dict.fromkeys(one for one in named if isinstance(one, str)))


def _completed(message: Message, rows: Mapping[str, Attachment]) -> Message:
    return replace(message, parts=tuple(_part(part, rows) for part in message.parts))


def _part(part: Part, rows: Mapping[str, Attachment]) -> Part:
    if part["type"] != "file" or "attachmentId" not in part:
        return part
    row = rows.get(part["attachmentId"])
    if row is None:
        return {
            "type": "file",
            "url": part["url"],
            "mediaType": part["mediaType"],
            "attachmentId": part["attachmentId"],
        }
    return {
        "type": "file",
        "url": f"attachment://{row.id}",
        "mediaType": row.media_type,
        "name": row.filename,
        "attachmentId": row.id,
        "sizeBytes": row.size,
    }
