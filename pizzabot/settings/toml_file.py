"""Reading `pizzabot.toml`: its values, or one line that says file, line and column of what is wrong."""

from __future__ import annotations

import re
import stat
import tomllib
from pathlib import Path
from typing import Any

from pizzabot_hookspecs.errors import InvalidRequest

MAX_FILE_BYTES = 1024 * 1024
"""A configuration by hand is a few kilobytes; a larger file is a mistake (or not a configuration)."""

_AT = re.compile(r" \(at line (\d+), column (\d+)\)$")


def read_text(path: Path) -> str:
    """The text of the file. Raises `InvalidRequest` `config_not_found`, `config_unreadable` or `invalid_toml`."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise InvalidRequest("config_unreadable", f"configuration {path} is {kind}; name a TOML file")
        if status.st_size > MAX_FILE_BYTES:
            raise InvalidRequest(
                "config_unreadable",
                f"configuration {path} has {status.st_size} bytes; at most {MAX_FILE_BYTES} are read",
            )
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise InvalidRequest("config_not_found", f"configuration {path} does not exist") from error
    except OSError as error:
        raise InvalidRequest("config_unreadable", f"configuration {path} cannot be read: {error.strerror}") from error
    return _decoded(raw, path)


def _decoded(raw: bytes, path: Path) -> str:
    try:
        return raw.decode("utf-8-sig")  # some editors write a byte-order mark
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        raise _invalid(path, line, column, "it is not UTF-8") from error


def parse(text: str, path: Path) -> dict[str, Any]:
    """The values of `text`. Raises `InvalidRequest` `invalid_toml` with file, line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        match = _AT.search(message)
        if match is None:  # "(at end of document)"
            lines = text.splitlines() or [""]
            raise _invalid(path, len(lines), len(lines[-1]) + 1, message) from error
        raise _invalid(path, int(match[1]), int(match[2]), message[: match.start()]) from error
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits; brackets nested a thousand deep
        raise _invalid(path, 1, 1, f"it cannot be read as TOML: {error}") from error


def _invalid(path: Path, line: int, column: int, cause: str) -> InvalidRequest:
    return InvalidRequest(
        "invalid_toml",
        f"{path}, line {line}, column {column}: {cause[:200]}",
        fields={"file": str(path), "line": str(line), "column": str(column)},
    )
