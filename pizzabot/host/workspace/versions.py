"""Reading and writing versions of a thread's files: compare and set, blob before row, fact with the row, the hub."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pizzabot.host.blobs import Blob, BlobFolder
from pizzabot.host.files.media_types import media_type
from pizzabot.host.files.paths import checked_path
from pizzabot.host.runs.facts import PREFIX, fact
from pizzabot.host.runs.hub import Hub
from pizzabot.host.workspace.locks import Locks, to_its_end
from pizzabot.host.workspace.place import Change, Place
from pizzabot.host.workspace.usage import Usages
from pizzabot_hookspecs import Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.file_storage import FileVersion, NewFileVersion
from pizzabot_hookspecs.storage_backends import NewEvent, Storage, StoredEvent

ARTIFACT = f"{PREFIX}artifact"
MAX_KNOWN_WRITERS = 10_000
"""Runs under way that are remembered to have written a file."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Guard:
    """What has to be there for a write to happen. `base`: this content. `new`: nothing."""

    base: str | None = None
    new: bool = False


ANYTHING = Guard()


class Versions:
    """One for the host: it holds the locks and knows how full each thread is."""

    def __init__(self, storage: Storage, blobs: BlobFolder, hub: Hub, *, clock: Callable[[], float]) -> None:
        self.blobs = blobs
        self.storage = storage
        self.locks = Locks()
        self._hub = hub
        self._clock = clock
        self._usages = Usages(storage)
        self._wrote: dict[str, None] = {}

    def forget(self, thread_id: str) -> None:
        """The thread is gone: one that gets its id later is another."""
        self._usages.forget(thread_id)

    def wrote(self, run_id: str) -> bool:
        """Whether the run wrote something here since this was asked last."""
        return self._wrote.pop(run_id, False) is None

    async def visible(self, place: Place) -> Sequence[FileVersion]:
        """The files that there are, by path."""
        rows = await self.storage.files(place.thread_id, turns=await place.turns(), caller=place.caller)
        return [row for row in rows if row.sha256 is not None]

    async def newest(self, place: Place, path: str) -> FileVersion | None:
        """The version of a path that counts, one that says it is deleted too."""
        turns = await place.turns()
        rows = await self.storage.files(place.thread_id, turns=turns, path=checked_path(path), caller=place.caller)
        return rows[0] if rows else None

    async def file(self, place: Place, path: str) -> FileVersion:
        """Raises `NotFound` `no_such_file`, `InvalidRequest` `not_a_file` for a folder."""
        found = await self.newest(place, path)
        if found is not None and found.sha256 is not None:
            return found
        if path == "/" or any(row.path.startswith(f"{path}/") for row in await self.visible(place)):
            raise InvalidRequest("not_a_file", f"{path} is a folder")
        raise NotFound("no_such_file", f"there is no file {path}")

    async def write(self, place: Place, path: str, content: bytes, guard: Guard = ANYTHING) -> FileVersion:
        """The whole content as the newest version; the one that is there where it has this content already.

        Raises `Conflict` `file_changed`, `file_exists`; `TooLarge`; `InvalidRequest` `invalid_path`, `not_a_file`.
        """
        async with self.locks.of(place.thread_id):
            await self._check(place, path, len(content))
            kind = media_type(path, content)
            async with self.blobs.add_bytes(content) as blob:
                return await self.put(place, path, blob, kind, guard)

    async def put(self, place: Place, path: str, blob: Blob, kind: str, guard: Guard = ANYTHING) -> FileVersion:
        """Like `write`, of content that is a pinned blob; the caller holds the thread's lock."""
        known = await self.newest(place, path)
        live = None if known is None or known.sha256 is None else known
        if live is not None and live.sha256 == blob.sha256:
            return live  # also what a write that was cut short by a crash finds when it is done again (statement 72)
        if guard.base is not None and (live is None or live.sha256 != guard.base):
            raise Conflict("file_changed", f"{path} was changed since it was read: read it again, and write it anew")
        if guard.new and live is not None:
            raise Conflict("file_exists", f"there is a file {path} already")
        await self._check(place, path, blob.size)
        if live is None:
            await self._check_room(place, path)
        change = Change.CREATED if live is None else Change.CHANGED
        return await self._store(place, path, blob, kind, change)

    async def delete(self, place: Place, path: str) -> FileVersion:
        """The version that says it is gone. Raises `NotFound` `no_such_file`."""
        async with self.locks.of(place.thread_id):
            known = await self.file(place, path)
            return await self._store(place, path, None, known.media_type, Change.DELETED)

    async def _check(self, place: Place, path: str, size: int) -> None:
        if checked_path(path) == "/":
            raise InvalidRequest("not_a_file", "/ is the folder of all files")
        (await self._usages.of(place.thread_id, caller=place.caller)).check(path, size)

    async def _check_room(self, place: Place, path: str) -> None:
        """A file is no folder, on the branch that is written to."""
        usage = await self._usages.of(place.thread_id, caller=place.caller)
        if not usage.may_collide(path):
            return
        for row in await self.visible(place):
            if path.startswith(f"{row.path}/"):
                raise InvalidRequest("not_a_folder", f"{row.path} is a file: nothing can be put into it")
            if row.path.startswith(f"{path}/"):
                raise InvalidRequest("not_a_file", f"{path} is a folder")

    async def _store(self, place: Place, path: str, blob: Blob | None, kind: str, change: Change) -> FileVersion:
        digest, size = (None, 0) if blob is None else (blob.sha256, blob.size)
        new = NewFileVersion(
            thread_id=place.thread_id,
            path=path,
            sha256=digest,
            size=size,
            media_type=kind,
            author=place.author.value,
            turn_id=place.turn_id,
            run_id=place.run_id,
        )
        event = self._fact(new, change)
        usage = await self._usages.of(place.thread_id, caller=place.caller)
        try:
            stored = await to_its_end(self.storage.put_file(new, event, epoch=place.epoch, caller=place.caller))
        except BaseException:
            self._usages.forget(place.thread_id)  # whether it was stored is not known
            raise
        usage.put(path, None if blob is None else size)
        if place.run_id is not None:
            self._wrote[place.run_id] = None
            if len(self._wrote) > MAX_KNOWN_WRITERS:
                del self._wrote[next(iter(self._wrote))]
        self._hub.publish(place.thread_id, [_stored(stored, event)], owner=place.caller.owner)
        return stored

    def _fact(self, new: NewFileVersion, change: Change) -> NewEvent:
        payload = {
            "path": new.path,
            "sha256": new.sha256,
            "size": new.size,
            "mediaType": new.media_type,
            "op": change.value,
            "author": new.author,
            "run_id": new.run_id,
            "turn_id": new.turn_id,
        }
        return fact(ARTIFACT, payload, at=int(self._clock() * 1000))


def _stored(version: FileVersion, event: NewEvent) -> StoredEvent:
    return StoredEvent(
        seq=version.seq,
        thread_id=version.thread_id,
        run_id=version.run_id,
        method=event.method,
        data=event.data,
        timestamp=event.timestamp,
        name=event.name,
    )
