"""Dotted paths of settings: written for people as TOML writes them, compared as tuples."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeAlias

from pizzabot_hookspecs.errors import InvalidRequest
from pizzabot_hookspecs.support.references import parse_reference

Path: TypeAlias = tuple[str, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dotted(path: Path) -> str:
    """`models.work.region`; a part that TOML would have to quote is quoted."""
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)


def leaves(values: Mapping[str, Any], keys: Collection[str], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value with its path. Lists, references and empty tables are values, other tables are walked.

    `keys` are those of secret stores. A table of the first two levels is a section, never a reference.
    """
    for key, value in values.items():
        here = (*path, key)
        if isinstance(value, Mapping) and value and not _is_reference(value, here, keys):
            yield from leaves(value, keys, here)
        else:
            yield here, value


def _is_reference(value: Mapping[str, Any], path: Path, keys: Collection[str]) -> bool:
    if len(path) <= 2:
        return False
    try:
        return parse_reference(value, keys=keys) is not None
    except InvalidRequest as error:
        raise InvalidRequest(
            error.code, f"{dotted(path)}: {error.detail}", fields={dotted(path): error.detail}
        ) from error


def at(values: Mapping[str, Any], path: Path) -> Any:
    """The value at `path`, or None."""
    found: Any = values
    for part in path:
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def put(values: dict[str, Any], path: Path, value: object) -> None:
    """Set the value at `path`, making tables on the way (and in place of values that stand in it)."""
    for part in path[:-1]:
        inner = values.get(part)
        if not isinstance(inner, dict):
            inner = values[part] = {}
        values = inner
    values[path[-1]] = value
