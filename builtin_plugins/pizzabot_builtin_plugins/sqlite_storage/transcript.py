"""The transcript as rows: one per turn, which the host folds from the log, and the cursor up to which it did."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from pizzabot_builtin_plugins.sqlite_storage.rows import MINE, Connection, Row, mine, snapshot
from pizzabot_builtin_plugins.sqlite_storage.values import from_json
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import TranscriptIndex, TurnPlace, TurnRow

IDS_PER_SELECT = 500
"""An old SQLite takes 999 variables in one statement."""

_MINE = f"SELECT 1 FROM threads WHERE thread_id = ? AND {MINE}"
_CURSOR = "SELECT cursor, summary FROM transcripts WHERE thread_id = ?"
# One row, and so one turn at the interpreter lock: 10,000 of them take ten times as long beside a busy loop.
_PLACES = (
    "SELECT json_group_array(json_array(turn_id, seq, rev, parent_id, settled)) FROM "
    "(SELECT turn_id, seq, rev, parent_id, settled FROM transcript_turns WHERE thread_id = ? ORDER BY seq, turn_id)"
)
_TURNS = "SELECT turn_id, seq, rev, parent_id, settled, body FROM transcript_turns WHERE thread_id = ? AND turn_id IN"
_PUT_TURN = (
    "INSERT INTO transcript_turns (thread_id, turn_id, seq, rev, parent_id, settled, body) VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (thread_id, turn_id) DO UPDATE SET seq = excluded.seq, rev = excluded.rev, "
    "parent_id = excluded.parent_id, settled = excluded.settled, body = excluded.body"
)
_PUT_CURSOR = (
    "INSERT INTO transcripts (thread_id, cursor, summary) VALUES (?, ?, ?) "
    "ON CONFLICT (thread_id) DO UPDATE SET cursor = excluded.cursor, summary = excluded.summary"
)


def transcript_index(connection: Connection, thread_id: str, *, caller: Caller) -> TranscriptIndex:
    with snapshot(connection):
        kept = _kept(connection, thread_id, caller)
        if kept is None:
            return TranscriptIndex()
        (places,) = connection.execute(_PLACES, (thread_id,)).fetchone()
    turns = [
        TurnPlace(turn_id=turn_id, seq=seq, rev=rev, parent_id=parent_id, settled=settled == 1)
        # SQL promises no order inside an aggregate, though it comes as the index has it.
        for turn_id, seq, rev, parent_id, settled in sorted(from_json(places), key=itemgetter(1, 0))
    ]
    return TranscriptIndex(cursor=kept[0], summary=kept[1], turns=turns)


def transcript_turns(
    connection: Connection, thread_id: str, turn_ids: Sequence[str], *, caller: Caller
) -> Sequence[TurnRow]:
    rows: list[Row] = []
    with snapshot(connection):
        if not _is_mine(connection, thread_id, caller):
            return []
        for start in range(0, len(turn_ids), IDS_PER_SELECT):
            ids = turn_ids[start : start + IDS_PER_SELECT]
            rows += connection.execute(turns_query(len(ids)), (thread_id, *ids)).fetchall()
    rows.sort(key=lambda row: (row[1], row[0]))
    return [
        TurnRow(turn_id=row[0], seq=row[1], rev=row[2], parent_id=row[3], settled=row[4] == 1, body=row[5])
        for row in rows
    ]


def turns_query(ids: int) -> str:
    return f"{_TURNS} ({', '.join('?' * ids)})"


def put_transcript(
    connection: Connection,
    thread_id: str,
    turns: Sequence[TurnRow],
    *,
    after: int,
    cursor: int,
    summary: bytes,
    caller: Caller,
) -> bool:
    kept = _kept(connection, thread_id, caller)
    if kept is None or kept[0] != after:
        return False
    rows = [(thread_id, row.turn_id, row.seq, row.rev, row.parent_id, row.settled, row.body) for row in turns]
    connection.executemany(_PUT_TURN, rows)
    connection.execute(_PUT_CURSOR, (thread_id, cursor, summary))
    return True


def drop_transcript(connection: Connection, thread_id: str, *, caller: Caller) -> None:
    if _is_mine(connection, thread_id, caller):
        connection.execute("DELETE FROM transcript_turns WHERE thread_id = ?", (thread_id,))
        connection.execute("DELETE FROM transcripts WHERE thread_id = ?", (thread_id,))


def _is_mine(connection: Connection, thread_id: str, caller: Caller) -> bool:
    return connection.execute(_MINE, (thread_id, *mine(caller))).fetchone() is not None


def _kept(connection: Connection, thread_id: str, caller: Caller) -> tuple[int, bytes] | None:
    """Cursor and summary, 0 and empty where nothing was kept yet; None for a thread that is not the caller's."""
    if not _is_mine(connection, thread_id, caller):
        return None
    return connection.execute(_CURSOR, (thread_id,)).fetchone() or (0, b"")
