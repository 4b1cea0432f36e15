"""Opening `app.sqlite`: private files, a cheap look at its health, refusal before any write, pragmas, migrations."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from pizzabot_builtin_plugins.sqlite_storage.faults import damaged, translated
from pizzabot_builtin_plugins.sqlite_storage.migrations import check_versions, migrate
from pizzabot_builtin_plugins.sqlite_storage.schema import Migration
from pizzabot_hookspecs import Unavailable

APP_DATABASE = "app.sqlite"

WAL_KEPT_BYTES = 64 * 1024 * 1024
"""A write-ahead log that one big transaction blew up is cut back to this."""

CACHED_STATEMENTS = 256

_HEADER = b"SQLite format 3\x00"


def make_private(path: Path) -> None:
    """Create the file 0600 where it is missing, else make it (with -wal and -shm) so; SQLite copies the mode."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        for file in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
            if file.exists():
                file.chmod(0o600)
    except OSError as error:
        raise Unavailable(
            "storage_failed",
            f"database {path} cannot be opened: {error.strerror}; give this user the right to write it",
        ) from error


def check_header(path: Path) -> None:
    """Raises `Unavailable` `database_damaged` for a file that cannot be a database. An empty one is a new one."""
    with path.open("rb") as file:
        header = file.read(len(_HEADER))
    if header and header != _HEADER:
        raise damaged(path, "it does not begin as a SQLite database does")


def open_database(
    path: Path, *, busy_timeout_seconds: float, migrations: Sequence[Migration], now: float
) -> sqlite3.Connection:
    """The writer's connection, in autocommit mode, migrated. Blocks; raises as `faults` and `migrations` say."""
    make_private(path)
    check_header(path)
    connection = sqlite3.connect(
        path,
        timeout=busy_timeout_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )
    try:
        _look(connection, path)
        check_versions(connection, path, migrations)
        _set_pragmas(connection)
        migrate(connection, path, migrations, now=now)
    except Exception as error:
        connection.close()
        raise translated(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def open_reader(path: Path, *, busy_timeout_seconds: float) -> sqlite3.Connection:
    """A connection that cannot write, for use in any one thread at a time."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro",
        uri=True,
        timeout=busy_timeout_seconds,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )
    connection.execute("PRAGMA query_only = ON")
    return connection


def _look(connection: sqlite3.Connection, path: Path) -> None:
    """Read the schema; look closer (seconds on a large file) only when that fails."""
    try:
        connection.execute("PRAGMA schema_version").fetchone()
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        fault = translated(error, path)
        if not isinstance(fault, Unavailable) or fault.code != "database_damaged":
            raise
        raise damaged(path, _quick_check(connection) or str(error)) from error


def _quick_check(connection: sqlite3.Connection) -> str | None:
    try:
        row = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError:
        return None
    return " ".join(str(row[0]).split()) if row else None


def _set_pragmas(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_mode = WAL").fetchone()
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_KEPT_BYTES}")
    # macOS: fsync alone does not reach the platter; elsewhere this changes nothing.
    connection.execute("PRAGMA fullfsync = ON")
