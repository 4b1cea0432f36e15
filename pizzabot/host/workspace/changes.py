"""What a run did to the files of its thread: computed from the versions before and after it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pizzabot.host.workspace.line_changes import MAX_COMPARED_BYTES, LineChanges, line_changes, unified_diff
from pizzabot.host.workspace.paths_of_turns import PathsOfTurns
from pizzabot.host.workspace.place import Change
from pizzabot.host.workspace.versions import Versions
from pizzabot_hookspecs import Caller, NotFound
from pizzabot_hookspecs.file_storage import FileVersion
from pizzabot_hookspecs.storage_backends import Run

MAX_CHANGED_FILES = 200
"""Files of one run whose changes are told; the rest is left out, and the answer says so."""
MAX_COMPARED_BYTES_OF_A_RUN = 1024 * 1024
"""Of the contents of one run that are compared by lines."""
COMPARING_SECONDS = 2.0
"""For comparing what one run did."""
_VERSIONS_BACK = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class _FileChange:
    path: str
    before: FileVersion | None
    after: FileVersion | None

    @property
    def op(self) -> Change:
        if self.after is None:
            return Change.DELETED
        return Change.CREATED if self.before is None else Change.CHANGED

    @property
    def is_one(self) -> bool:
        digests = [None if row is None else row.sha256 for row in (self.before, self.after)]
        return digests[0] != digests[1]

    def sizes(self) -> int:
        return sum(row.size for row in (self.before, self.after) if row is not None)


class Changes:
    def __init__(self, versions: Versions, paths: PathsOfTurns) -> None:
        self._versions = versions
        self._paths = paths

    async def of_run(self, run: Run, *, path: str | None = None, caller: Caller) -> dict[str, Any]:
        """`{files, truncated}`; with `path` only that file, and its `diff`. Raises `NotFound` `no_such_file`."""
        rows = await self._versions.storage.run_files(run.thread_id, run.run_id, caller=caller)
        by_path: dict[str, list[FileVersion]] = {}
        for row in rows:
            by_path.setdefault(row.path, []).append(row)
        if path is not None and path not in by_path:
            raise NotFound("no_such_file", f"run {run.run_id!r} did not write {path}")
        wanted = sorted(by_path) if path is None else [path]
        turns = None
        if rows:
            _, turns = await self._paths.of_head(run.thread_id, rows[0].turn_id, caller=caller)
        changes: list[_FileChange] = []
        for one in wanted[:MAX_CHANGED_FILES]:
            change = await self._change(by_path[one], turns, caller)
            if change.is_one:
                changes.append(change)
        told, cut = await self._told(changes)
        answer: dict[str, Any] = {"files": told, "truncated": cut or len(wanted) > MAX_CHANGED_FILES}
        if path is not None:
            answer |= await self._diff(changes[0]) if changes else {"diff": ""}
        return answer

    async def _change(self, own: Sequence[FileVersion], turns: Collection[str] | None, caller: Caller) -> _FileChange:
        """From what its turn saw before the first version that the run wrote, to the last one."""
        first, last = own[0], own[-1]
        earlier: FileVersion | None = None
        if first.version > 1:
            newest = await self._versions.storage.file_versions(first.thread_id, first.path, limit=1, caller=caller)
            back = min(newest[0].version - first.version + 2, _VERSIONS_BACK)
            while earlier is None:
                rows = await self._versions.storage.file_versions(
                    first.thread_id, first.path, limit=back, caller=caller
                )
                seen = (row for row in rows if row.version < first.version and _is_seen(row, turns))
                earlier = next(seen, None)
                if len(rows) < back or back >= _VERSIONS_BACK:
                    break
                back = min(back * 4, _VERSIONS_BACK)
        return _FileChange(path=first.path, before=_live(earlier), after=_live(last))

    async def _told(self, changes: Sequence[_FileChange]) -> tuple[list[dict[str, Any]], bool]:
        deadline = time.monotonic() + COMPARING_SECONDS
        told: list[dict[str, Any]] = []
        cut, room = False, MAX_COMPARED_BYTES_OF_A_RUN
        for change in changes:
            room -= change.sizes() if _is_small(change) else 0
            compared = LineChanges(cut=True)
            if _is_small(change) and room >= 0 and time.monotonic() < deadline:
                before, after = await self._contents(change)
                compared = await asyncio.to_thread(line_changes, before, after, deadline=deadline)
            cut = cut or compared.cut
            told.append(
                {
                    "path": change.path,
                    "op": change.op.value,
                    "sizeBefore": None if change.before is None else change.before.size,
                    "sizeAfter": None if change.after is None else change.after.size,
                    "added": compared.added,
                    "removed": compared.removed,
                }
            )
        return told, cut

    async def _diff(self, change: _FileChange) -> dict[str, Any]:
        if not _is_small(change):
            return {"diff": None, "truncated": True}
        before, after = await self._contents(change)
        deadline = time.monotonic() + COMPARING_SECONDS
        diff, cut = await asyncio.to_thread(unified_diff, before, after, path=change.path, deadline=deadline)
        return {"diff": diff, "truncated": cut}

    async def _contents(self, change: _FileChange) -> tuple[bytes, bytes]:
        before, after = [
            b"" if row is None else await self._versions.blobs.read(str(row.sha256))
            for row in (change.before, change.after)
        ]
        return before, after


def _is_small(change: _FileChange) -> bool:
    return all(row is None or row.size <= MAX_COMPARED_BYTES for row in (change.before, change.after))


def _live(row: FileVersion | None) -> FileVersion | None:
    return None if row is None or row.sha256 is None else row


def _is_seen(row: FileVersion, turns: Collection[str] | None) -> bool:
    return turns is None or row.turn_id is None or row.turn_id in turns
