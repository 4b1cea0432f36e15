"""The tables `attachments` and `attachment_threads`: what people sent along, and whose it is.

An attachment goes with the last of its threads: a trigger of the schema sees to it.
"""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Collection, Sequence

from pizzabot_builtin_plugins.sqlite_storage.admission import no_such_thread
from pizzabot_builtin_plugins.sqlite_storage.rows import MINE, Connection, attachment_from, mine
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_time
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.file_storage import Attachment

_FIRST = (
    "SELECT of.thread_id FROM attachment_threads AS of WHERE of.attachment_id = attachments.attachment_id "
    "ORDER BY of.rowid LIMIT 1"
)
_COLUMNS = f"attachment_id, owner, ({_FIRST}), filename, media_type, size, created_at"
_INSERT = (
    "INSERT INTO attachments (attachment_id, owner, filename, media_type, size, created_at) VALUES (?, ?, ?, ?, ?, ?)"
)
_ONE = f"SELECT {_COLUMNS} FROM attachments WHERE attachment_id = ? AND {MINE}"
_OF_THREAD = (
    f"SELECT {_COLUMNS} FROM attachments WHERE {MINE} "
    "AND attachment_id IN (SELECT attachment_id FROM attachment_threads WHERE thread_id = ?) "
    "ORDER BY created_at, attachment_id"
)
_OWNER = f"SELECT owner FROM threads WHERE thread_id = ? AND {MINE}"
_CLAIM = (
    "INSERT OR IGNORE INTO attachment_threads (attachment_id, thread_id) "
    "SELECT attachment_id, ? FROM attachments WHERE owner = ? AND attachment_id IN (SELECT value FROM json_each(?))"
)


def add_attachment(connection: Connection, attachment: Attachment, *, caller: Caller) -> None:
    """Raises `Conflict` `already_exists`, `NotFound` `no_such_thread`."""
    owner = attachment.owner if caller.system else caller.owner
    if connection.execute("SELECT 1 FROM attachments WHERE attachment_id = ?", (attachment.id,)).fetchone():
        raise Conflict("already_exists", f"attachment {attachment.id!r} exists already: mint another id")
    if attachment.thread_id is not None and _owner_of(connection, attachment.thread_id, caller) != owner:
        raise no_such_thread(attachment.thread_id)
    row = (
        attachment.id,
        owner,
        attachment.filename,
        attachment.media_type,
        attachment.size,
        to_text_time(attachment.created_at),
    )
    connection.execute(_INSERT, row)
    if attachment.thread_id is not None:
        belong(connection, attachment.thread_id, [attachment.id], owner=owner)


def attachment(connection: Connection, attachment_id: str, *, caller: Caller) -> Attachment | None:
    row = connection.execute(_ONE, (attachment_id, *mine(caller))).fetchone()
    return attachment_from(row) if row else None


def claim_attachments(
    connection: Connection, thread_id: str, attachment_ids: Collection[str], *, caller: Caller
) -> None:
    """Raises `NotFound` `no_such_thread`."""
    owner = _owner_of(connection, thread_id, caller)
    if owner is None:
        raise no_such_thread(thread_id)
    belong(connection, thread_id, attachment_ids, owner=owner)


def belong(connection: Connection, thread_id: str, attachment_ids: Collection[str], *, owner: str) -> None:
    """Those of the owner's among them belong to the thread, too."""
    connection.execute(_CLAIM, (thread_id, owner, to_json(list(attachment_ids))))


def thread_attachments(connection: Connection, thread_id: str, *, caller: Caller) -> Sequence[Attachment]:
    return [attachment_from(row) for row in connection.execute(_OF_THREAD, (*mine(caller), thread_id)).fetchall()]


def delete_attachment(connection: Connection, attachment_id: str, *, caller: Caller) -> bool:
    statement = f"DELETE FROM attachments WHERE attachment_id = ? AND {MINE}"
    return connection.execute(statement, (attachment_id, *mine(caller))).rowcount > 0


def _owner_of(connection: Connection, thread_id: str, caller: Caller) -> str | None:
    row = connection.execute(_OWNER, (thread_id, *mine(caller))).fetchone()
    return row[0] if row else None
