"""What runs under way did to granted folders: noted as they write, with what was there before, until they end.

It is kept in memory: what a process that died had noted is not told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pizzabot.host.workspace.line_changes import MAX_COMPARED_BYTES, LineChanges, line_changes
from pizzabot.host.workspace.place import Change
from pizzabot_hookspecs import NotFound, TooLarge
from pizzabot_hookspecs.files import FileContent, FileEntry, Found, GrantedFolder, GrantedFolders, Matches

MAX_NOTED_FILES = 200
"""Files of granted folders that one run is noted to have written."""
MAX_NOTED_BYTES = 64 * 1024 * 1024
"""Of the contents that are kept for comparing, of all runs together."""
_LOCAL = "/local"


@dataclass
class _Noted:
    """A content is None where it is too large to be compared; `existed` says whether there was a file at all."""

    existed: bool
    before: bytes | None
    after: bytes | None = None
    size_before: int | None = None
    size_after: int = 0

    @property
    def kept(self) -> int:
        return len(self.before or b"") + len(self.after or b"")


@dataclass
class _Notes:
    files: dict[str, _Noted] = field(default_factory=dict)
    truncated: bool = False


class FolderChanges:
    def __init__(self) -> None:
        self._runs: dict[str, _Notes] = {}
        self._kept = 0

    def noting(self, folders: GrantedFolders, run_id: str) -> GrantedFolders:
        """The folders, for a run whose writes are noted."""
        return _Noting(folders, self, run_id)

    def wrote(self, run_id: str) -> bool:
        return run_id in self._runs

    def take(self, run_id: str) -> _Notes:
        notes = self._runs.pop(run_id, _Notes())
        self._kept -= sum(noted.kept for noted in notes.files.values())
        return notes

    def note(self, run_id: str, path: str, before: bytes | None, *, existed: bool, after: bytes) -> None:
        notes = self._runs.setdefault(run_id, _Notes())
        noted = notes.files.get(path)
        if noted is None:
            if len(notes.files) >= MAX_NOTED_FILES:
                notes.truncated = True
                return
            noted = notes.files[path] = _Noted(existed, self._keep(before))
            noted.size_before = len(before) if existed and before is not None else None
        self._kept -= len(noted.after or b"")
        noted.after, noted.size_after = self._keep(after), len(after)

    def _keep(self, content: bytes | None) -> bytes | None:
        if content is None or len(content) > MAX_COMPARED_BYTES or self._kept + len(content) > MAX_NOTED_BYTES:
            return None
        self._kept += len(content)
        return content


def told(notes: _Notes, *, deadline: float) -> tuple[list[dict[str, Any]], bool]:
    """The rows, by path, and whether something is missing. Blocks."""
    rows: list[dict[str, Any]] = []
    cut = notes.truncated
    for path, noted in sorted(notes.files.items()):
        before = noted.before if noted.existed else b""
        compared = LineChanges(cut=True)
        if before is not None and noted.after is not None:
            if noted.existed and before == noted.after:
                continue
            compared = line_changes(before, noted.after, deadline=deadline)
        cut = cut or compared.cut
        rows.append(
            {
                "path": f"{_LOCAL}{path}",
                "op": (Change.CHANGED if noted.existed else Change.CREATED).value,
                "sizeBefore": noted.size_before,
                "sizeAfter": noted.size_after,
                "added": compared.added,
                "removed": compared.removed,
            }
        )
    return rows, cut


class _Noting:
    """A `GrantedFolders` that reads what a write is about to replace."""

    def __init__(self, folders: GrantedFolders, changes: FolderChanges, run_id: str) -> None:
        self._folders = folders
        self._changes = changes
        self._run_id = run_id

    async def granted(self) -> Sequence[GrantedFolder]:
        return await self._folders.granted()

    async def list(self, path: str, /) -> Sequence[FileEntry]:
        return await self._folders.list(path)

    async def read(self, path: str, /, *, max_bytes: int) -> FileContent:
        return await self._folders.read(path, max_bytes=max_bytes)

    async def write(self, path: str, content: bytes, /, *, base: str | None = None, new: bool = False) -> FileEntry:
        existed, before = True, None
        try:
            before = (await self._folders.read(path, max_bytes=MAX_COMPARED_BYTES)).content
        except NotFound:
            existed = False
        except TooLarge:
            pass
        entry = await self._folders.write(path, content, base=base, new=new)
        self._changes.note(self._run_id, path, before, existed=existed, after=content)
        return entry

    async def find(self, pattern: str, path: str = "/", /, *, limit: int) -> Found:
        return await self._folders.find(pattern, path, limit=limit)

    async def search(self, text: str, path: str = "/", /, *, pattern: str | None = None, limit: int) -> Matches:
        return await self._folders.search(text, path, pattern=pattern, limit=limit)
