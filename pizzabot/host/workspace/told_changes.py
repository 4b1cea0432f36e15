"""What the log says of files at a run's end: computed once, and never what keeps a run from ending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from pizzabot.host.workspace.changes import COMPARING_SECONDS, Changes
from pizzabot.host.workspace.folder_changes import FolderChanges, told
from pizzabot.host.workspace.versions import Versions
from pizzabot_hookspecs import Caller, Logger
from pizzabot_hookspecs.storage_backends import Run

TELLING_SECONDS = 5.0
"""For finding out what a run that ends did to files; without an answer nothing is told, and the route still says it."""


class ToldChanges:
    """`PumpServices.changes`: the thread's own files and those of granted folders, by path."""

    def __init__(self, versions: Versions, changes: Changes, folders: FolderChanges, *, logger: Logger) -> None:
        self._versions = versions
        self._changes = changes
        self._folders = folders
        self._logger = logger

    async def __call__(self, run: Run) -> Mapping[str, Any] | None:
        own = self._versions.wrote(run.run_id) or run.attempt > 1  # only storage knows what a dead process wrote
        if not own and not self._folders.wrote(run.run_id):
            return None
        try:
            async with asyncio.timeout(TELLING_SECONDS):
                return await self._of(run, own=own)
        except Exception as error:  # noqa: BLE001 - the run has ended, whatever became of its files
            cause = type(error).__name__
            self._logger.warning("run.changes_not_told", run_id=run.run_id, cause=cause, detail=str(error))
            return None

    async def _of(self, run: Run, *, own: bool) -> Mapping[str, Any] | None:
        files: list[dict[str, Any]] = []
        truncated = False
        if own:
            answer = await self._changes.of_run(run, caller=Caller(owner=run.owner))
            files, truncated = answer["files"], answer["truncated"]
        notes = self._folders.take(run.run_id)
        deadline = time.monotonic() + COMPARING_SECONDS
        rows, cut = await asyncio.to_thread(told, notes, deadline=deadline) if notes.files else ([], False)
        files += rows
        return {"files": files, "truncated": truncated or cut} if files else None
