"""Where a page of a workspace ends: the place of its last row, as text that clients hand back."""

from __future__ import annotations

import re

from pizzabot_hookspecs import InvalidRequest

_CURSOR = re.compile(r"([0-9]{1,16})-([0-9]{1,16})")


def cursor_of(place: tuple[int, int]) -> str:
    return f"{place[0]}-{place[1]}"


def place_of(cursor: str | None) -> tuple[int, int] | None:
    """Raises `InvalidRequest` `invalid_argument`."""
    if cursor is None:
        return None
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        problem = "must be the cursor of a page before"
        raise InvalidRequest("invalid_argument", f"cursor {problem}", fields={"cursor": problem})
    return int(found[1]), int(found[2])
