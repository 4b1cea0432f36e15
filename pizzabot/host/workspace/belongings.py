"""What a thread has beside its rows: gone with the thread, copied with a fork."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from pizzabot.host.attachments.use_case import HostAttachments
from pizzabot.host.workspace.offloads import Offloads
from pizzabot.host.workspace.versions import Versions
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.file_storage import FileVersion

MAX_COPIED_VERSIONS = 1_000
"""Versions of a file that a fork takes along."""


class Belongings:
    """`collect` asks for a collection of blobs, which goes on by itself."""

    def __init__(
        self, versions: Versions, attachments: HostAttachments, offloads: Offloads, *, collect: Callable[[], None]
    ) -> None:
        self._versions = versions
        self._attachments = attachments
        self._offloads = offloads
        self._collect = collect

    @asynccontextmanager
    async def deleting(self, thread_id: str, /, *, caller: Caller) -> AsyncIterator[None]:
        """Inside, the rows are deleted; then what they named is. A failure inside keeps what rows name.

        What was put aside goes first: a thread that gets the id later must not find it, whatever happens in between.
        """
        attached = await self._attachments.of_thread(thread_id, caller=caller)
        await self._offloads.remove(thread_id)
        async with self._versions.locks.of(thread_id):
            yield
            self._versions.forget(thread_id)
        self._collect()
        await self._attachments.forget(attached)

    async def versions_of(
        self, thread_id: str, /, *, turn_ids: Collection[str], caller: Caller
    ) -> Sequence[FileVersion]:
        """Every version that the turns of a path see, of each path the newest `MAX_COPIED_VERSIONS`."""
        storage = self._versions.storage
        found: list[FileVersion] = []
        for newest in await storage.files(thread_id, turns=turn_ids, caller=caller):
            versions: Sequence[FileVersion] = [newest]
            if newest.version > 1:
                versions = await storage.file_versions(thread_id, newest.path, limit=MAX_COPIED_VERSIONS, caller=caller)
            found += [row for row in versions if row.turn_id is None or row.turn_id in turn_ids]
            if newest not in versions:
                found.append(newest)
        return found

    @asynccontextmanager
    async def copying(self, rows: Sequence[FileVersion], thread_id: str, target: str, /) -> AsyncIterator[None]:
        """Inside, rows of the copy are stored: no blob that they name is collected. Of a copy that fails nothing
        stays."""
        async with AsyncExitStack() as pins:
            for digest in {row.sha256 for row in rows if row.sha256 is not None}:
                await pins.enter_async_context(self._versions.blobs.pinned(digest))
            try:
                await self._offloads.copy(thread_id, target)
                yield
            except BaseException:
                await self._offloads.remove(target)
                raise
            finally:
                self._versions.forget(target)


def renumbered(
    rows: Sequence[FileVersion], target: str, *, run_ids: Mapping[str, str], seqs: Mapping[int, int]
) -> list[FileVersion]:
    """The rows as those of a copy. One whose fact has not gone along stands at the beginning of its log."""
    return [
        replace(
            row,
            thread_id=target,
            run_id=None if row.run_id is None else run_ids.get(row.run_id),
            seq=seqs.get(row.seq, 1),
        )
        for row in rows
    ]
