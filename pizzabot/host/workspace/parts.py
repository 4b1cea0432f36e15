"""Attachments, workspaces, offloads and the blobs below them, put together on one data root."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from pizzabot.host.attachments.bytes_on_disk import AttachmentBytes
from pizzabot.host.attachments.in_messages import MessageAttachments
from pizzabot.host.attachments.use_case import HostAttachments
from pizzabot.host.blobs import BlobFolder
from pizzabot.host.blobs.collecting import Collector
from pizzabot.host.files.pool import FilePool
from pizzabot.host.runs.hub import Hub
from pizzabot.host.transcripts.turns import Turns
from pizzabot.host.workspace.belongings import Belongings
from pizzabot.host.workspace.changes import Changes
from pizzabot.host.workspace.folder_changes import FolderChanges
from pizzabot.host.workspace.offloads import Offloads
from pizzabot.host.workspace.paths_of_turns import PathsOfTurns
from pizzabot.host.workspace.told_changes import ToldChanges
from pizzabot.host.workspace.turn_files import TurnFilesMaker
from pizzabot.host.workspace.versions import Versions
from pizzabot_hookspecs import Caller, Logger
from pizzabot_hookspecs.files import FileArea, GrantedFolders
from pizzabot_hookspecs.storage_backends import Storage


class FileParts:
    """`start` and `stop` begin and end what goes on beside: the collection of blobs, the sweep of attachments.

    `pool` is closed by whoever made it.
    """

    def __init__(
        self,
        *,
        storage: Storage,
        hub: Hub,
        turns: Turns,
        data_root: Path,
        pool: FilePool,
        clock: Callable[[], float],
        logger: Logger,
        memories: Callable[[Caller], FileArea] | None = None,
        folders: Callable[[Caller], GrantedFolders] | None = None,
    ) -> None:
        self._logger = logger
        self._sweep: asyncio.Task[None] | None = None
        content = AttachmentBytes(data_root / "attachments")
        offloads = Offloads(data_root / "offloads", pool)
        self.blobs = BlobFolder(data_root / "blobs")
        self.versions = Versions(storage, self.blobs, hub, clock=clock)
        self.paths = PathsOfTurns(turns)
        self.attachments = HostAttachments(storage, content, clock=clock)
        self.in_messages = MessageAttachments(storage)
        self.collector = Collector(self.blobs, storage, logger=logger)
        self.belongings = Belongings(self.versions, self.attachments, offloads, collect=self.collector.ask)
        noted = FolderChanges()
        self.changes = Changes(self.versions, self.paths)
        self.told_changes = ToldChanges(self.versions, self.changes, noted, logger=logger)
        self.of_turn = TurnFilesMaker(
            versions=self.versions,
            paths=self.paths,
            attachments=content,
            offloads=offloads,
            memories=memories,
            folders=folders,
            noted=noted,
        )

    def start(self) -> None:
        self.collector.start()
        self._sweep = asyncio.create_task(self._swept(), name="sweep of attachments")

    async def stop(self) -> None:
        await self.collector.stop()
        if self._sweep is not None:
            self._sweep.cancel()
            await asyncio.gather(self._sweep, return_exceptions=True)

    async def _swept(self) -> None:
        try:
            await self.attachments.sweep(self._logger)
        except Exception as error:  # noqa: BLE001 - nothing is lost: the next start finds the same
            self._logger.warning("attachments.not_swept", cause=type(error).__name__, detail=str(error))
