"""YAML as the person wrote it: text, lists and mappings with their lines. No tags, anchors, aliases, no guessed types.

It is read from the parser's events, without recursion and without constructors: `name: yes` stays the text "yes", and
what expands (aliases) is refused before it does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pizzabot.host.skills.faults import FrontmatterError

MAX_DEPTH = 8
MAX_VALUES = 4096
"""Of one document, keys included."""

_SPECIAL = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON leaves as it is, and YAML takes for a line break or refuses."""
_NOTHING = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """A scalar as written; `plain` where it had no quotes and is no block."""

    text: str
    line: int
    plain: bool = True

    @property
    def nothing(self) -> bool:
        """What YAML takes for null."""
        return self.plain and self.text in _NOTHING


@dataclass(frozen=True, kw_only=True, slots=True)
class Items:
    line: int
    items: list[Value] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fields:
    """A mapping; a key twice is refused. `lines` are the lines of the keys."""

    line: int
    values: dict[str, Value] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)


Value: TypeAlias = Text | Items | Fields


def quoted(text: str) -> str:
    """`text` in double quotes, on one line, the same text for every YAML reader; without unpaired surrogates."""
    return _SPECIAL.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def read_mapping(text: str, *, first_line: int) -> Fields:
    """The mapping that `text` is; empty for an empty text. Raises `FrontmatterError` with the line in the file."""
    reader = _Reader(first_line)
    for event in _events(text, first_line):
        reader.take(event)
    root = reader.root
    if root is None or (isinstance(root, Text) and root.nothing):
        return Fields(line=first_line)
    if not isinstance(root, Fields):
        raise FrontmatterError("it is not a mapping: write `key: value` lines between the `---` lines", root.line)
    return root


def _events(text: str, first_line: int) -> Iterator[Any]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        if mark is None or mark.line > text.count("\n"):
            mark = error.context_mark or mark  # what does not end is found at the end; where it began helps
        problem = error.problem or error.context or "it is not YAML"
        raise FrontmatterError(
            f"it is not YAML: {problem}", None if mark is None else first_line + mark.line
        ) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise FrontmatterError(f"it is not YAML: {str(error).splitlines()[0]}", first_line) from error


class _Reader:
    """Builds one document out of events, on a stack of its own."""

    def __init__(self, first_line: int) -> None:
        self.root: Value | None = None
        self._first_line = first_line
        self._open: list[Items | Fields] = []
        self._keys: list[Text | None] = []
        self._count = 0

    def take(self, event: Any) -> None:
        name = type(event).__name__
        if name == "AliasEvent":
            raise FrontmatterError(
                "it uses a YAML alias (`*name`): write the value itself, or quote it", self._at(event)
            )
        if name in ("ScalarEvent", "SequenceStartEvent", "MappingStartEvent"):
            self._value(name, event)
        elif name in ("SequenceEndEvent", "MappingEndEvent"):
            self._open.pop()
            self._keys.pop()

    def _value(self, name: str, event: Any) -> None:
        line = self._at(event)
        if event.anchor is not None:
            raise FrontmatterError("it uses a YAML anchor (`&name`): leave it out, or quote the value", line)
        if event.tag is not None:
            raise FrontmatterError(f"it uses a YAML tag ({event.tag[:40]}): leave it out, or quote the value", line)
        self._count += 1
        if self._count > MAX_VALUES:
            raise FrontmatterError(f"it has more than {MAX_VALUES} values", line)
        if name == "ScalarEvent":
            # libyaml says "" for a plain scalar that is written out, PyYAML's own parser None
            self._put(Text(text=event.value, line=line, plain=event.style not in ("'", '"', "|", ">")))
            return
        made = Items(line=line) if name == "SequenceStartEvent" else Fields(line=line)
        self._put(made)
        self._open.append(made)
        self._keys.append(None)
        if len(self._open) > MAX_DEPTH:
            raise FrontmatterError(f"it is nested deeper than {MAX_DEPTH} levels", line)

    def _put(self, value: Value) -> None:
        if not self._open:
            if self.root is not None:
                raise FrontmatterError("it has more than one YAML document", value.line)
            self.root = value
            return
        holder, key = self._open[-1], self._keys[-1]
        if isinstance(holder, Items):
            holder.items.append(value)
        elif key is not None:
            holder.values[key.text] = value
            self._keys[-1] = None
        elif not isinstance(value, Text):
            raise FrontmatterError("a key is a list or a mapping: keys are text", value.line)
        elif value.text in holder.values:
            raise FrontmatterError(f"the key {value.text[:60]!r} is there twice", value.line)
        else:
            holder.lines[value.text] = value.line
            self._keys[-1] = value

    def _at(self, event: Any) -> int:
        return int(self._first_line + event.start_mark.line)
