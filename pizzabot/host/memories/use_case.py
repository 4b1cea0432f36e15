"""`HostMemories`: the documents of memory, as the person reads and writes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from pizzabot.host.files.descriptors import Root
from pizzabot.host.files.disk_area import DiskArea
from pizzabot.host.files.disk_reading import MAX_LISTED
from pizzabot.host.files.pool import FilePool
from pizzabot.host.files.refusals import told
from pizzabot.host.memories.area import Enabled, MemoryArea
from pizzabot.host.memories.documents import (
    MAX_MEMORY,
    MAX_READ,
    PRIVATE,
    MemoryRow,
    checked_memory_id,
    memories_root,
    modified_at,
    newest,
    path_of,
    remove,
)
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound, TooLarge
from pizzabot_hookspecs.wire import JsonValue

_T = TypeVar("_T")


class HostMemories:
    """Implements `pizzabot_hookspecs.host_files.Memories`. `enabled` is asked each time."""

    def __init__(self, data_root: Path, *, enabled: Enabled, pool: FilePool) -> None:
        self._data_root = data_root
        self._enabled = enabled
        self._pool = pool
        self._writing = asyncio.Lock()

    def area(self, caller: Caller) -> MemoryArea:
        """What a turn of the caller's has at `/memories/`."""
        return MemoryArea(caller, documents=self._documents, enabled=self._enabled)

    async def listing(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        if not await self._enabled(caller):
            return {"memories": []}
        rows = await self._on_disk(newest, await self._root(caller), MAX_LISTED)
        return {"memories": [_row(row) for row in rows]}

    async def get(self, memory_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        path = path_of(checked_memory_id(memory_id))
        await self._check_enabled(caller)
        changed_at = await self._on_disk(modified_at, await self._root(caller), memory_id)
        if changed_at is None:
            raise NotFound("no_such_memory", f"there is no memory {memory_id!r}")
        found = await (await self._documents(caller)).read(path, max_bytes=MAX_READ)
        return {"id": memory_id, "content": found.content.decode(errors="replace"), "updatedAt": _iso(changed_at)}

    async def put(
        self, memory_id: str, content: str, /, *, new: bool = False, caller: Caller
    ) -> Mapping[str, JsonValue]:
        path, encoded = path_of(checked_memory_id(memory_id)), _encoded(content)
        await self._check_enabled(caller)
        root = await self._root(caller)
        async with self._writing:
            if new and await self._on_disk(modified_at, root, memory_id) is not None:
                raise Conflict("already_exists", f"there is a memory {memory_id!r} already; change it instead")
            written = await DiskArea(root, self._pool, modes=PRIVATE).write(path, encoded)
        return {"id": memory_id, "content": content, "updatedAt": _iso(written.modified_at or 0.0)}

    async def delete(self, memory_id: str, /, *, caller: Caller) -> None:
        known = checked_memory_id(memory_id)
        await self._check_enabled(caller)
        await self._on_disk(remove, await self._root(caller), known)

    async def _check_enabled(self, caller: Caller) -> None:
        if not await self._enabled(caller):
            raise Conflict("memories_disabled", "memory is disabled; enable it in the settings (enableMemories)")

    async def _documents(self, caller: Caller) -> DiskArea:
        return DiskArea(await self._root(caller), self._pool, modes=PRIVATE)

    async def _root(self, caller: Caller) -> Root:
        return await self._on_disk(memories_root, self._data_root, caller.owner)

    async def _on_disk(self, work: Callable[..., _T], *arguments: object) -> _T:
        def act() -> _T:
            with told("/"):
                return work(*arguments)

        return await self._pool.run(act)


def _encoded(content: str) -> bytes:
    """Raises `InvalidRequest` `invalid_content`, `TooLarge` `memory_too_large`."""
    try:
        encoded = content.encode()
    except UnicodeEncodeError:
        problem = "is not Unicode text"
        raise InvalidRequest("invalid_content", f"the content {problem}", fields={"content": problem}) from None
    if len(encoded) > MAX_MEMORY:
        raise TooLarge("memory_too_large", f"a memory has at most {MAX_MEMORY:,} bytes, this one has {len(encoded):,}")
    return encoded


def _row(row: MemoryRow) -> JsonValue:
    return {"id": row.id, "preview": row.preview, "size": row.size, "updatedAt": _iso(row.updated_at)}


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
