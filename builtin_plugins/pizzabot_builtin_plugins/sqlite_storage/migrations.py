"""The migration table: which version each component's schema has, and how it gets to the known one.

`migrations(component, version, applied_at)` has a row per applied step. A database of a newer program is refused; one
that exists and is behind is copied beside itself before the first step touches it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from pizzabot_builtin_plugins.sqlite_storage.faults import damaged
from pizzabot_builtin_plugins.sqlite_storage.schema import Migration
from pizzabot_builtin_plugins.sqlite_storage.values import to_text_time
from pizzabot_hookspecs import Unavailable

_TABLE = """
CREATE TABLE IF NOT EXISTS migrations (
  component TEXT NOT NULL, version INTEGER NOT NULL, applied_at TEXT NOT NULL, PRIMARY KEY (component, version)
)
"""


def applied_versions(connection: sqlite3.Connection) -> dict[str, int]:
    """The highest applied version per component; empty for a database without the table. Reads only."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'migrations'").fetchone():
        return {}
    return dict(connection.execute("SELECT component, max(version) FROM migrations GROUP BY component").fetchall())


def check_versions(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Raises `Unavailable` `schema_too_new`, or `database_damaged` for tables of another program. Reads only."""
    applied = applied_versions(connection)
    for component, known in _known_versions(migrations).items():
        found = applied.get(component, 0)
        if found > known:
            raise Unavailable(
                "schema_too_new",
                f"database {path} has schema version {found} of {component}, this program knows {known}: "
                "install the newer pizzabot-host again, or start with another data root",
            )
    if not applied and _has_tables(connection):
        raise damaged(path, "it has tables but no record of pizzabot's schema")


def migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration], *, now: float) -> Path | None:
    """Apply what is missing, all of it in one transaction; the path of the copy that was made before, if any.

    `connection` is in autocommit mode. A step that fails leaves the database as it was.
    """
    if not _missing(applied_versions(connection), migrations):
        return None
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again under the lock: another process may have been faster.
        applied = applied_versions(connection)
        missing = _missing(applied, migrations)
        copy = copy_database(path, applied, now=now) if applied and missing else None
        connection.execute(_TABLE)
        for step in missing:
            _apply(connection, step, now)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return copy


def copy_database(path: Path, applied: dict[str, int], *, now: float) -> Path:
    """A consistent copy beside the database, mode 0600, named after its versions and the time; never overwrites one.

    It reads through a connection of its own: SQLite copies nothing from one that holds the lock for writing.
    """
    versions = "-".join(f"{component}{version}" for component, version in sorted(applied.items()))
    target = path.with_name(f"{path.stem}.before-migration.{versions}.{round(now * 1000)}.sqlite")
    if target.exists():
        raise Unavailable("storage_failed", f"copy {target} exists already: move it away and start again")
    partial = target.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with (
            closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source,
            closing(sqlite3.connect(partial)) as copy,
        ):
            source.backup(copy)
        partial.rename(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


def _known_versions(migrations: Sequence[Migration]) -> dict[str, int]:
    known: dict[str, int] = {}
    for step in migrations:
        known[step.component] = max(known.get(step.component, 0), step.version)
    return known


def _missing(applied: dict[str, int], migrations: Sequence[Migration]) -> list[Migration]:
    return [step for step in migrations if step.version > applied.get(step.component, 0)]


def _apply(connection: sqlite3.Connection, step: Migration, now: float) -> None:
    for statement in step.statements:
        connection.execute(statement)
    row = (step.component, step.version, to_text_time(now))
    connection.execute("INSERT INTO migrations (component, version, applied_at) VALUES (?, ?, ?)", row)


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
