"""`TurnFilesMaker`: what one turn has of files, put together; nothing is read before the turn asks for something."""

from __future__ import annotations

from collections.abc import Callable

from pizzabot.host.attachments.bytes_on_disk import AttachmentBytes
from pizzabot.host.attachments.use_case import TurnAttachments
from pizzabot.host.workspace.area import WorkspaceArea
from pizzabot.host.workspace.folder_changes import FolderChanges
from pizzabot.host.workspace.offloads import Offloads
from pizzabot.host.workspace.paths_of_turns import PathsOfTurns
from pizzabot.host.workspace.running import place_of_run
from pizzabot.host.workspace.versions import Versions
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.files import FileArea, GrantedFolders, TurnFiles
from pizzabot_hookspecs.storage_backends import Run


class TurnFilesMaker:
    """`PumpServices.files`. `memories` and `folders` give the areas of a caller; without them a turn has none. `noted`
    keeps what a run does to folders until it is told."""

    def __init__(
        self,
        *,
        versions: Versions,
        paths: PathsOfTurns,
        attachments: AttachmentBytes,
        offloads: Offloads,
        memories: Callable[[Caller], FileArea] | None = None,
        folders: Callable[[Caller], GrantedFolders] | None = None,
        noted: FolderChanges | None = None,
    ) -> None:
        self._versions = versions
        self._paths = paths
        self._attachments = attachments
        self._offloads = offloads
        self._memories = memories
        self._folders = folders
        self._noted = noted

    async def __call__(self, run: Run, turn_id: str) -> TurnFiles:
        caller = Caller(owner=run.owner)
        return TurnFiles(
            workspace=WorkspaceArea(self._versions, place_of_run(run, turn_id, self._paths)),
            memories=None if self._memories is None else self._memories(caller),
            folders=self._folders_of(run, caller),
            offloads=self._offloads.area(run.thread_id),
            attachments=TurnAttachments(self._versions.storage, self._attachments, caller=caller),
        )

    def _folders_of(self, run: Run, caller: Caller) -> GrantedFolders | None:
        if self._folders is None:
            return None
        folders = self._folders(caller)
        return folders if self._noted is None else self._noted.noting(folders, run.run_id)
