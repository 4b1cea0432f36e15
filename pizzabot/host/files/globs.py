"""Globs over paths: `*`, `?`, `[…]`, `{a,b}` and `**`, in time proportional to pattern and path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pizzabot_hookspecs import InvalidRequest

MAX_PATTERN = 1_024
"""Characters of a glob."""
MAX_ALTERNATIVES = 64
"""What the `{a,b}` of one glob may come to."""

_ANY_FOLDERS = "**"
_STAR = "*"


class _Any:
    """`?`: one character."""

    def __contains__(self, character: str) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class _Class:
    """`[a-z]`, `[!a-z]`."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.negated


_ANY = _Any()
_Unit = str | _Any | _Class
_Name = tuple[_Unit, ...]
_Part = str | _Name


class Glob:
    """Raises `InvalidRequest` `invalid_pattern` for one that is empty, too long, or too many in one.

    `*` and `?` match no `/`; names that begin with a dot are names like others. What does not close is itself.
    """

    def __init__(self, pattern: str) -> None:
        if not 0 < len(pattern) <= MAX_PATTERN:
            raise _invalid(f"has {len(pattern)} characters; 1 to {MAX_PATTERN} are allowed")
        self._alternatives = [_parts(text.lstrip("/")) for text in _expanded(pattern)]

    def matches(self, path: str) -> bool:
        """`path` is relative, as `find` means it."""
        names = path.split("/")
        return any(_match_parts(parts, names) for parts in self._alternatives)


def _expanded(pattern: str) -> list[str]:
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        text = waiting.pop()
        found = _braces(text)
        if found is None:
            done.append(text)
        else:
            start, end, options = found
            waiting += [text[:start] + option + text[end:] for option in options]
        if len(done) + len(waiting) > MAX_ALTERNATIVES:
            raise _invalid(f"stands for more than {MAX_ALTERNATIVES} patterns; use fewer {{a,b}}")
    return done


def _braces(text: str) -> tuple[int, int, list[str]] | None:
    """The innermost first `{…,…}`: where it begins, where it ends, and what may stand there."""
    start: int | None = None
    for index, character in enumerate(text):
        if character == "{":
            start = index
        elif character == "}" and start is not None:
            inner = text[start + 1 : index]
            if "," in inner:
                return start, index + 1, inner.split(",")
            start = None
    return None


def _parts(text: str) -> tuple[_Part, ...]:
    return tuple(_ANY_FOLDERS if part == _ANY_FOLDERS else _units(part) for part in text.split("/"))


def _units(text: str) -> _Name:
    units: list[_Unit] = []
    index = 0
    while index < len(text):
        character = text[index]
        if character == "?":
            units.append(_ANY)
        elif character == "[" and (end := _class_end(text, index)) > 0:
            units.append(_class(text[index + 1 : end]))
            index = end
        elif character != "*" or not units or units[-1] != _STAR:
            units.append(_STAR if character == "*" else _Class(((character, character),), negated=False))
        index += 1
    return tuple(units)


def _class_end(text: str, start: int) -> int:
    first = start + 2 if text[start + 1 : start + 2] in {"!", "^"} else start + 1
    return text.find("]", first + 1)


def _class(inner: str) -> _Class:
    negated = inner[0] in "!^"
    members = inner[1:] if negated else inner
    ranges: list[tuple[str, str]] = []
    while members:
        if len(members) >= 3 and members[1] == "-":
            ranges.append((members[0], members[2]))
            members = members[3:]
        else:
            ranges.append((members[0], members[0]))
            members = members[1:]
    return _Class(tuple(ranges), negated)


def _match_parts(parts: Sequence[_Part], names: Sequence[str]) -> bool:
    """Greedy, with the last `**` as the only place to go back to: as good as trying all, for one name a part."""
    part = name = 0
    back: tuple[int, int] | None = None
    while name < len(names):
        here = parts[part] if part < len(parts) else None
        if here == _ANY_FOLDERS:
            back, part = (part, name), part + 1
        elif here is not None and not isinstance(here, str) and _match_name(here, names[name]):
            part, name = part + 1, name + 1
        elif back is not None:
            back = (back[0], back[1] + 1)
            part, name = back[0] + 1, back[1]
        else:
            return False
    return all(rest == _ANY_FOLDERS for rest in parts[part:])


def _match_name(units: _Name, text: str) -> bool:
    unit = at = 0
    back: tuple[int, int] | None = None
    while at < len(text):
        here = units[unit] if unit < len(units) else None
        if isinstance(here, str):
            back, unit = (unit, at), unit + 1
        elif here is not None and text[at] in here:
            unit, at = unit + 1, at + 1
        elif back is not None:
            back = (back[0], back[1] + 1)
            unit, at = back[0] + 1, back[1]
        else:
            return False
    return all(rest == _STAR for rest in units[unit:])


def _invalid(problem: str) -> InvalidRequest:
    return InvalidRequest("invalid_pattern", f"the glob {problem}", fields={"pattern": problem})
