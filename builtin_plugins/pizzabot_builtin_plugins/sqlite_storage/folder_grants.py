"""The table `folder_grants`: folders of the machine that their owner lets the agent use."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Sequence

from pizzabot_builtin_plugins.sqlite_storage.rows import MINE, Connection, grant_from, mine
from pizzabot_builtin_plugins.sqlite_storage.values import to_text_time
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.file_storage import FolderGrant

_COLUMNS = "grant_id, owner, label, path, read_only, created_at"
_INSERT = f"INSERT INTO folder_grants ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_ALL = f"SELECT {_COLUMNS} FROM folder_grants WHERE {MINE}"
_TAKEN = "SELECT grant_id, path FROM folder_grants WHERE owner = ? AND (grant_id = ? OR path = ?)"


def folder_grants(connection: Connection, *, caller: Caller) -> Sequence[FolderGrant]:
    grants = [grant_from(row) for row in connection.execute(_ALL, mine(caller)).fetchall()]
    # Here and not in SQL: SQLite's NOCASE knows the letters of ASCII alone.
    return sorted(grants, key=lambda grant: (grant.label.casefold(), grant.id, grant.owner))


def add_folder_grant(connection: Connection, grant: FolderGrant, *, caller: Caller) -> None:
    owner = grant.owner if caller.system else caller.owner
    taken = connection.execute(_TAKEN, (owner, grant.id, grant.path)).fetchone()
    if taken is not None:
        raise Conflict(
            "already_exists",
            f"folder {taken[1]!r} is granted already, with the id {taken[0]!r}: use that grant, or take it away first",
        )
    row = (grant.id, owner, grant.label, grant.path, grant.read_only, to_text_time(grant.created_at))
    connection.execute(_INSERT, row)


def delete_folder_grant(connection: Connection, grant_id: str, *, caller: Caller) -> bool:
    statement = f"DELETE FROM folder_grants WHERE grant_id = ? AND {MINE}"
    return connection.execute(statement, (grant_id, *mine(caller))).rowcount > 0
