"""The table `workspace_files`: versions of paths, each stored with its fact, and what a branch sees of them."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pizzabot_builtin_plugins.sqlite_storage.admission import no_such_thread, owner_and_next_seq
from pizzabot_builtin_plugins.sqlite_storage.events import event_row, insert_rows
from pizzabot_builtin_plugins.sqlite_storage.fencing import held_run, lease_lost
from pizzabot_builtin_plugins.sqlite_storage.rows import FILE_COLUMNS, MINE, Connection, check_limit, file_from, mine
from pizzabot_builtin_plugins.sqlite_storage.values import from_text_time, to_json, to_text_time
from pizzabot_hookspecs import Caller, NotFound
from pizzabot_hookspecs.file_storage import FileVersion, NewFileVersion
from pizzabot_hookspecs.storage_backends import NewEvent

_INSERT = (
    "INSERT INTO workspace_files (thread_id, path, version, sha256, size, media_type, author, turn_id, run_id, seq, "
    "created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_NEXT_VERSION = "SELECT coalesce(max(version), 0) + 1 FROM workspace_files WHERE thread_id = ? AND path = ?"
_RUN_OF_THREAD = "SELECT first_seq FROM runs WHERE run_id = ? AND thread_id = ?"
_OWN = f"thread_id = ? AND EXISTS (SELECT 1 FROM threads WHERE thread_id = ? AND {MINE})"
_OF_TURNS = "AND (turn_id IS NULL OR turn_id IN (SELECT value FROM json_each(?)))"
_VERSIONS = f"SELECT {FILE_COLUMNS} FROM workspace_files WHERE {_OWN} AND path = ? ORDER BY version DESC LIMIT ?"
_OF_RUN = f"SELECT {FILE_COLUMNS} FROM workspace_files WHERE {_OWN} AND run_id = ? ORDER BY seq, path, version"
_USED = "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM workspace_files WHERE sha256 = value)"


def put_file(
    connection: Connection, new: NewFileVersion, event: NewEvent, *, epoch: int | None, caller: Caller, now: float
) -> FileVersion:
    """Raises `Conflict` `lease_lost`, `NotFound` `no_such_thread`, `no_such_run`, before anything is written."""
    seq, begins = _place(connection, new, epoch, caller)
    insert_rows(connection, [event_row(new.thread_id, new.run_id, event, seq=seq, epoch=epoch or 0)])
    connection.execute("UPDATE threads SET next_seq = ? WHERE thread_id = ?", (seq + 1, new.thread_id))
    if begins:
        connection.execute("UPDATE runs SET first_seq = ? WHERE run_id = ?", (seq, new.run_id))
    stored = FileVersion(
        thread_id=new.thread_id,
        path=new.path,
        version=connection.execute(_NEXT_VERSION, (new.thread_id, new.path)).fetchone()[0],
        sha256=new.sha256,
        size=new.size,
        media_type=new.media_type,
        author=new.author,
        turn_id=new.turn_id,
        run_id=new.run_id,
        seq=seq,
        created_at=from_text_time(to_text_time(now)),  # as it is read back
    )
    insert_files(connection, [stored])
    return stored


def insert_files(connection: Connection, files: Iterable[FileVersion]) -> None:
    connection.executemany(
        _INSERT,
        (
            (
                file.thread_id,
                file.path,
                file.version,
                file.sha256,
                file.size,
                file.media_type,
                file.author,
                file.turn_id,
                file.run_id,
                file.seq,
                to_text_time(file.created_at),
            )
            for file in files
        ),
    )


def files(
    connection: Connection, thread_id: str, *, turns: Collection[str] | None, path: str | None, caller: Caller
) -> Sequence[FileVersion]:
    parameters = [thread_id, thread_id, *mine(caller)]
    if path is not None:
        parameters.append(path)
    if turns is not None:
        parameters.append(to_json(list(turns)))
    query = files_query(of_path=path is not None, of_turns=turns is not None)
    return [file_from(row, thread_id) for row in connection.execute(query, parameters).fetchall()]


def files_query(*, of_path: bool, of_turns: bool) -> str:
    """Its parameters: the thread twice, the caller, the path if `of_path`, a JSON array of turns if `of_turns`."""
    columns = FILE_COLUMNS.replace("version", "max(version)")  # SQLite: the other columns are then of the row with it
    path, turns = "AND path = ?" if of_path else "", _OF_TURNS if of_turns else ""
    return f"SELECT {columns} FROM workspace_files WHERE {_OWN} {path} {turns} GROUP BY path ORDER BY path"


def file_versions(
    connection: Connection, thread_id: str, path: str, *, limit: int, caller: Caller
) -> Sequence[FileVersion]:
    check_limit(limit)
    rows = connection.execute(_VERSIONS, (thread_id, thread_id, *mine(caller), path, limit)).fetchall()
    return [file_from(row, thread_id) for row in rows]


def run_files(connection: Connection, thread_id: str, run_id: str, *, caller: Caller) -> Sequence[FileVersion]:
    rows = connection.execute(_OF_RUN, (thread_id, thread_id, *mine(caller), run_id)).fetchall()
    return [file_from(row, thread_id) for row in rows]


def used_blobs(connection: Connection, digests: Collection[str]) -> frozenset[str]:
    return frozenset(row[0] for row in connection.execute(_USED, (to_json(list(digests)),)))


def _place(connection: Connection, new: NewFileVersion, epoch: int | None, caller: Caller) -> tuple[int, bool]:
    """The number of the fact, and whether the run's events begin with it."""
    if epoch is not None:
        held = held_run(connection, new.run_id or "", epoch, caller=caller)
        if held.thread_id != new.thread_id:
            raise lease_lost(new.run_id or "", epoch, f"it is a run of another thread than {new.thread_id!r}")
        return held.next_seq, held.first_seq is None
    owner, next_seq = owner_and_next_seq(connection, new.thread_id) or (None, 1)
    if owner is None or not (caller.system or owner == caller.owner):
        raise no_such_thread(new.thread_id)
    if new.run_id is None:
        return next_seq, False
    run = connection.execute(_RUN_OF_THREAD, (new.run_id, new.thread_id)).fetchone()
    if run is None:
        raise NotFound("no_such_run", f"thread {new.thread_id!r} has no run {new.run_id!r}")
    return next_seq, run[0] is None
