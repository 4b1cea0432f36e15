"""The table `attachments`: what people sent along, of no thread until a message refers to it."""

# ruff: noqa: S608 - what is put together are constants of this package; values are always parameters.

from __future__ import annotations

from collections.abc import Collection, Sequence

from pizzabot_builtin_plugins.sqlite_storage.admission import no_such_thread
from pizzabot_builtin_plugins.sqlite_storage.rows import MINE, Connection, attachment_from, mine
from pizzabot_builtin_plugins.sqlite_storage.values import to_json, to_text_time
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.file_storage import Attachment

_COLUMNS = "attachment_id, owner, thread_id, filename, media_type, size, created_at"
_INSERT = f"INSERT INTO attachments ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"
_ONE = f"SELECT {_COLUMNS} FROM attachments WHERE attachment_id = ? AND {MINE}"
_OF_THREAD = f"SELECT {_COLUMNS} FROM attachments WHERE thread_id = ? AND {MINE} ORDER BY created_at, attachment_id"
_OWNER = f"SELECT owner FROM threads WHERE thread_id = ? AND {MINE}"
_CLAIM = (
    "UPDATE attachments SET thread_id = ? WHERE thread_id IS NULL AND owner = ? "
    "AND attachment_id IN (SELECT value FROM json_each(?))"
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
        attachment.thread_id,
        attachment.filename,
        attachment.media_type,
        attachment.size,
        to_text_time(attachment.created_at),
    )
    connection.execute(_INSERT, row)


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
    connection.execute(_CLAIM, (thread_id, owner, to_json(list(attachment_ids))))


def thread_attachments(connection: Connection, thread_id: str, *, caller: Caller) -> Sequence[Attachment]:
    return [attachment_from(row) for row in connection.execute(_OF_THREAD, (thread_id, *mine(caller))).fetchall()]


def delete_attachment(connection: Connection, attachment_id: str, *, caller: Caller) -> bool:
    statement = f"DELETE FROM attachments WHERE attachment_id = ? AND {MINE}"
    return connection.execute(statement, (attachment_id, *mine(caller))).rowcount > 0


def _owner_of(connection: Connection, thread_id: str, caller: Caller) -> str | None:
    row = connection.execute(_OWNER, (thread_id, *mine(caller))).fetchone()
    return row[0] if row else None
