"""How much a thread's workspace holds, so that a write need not read all of its rows."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from pizzabot_hookspecs import Caller, TooLarge
from pizzabot_hookspecs.file_storage import FileStorage

MAX_FILE_BYTES = 50 * 1024 * 1024
"""Of one file of a workspace."""
MAX_PATHS = 10_000
"""Files of one thread, on all of its branches."""
MAX_WORKSPACE_BYTES = 2 * 1024 * 1024 * 1024
"""Of the newest versions of a thread's files."""
MAX_KEPT_USAGES = 64
"""Threads whose usage stays in memory between writes."""


class Usage:
    """The newest version of each path, whatever its branch: its size, or None where it was deleted."""

    def __init__(self, sizes: Mapping[str, int | None]) -> None:
        self._sizes = dict(sizes)
        self._files = sum(size is not None for size in sizes.values())
        self._bytes = sum(size or 0 for size in sizes.values())

    def check(self, path: str, size: int) -> None:
        """Whether a file of this size may be put there. Raises `TooLarge`."""
        if size > MAX_FILE_BYTES:
            raise TooLarge("file_too_large", f"{path} would have {size} bytes; a file may have {MAX_FILE_BYTES}")
        known = self._sizes.get(path)
        if known is None and self._files >= MAX_PATHS:
            raise TooLarge("too_many_files", f"this thread has {self._files} files, as many as it may have")
        if self._bytes - (known or 0) + size > MAX_WORKSPACE_BYTES:
            detail = f"the thread's files would have more than {MAX_WORKSPACE_BYTES} bytes: delete some first"
            raise TooLarge("area_full", detail)

    def put(self, path: str, size: int | None) -> None:
        known = self._sizes.get(path)
        self._files += (size is not None) - (known is not None)
        self._bytes += (size or 0) - (known or 0)
        self._sizes[path] = size

    def may_collide(self, path: str) -> bool:
        """Whether, on some branch, a file stands where `path` needs a folder, or files where `path` itself would be."""
        at = path
        while (at := at.rpartition("/")[0]) != "":
            if at in self._sizes:
                return True
        below = f"{path}/"
        return path not in self._sizes and any(known.startswith(below) for known in self._sizes)


class Usages:
    """Read under the lock of the thread, which every writer holds."""

    def __init__(self, storage: FileStorage) -> None:
        self._storage = storage
        self._kept: OrderedDict[str, Usage] = OrderedDict()

    async def of(self, thread_id: str, /, *, caller: Caller) -> Usage:
        known = self._kept.get(thread_id)
        if known is None:
            rows = await self._storage.files(thread_id, turns=None, caller=caller)
            known = Usage({row.path: None if row.sha256 is None else row.size for row in rows})
        self._kept[thread_id] = known
        self._kept.move_to_end(thread_id)
        while len(self._kept) > MAX_KEPT_USAGES:
            self._kept.popitem(last=False)
        return known

    def forget(self, thread_id: str) -> None:
        self._kept.pop(thread_id, None)
