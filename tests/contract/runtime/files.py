"""A `GraphStorage` on real SQLite files, opened as the built-in storage does, with its strict serializer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pizzabot_builtin_plugins.sqlite_storage.graph import GraphFiles


class FileStorage:
    """Opens the files of a folder when it is first asked for; closed, it opens them anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: GraphFiles | None = None

    async def checkpointer(self) -> Any:
        if self._files is None:
            self.folder.mkdir(exist_ok=True)
            self._files = GraphFiles(self.folder, busy_timeout_seconds=5)
        return await self._files.checkpointer()

    async def store(self) -> Any:
        raise AssertionError("a turn needs no store")

    async def close(self) -> None:
        files, self._files = self._files, None
        if files is not None:
            await files.close()
