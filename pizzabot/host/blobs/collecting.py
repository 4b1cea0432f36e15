"""Removing blobs that no row names, as a crash or a deleted thread leaves them: a little at a time, off the loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pizzabot.host.blobs.folder import BlobFolder
from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.file_storage import FileStorage

DIGESTS_AT_ONCE = 1_000
"""Blobs that storage is asked about in one step of a collection."""


async def collect(blobs: BlobFolder, storage: FileStorage, /) -> int:
    """Remove what no row of anybody names and nobody is about to write a row of; how many blobs that were.

    One at a time: the caller's to see to.
    """
    removed = await asyncio.to_thread(blobs.drop_leftovers)
    for folder in await asyncio.to_thread(blobs.folders):
        for digests in await asyncio.to_thread(_steps, blobs, folder):
            with blobs.pins.looking():
                used = await storage.used_blobs(digests)
                unused = [digest for digest in digests if digest not in used]
                removed += await asyncio.to_thread(_remove, blobs, unused)
    return removed


def _steps(blobs: BlobFolder, folder: Path) -> list[list[str]]:
    found = list(blobs.digests(folder))
    return [found[at : at + DIGESTS_AT_ONCE] for at in range(0, len(found), DIGESTS_AT_ONCE)]


def _remove(blobs: BlobFolder, digests: list[str]) -> int:
    return sum(blobs.remove(digest) for digest in digests)


class Collector:
    """Collects when it starts and whenever it is asked to; being asked often costs nothing."""

    def __init__(self, blobs: BlobFolder, storage: FileStorage, *, logger: Logger) -> None:
        self._blobs = blobs
        self._storage = storage
        self._logger = logger
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._wake.set()
        self._task = asyncio.create_task(self._work(), name="collection of blobs")

    def ask(self) -> None:
        self._idle.clear()
        self._wake.set()

    async def idle(self) -> None:
        """Until everything that was asked for is done."""
        await self._idle.wait()

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                removed = await collect(self._blobs, self._storage)
                if removed:
                    self._logger.info("blobs.collected", blobs=removed)
            except Exception as error:  # noqa: BLE001 - nothing is lost: the next time finds the same
                self._logger.warning("blobs.not_collected", cause=type(error).__name__, detail=str(error))
            if not self._wake.is_set():
                self._idle.set()
