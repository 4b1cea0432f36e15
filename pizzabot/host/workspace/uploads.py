"""A person's file into `/uploads/`: under its own name, or under one beside it where that is taken."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Iterator
from typing import Any

from pizzabot.host.attachments.kinds import can_be_shown
from pizzabot.host.attachments.names import MAX_NAME_BYTES, clean_name, cut
from pizzabot.host.blobs import Blob
from pizzabot.host.files.media_types import media_type
from pizzabot.host.files.paths import may_be_named
from pizzabot.host.workspace.place import Place
from pizzabot.host.workspace.rows import UPLOADS
from pizzabot.host.workspace.usage import MAX_FILE_BYTES
from pizzabot.host.workspace.versions import Versions

_SNIFFED = 64 * 1024


async def upload(versions: Versions, place: Place, content: AsyncIterator[bytes], filename: str) -> dict[str, Any]:
    """`{path, sha256, size, mediaType, inline}`. Raises `TooLarge` `file_too_large`, `too_many_files`, `area_full`."""
    name = clean_name(filename)
    async with versions.blobs.add(content, max_bytes=MAX_FILE_BYTES) as blob:
        kind = await _type_of(versions, name, blob)
        async with versions.locks.of(place.thread_id):
            taken = {row.path for row in await versions.visible(place)}
            path = await asyncio.to_thread(_free, name, taken)
            stored = await versions.put(place, path, blob, kind)
    return {
        "path": stored.path,
        "sha256": blob.sha256,
        "size": blob.size,
        "mediaType": kind,
        "inline": can_be_shown(name, blob.size),
    }


async def _type_of(versions: Versions, name: str, blob: Blob) -> str:
    """By its name; text that a name says nothing else about by how it begins."""
    chunks = versions.blobs.chunks(blob.sha256, 0, min(blob.size, _SNIFFED))
    try:
        head = b"".join([piece async for piece in chunks])
    finally:
        await chunks.aclose()
    return media_type(name, _whole_characters(head) if blob.size > _SNIFFED else head)


def _whole_characters(head: bytes) -> bytes:
    """The beginning of a text without a character that was cut; of what is no text, all of it."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        return decoder.decode(head).encode()
    except UnicodeDecodeError:
        return head


def _free(name: str, taken: set[str]) -> str:
    return next(path for path in _candidates(name) if path not in taken)


def _candidates(name: str) -> Iterator[str]:
    if not may_be_named(name):
        name = "file"
    yield f"{UPLOADS}/{name}"
    stem, dot, extension = name.rpartition(".")
    if not stem:
        stem, dot, extension = name, "", ""
    number = 0
    while True:
        number += 1
        ending = f"-{number}{dot}{extension}"
        room = MAX_NAME_BYTES - len(ending.encode())
        yield f"{UPLOADS}/{cut(stem, room) if room > 0 else stem[:8]}{ending}"
