"""What is different between two texts, by lines: counts and a unified diff, in a bounded time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher

from pizzabot.host.files.text_search import is_text

MAX_COMPARED_BYTES = 256 * 1024
"""Of either content; more is not compared."""
MAX_DIFF_BYTES = 256 * 1024
"""Of a unified diff; it is cut between lines."""
_CONTEXT = 3


class TooSlow(Exception):
    """Comparing took longer than it may."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineChanges:
    """`added` and `removed` are lines; None where the contents are not text or were not compared, then `cut`."""

    added: int | None = None
    removed: int | None = None
    cut: bool = False


class _Matcher(SequenceMatcher[str]):
    deadline = float("inf")

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        if time.monotonic() > self.deadline:
            raise TooSlow
        return super().find_longest_match(alo, ahi, blo, bhi)


def line_changes(before: bytes, after: bytes, *, deadline: float) -> LineChanges:
    """Blocks; `deadline` is on the monotonic clock."""
    if not (is_text(before) and is_text(after)):
        return LineChanges()
    try:
        matcher = _matcher(_lines(before), _lines(after), deadline)
        added = removed = 0
        for _, start, end, first, last in matcher.changed():
            removed, added = removed + end - start, added + last - first
    except TooSlow:
        return LineChanges(cut=True)
    return LineChanges(added=added, removed=removed)


def unified_diff(before: bytes, after: bytes, *, path: str, deadline: float) -> tuple[str | None, bool]:
    """The diff, and whether it is not all of it; None where there is none to make."""
    if not (is_text(before) and is_text(after)):
        return None, False
    if max(len(before), len(after)) > MAX_COMPARED_BYTES:
        return None, True
    try:
        matcher = _matcher(_lines(before), _lines(after), deadline)
        lines = [f"--- {path}\n", f"+++ {path}\n", *matcher.hunks()]
    except TooSlow:
        return None, True
    size, kept = 0, 0
    for line in lines:
        size += len(line.encode())
        if size > MAX_DIFF_BYTES:
            break
        kept += 1
    return "".join(lines[:kept]), kept < len(lines)


_Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Compared:
    before: Sequence[str]
    after: Sequence[str]
    opcodes: Sequence[_Opcode]

    def changed(self) -> Iterator[_Opcode]:
        return (code for code in self.opcodes if code[0] != "equal")

    def hunks(self) -> Iterator[str]:
        for group in self._groups():
            yield f"@@ -{_span(group[0][1], group[-1][2])} +{_span(group[0][3], group[-1][4])} @@\n"
            for tag, start, end, first, last in group:
                if tag == "equal":
                    yield from (_line(" ", line) for line in self.before[start:end])
                    continue
                yield from (_line("-", line) for line in self.before[start:end])
                yield from (_line("+", line) for line in self.after[first:last])

    def _groups(self) -> Iterator[list[_Opcode]]:
        """As `difflib` groups them: with three lines around."""
        group: list[_Opcode] = []
        last = len(self.opcodes) - 1
        for at, code in enumerate(self.opcodes):
            tag, start, end, first, upto = code
            near = min(_CONTEXT, end - start)
            if tag != "equal" or (0 < at < last and end - start <= 2 * _CONTEXT):
                group.append(code)
            elif at == 0:
                group = [(tag, end - near, end, upto - near, upto)]
            else:
                yield [*group, (tag, start, start + near, first, first + near)]
                group = [(tag, end - near, end, upto - near, upto)] if at < last else []
        if any(code[0] != "equal" for code in group):
            yield group


def _matcher(before: Sequence[str], after: Sequence[str], deadline: float) -> _Compared:
    """What both begin and end with is not compared: mostly that is nearly all."""
    head = 0
    while head < min(len(before), len(after)) and before[head] == after[head]:
        head += 1
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    matcher = _Matcher(None, before[head : len(before) - tail], after[head : len(after) - tail])
    matcher.deadline = deadline
    opcodes: list[_Opcode] = [
        (tag, start + head, end + head, first + head, last + head)
        for tag, start, end, first, last in matcher.get_opcodes()
    ]
    if head:
        opcodes.insert(0, ("equal", 0, head, 0, head))
    if tail:
        opcodes.append(("equal", len(before) - tail, len(before), len(after) - tail, len(after)))
    return _Compared(before, after, opcodes)


def _lines(content: bytes) -> list[str]:
    """With their ends; only `\\n` ends one."""
    lines = content.decode().split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def _line(sign: str, line: str) -> str:
    return f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _span(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
