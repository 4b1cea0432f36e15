"""Which line of a TOML text a value stands on. tomllib does not say, so each statement is parsed again by itself."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from typing import Any

from pizzabot.settings.paths import Path, leaves, put

MAX_STATEMENT_LINES = 300
"""A longer list is not followed: what comes after it is then reported with the file only."""


def line_numbers(text: str, keys: Collection[str]) -> dict[Path, int]:
    """Line (from 1) by path: of tables and of every value. `text` is valid TOML; `keys` are those of secret stores."""
    lines = text.splitlines()
    found: dict[Path, int] = {}
    table: Path = ()
    index = 0
    while index < len(lines):
        statement, length = _statement(lines, index)
        if statement is None:
            break
        if lines[index].lstrip().startswith("["):
            table = _table_path(statement)
            _note(found, table, index + 1)
        else:
            for path, _ in leaves(_below(table, statement), keys):
                _note(found, path, index + 1)
        index += length
    return found


def _note(found: dict[Path, int], path: Path, line: int) -> None:
    for end in range(1, len(path) + 1):
        found.setdefault(path[:end], line)


def _statement(lines: list[str], start: int) -> tuple[dict[str, Any] | None, int]:
    """The values of the statement that begins at `start`, and how many lines it has."""
    for length in range(1, MAX_STATEMENT_LINES + 1):
        try:
            return tomllib.loads("\n".join(lines[start : start + length])), length
        except ValueError:
            if start + length >= len(lines):
                break
    return None, 0


def _table_path(header: Mapping[str, Any]) -> Path:
    """`[a.b]` parses to {a: {b: {}}}, `[[a.b]]` to {a: {b: [{}]}}."""
    path: list[str] = []
    values: Any = header
    while isinstance(values, Mapping) and values:
        key, values = next(iter(values.items()))
        path.append(key)
    return tuple(path)


def _below(table: Path, statement: Mapping[str, Any]) -> Mapping[str, Any]:
    if not table:
        return statement
    values: dict[str, Any] = {}
    put(values, table, dict(statement))
    return values
