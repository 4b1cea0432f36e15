"""What SQLite and its binding raise, as the errors of the contract.

SQLITE_CORRUPT, SQLITE_NOTADB     Unavailable `database_damaged`
every other error of the engine or the system   Unavailable `storage_failed` (locked for too long, disk full, I/O)
a lone surrogate in a text        InvalidRequest `invalid_text`
a number beyond 64 bits           InvalidRequest `invalid_number`
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pizzabot_hookspecs import InvalidRequest, PizzabotError, Unavailable

_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PRIMARY_CODE = 0xFF

_LOOK = "look at the disk and the permissions of the folder"
_WAYS_OUT = {
    sqlite3.SQLITE_FULL: "free some disk space and try again",
    sqlite3.SQLITE_BUSY: "end the other process that holds it, or raise storage.sqlite.busy_timeout_seconds",
    sqlite3.SQLITE_READONLY: "give this user the right to write it",
    sqlite3.SQLITE_CANTOPEN: "check that the folder exists and belongs to this user",
}


def translated(error: Exception, path: Path) -> Exception:
    """`error` as the caller should see it; what is not a fault of storage comes back as it is."""
    if isinstance(error, PizzabotError):
        return error
    if isinstance(error, sqlite3.Error):
        return _engine_fault(error, path)
    if isinstance(error, OSError):
        return Unavailable("storage_failed", f"database {path} cannot be used: {error.strerror or error}; {_LOOK}")
    if isinstance(error, UnicodeEncodeError):
        return InvalidRequest("invalid_text", f"text with an unpaired surrogate cannot be stored: {error.reason}")
    if isinstance(error, OverflowError):
        return InvalidRequest("invalid_number", f"a number beyond 64 bits cannot be stored: {error}")
    return error


def damaged(path: Path, cause: str) -> Unavailable:
    return Unavailable(
        "database_damaged",
        f"database {path} is damaged: {cause}; nothing was changed: "
        "move the file away and restore a copy, or start with another data root",
    )


def _engine_fault(error: sqlite3.Error, path: Path) -> Unavailable:
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
    if code in _DAMAGED:
        return damaged(path, str(error))
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    way_out = _WAYS_OUT.get(code, _LOOK)
    return Unavailable("storage_failed", f"database {path} refused: {error} ({name}); {way_out}")
