"""The files of each thread: versions of paths, each stored with its fact, and what a branch sees of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pizzabot_builtin_plugins.memory_storage.log import LogTables
from pizzabot_builtin_plugins.memory_storage.rows import check_limit, no_such_thread
from pizzabot_hookspecs import Caller, Conflict, NotFound
from pizzabot_hookspecs.file_storage import FileVersion, NewFileVersion
from pizzabot_hookspecs.storage_backends import NewEvent


class WorkspaceTables(LogTables):
    def put_file(
        self, new: NewFileVersion, event: NewEvent, *, epoch: int | None, caller: Caller, now: float
    ) -> FileVersion:
        if epoch is None:
            seq = self._append_unfenced(new, event, caller)
        else:
            held = self._held(new.run_id or "", epoch, caller)
            if held.run.thread_id != new.thread_id:
                raise Conflict(
                    "lease_lost",
                    f"run {new.run_id!r} is of another thread than {new.thread_id!r}: stop and write nothing more",
                )
            seq = self.append(held.run.run_id, epoch, [event], caller=caller)
        versions = self._threads[new.thread_id].files.setdefault(new.path, [])
        stored = FileVersion(
            thread_id=new.thread_id,
            path=new.path,
            version=versions[-1].version + 1 if versions else 1,
            sha256=new.sha256,
            size=new.size,
            media_type=new.media_type,
            author=new.author,
            turn_id=new.turn_id,
            run_id=new.run_id,
            seq=seq,
            created_at=now,
        )
        versions.append(stored)
        return stored

    def _append_unfenced(self, new: NewFileVersion, event: NewEvent, caller: Caller) -> int:
        thread = self._thread_row(new.thread_id, caller)
        if thread is None:
            raise no_such_thread(new.thread_id)
        run = None if new.run_id is None else self._runs.get(new.run_id)
        if new.run_id is not None and (run is None or run.run.thread_id != new.thread_id):
            raise NotFound("no_such_run", f"thread {new.thread_id!r} has no run {new.run_id!r}")
        seq = self._append(thread, new.run_id, [event])
        if run is not None and run.first_seq is None:
            run.first_seq = seq
            run.run = replace(run.run, first_seq=seq)
        return seq

    def files(
        self, thread_id: str, *, turns: Collection[str] | None, path: str | None, caller: Caller
    ) -> Sequence[FileVersion]:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return []
        seen = None if turns is None else {None, *turns}
        newest = []
        for versions in (row.files if path is None else {path: row.files.get(path, [])}).values():
            on_branch = [version for version in versions if seen is None or version.turn_id in seen]
            newest += on_branch[-1:]
        return sorted(newest, key=lambda version: version.path)

    def file_versions(self, thread_id: str, path: str, *, limit: int, caller: Caller) -> Sequence[FileVersion]:
        check_limit(limit)
        row = self._thread_row(thread_id, caller)
        return row.files.get(path, [])[::-1][:limit] if row else []

    def run_files(self, thread_id: str, run_id: str, *, caller: Caller) -> Sequence[FileVersion]:
        row = self._thread_row(thread_id, caller)
        if row is None:
            return []
        written = [version for versions in row.files.values() for version in versions if version.run_id == run_id]
        return sorted(written, key=lambda version: (version.seq, version.path, version.version))

    def used_blobs(self, digests: Collection[str]) -> frozenset[str]:
        named = {
            version.sha256 for row in self._threads.values() for versions in row.files.values() for version in versions
        }
        return frozenset(digests) & named
