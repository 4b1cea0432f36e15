"""Reads text line by line as far as Markdown's code goes: where a line begins that is none, and may hold a tag.

Fences, indented code and code spans of CommonMark 0.31 §4.4, §4.5, §6.1, in lists and quotes, too. A span that is not
closed counts as one to the end of its paragraph: whoever reads a stream cannot know whether it will be closed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

OPENER = "<think>"
MAX_PREFIX = 200
"""Characters of indentation and markers that are looked at; a line with more is text."""
MAX_RUN = 64
"""Backticks or tildes that are counted."""

_PREFIX = re.compile(r"[ \t\r]*(?:(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))[ \t]*)*")
_MARKER = re.compile(r"(>|[-*+]|\d{1,9}[.)])([ \t\r]*)")
_NUMBER = re.compile(r"\d{1,9}[.)]?")
_HASHES = re.compile(r"#{1,6}")
_SPACE = re.compile(r"[ \t\r]*")
_SPECIAL = re.compile(r"[\n`\\]")
_INFO_END = re.compile(r"[\n`]")


class Beginning(Enum):
    """How a line begins. `OPENER` is a tag that counts; it is not read any further."""

    OPENER = auto()
    BLANK = auto()
    OTHER = auto()


class _Rest(Enum):
    """What the rest of a line is read as; `INFO` is what follows the backticks of what may be a fence."""

    TEXT = auto()
    SKIPPED = auto()
    INFO = auto()


@dataclass(frozen=True, slots=True)
class _Fence:
    mark: str
    length: int
    base: int
    quoted: bool


class MarkdownLines:
    """The state between two pieces of text. Ask `begin` at the start of a line, then `rest` until it says the end."""

    def __init__(self) -> None:
        self._fence: _Fence | None = None
        self._lists: list[int] = []
        """The columns where the items begin that a line may be in."""
        self._paragraph = False
        self._heading = False
        self._quoted = False
        self._span = 0
        """Backticks that opened the span we are in."""
        self._run = 0
        self._escaped = False
        self._rest = _Rest.TEXT
        self.resume = 0
        """Where `rest` is to be asked first, after `begin`."""

    def begin(self, text: str, at: int) -> Beginning | None:
        """How the line at `at` begins, or None where `text` ends too early to say."""
        self.resume = at
        if self._fence is not None:
            return self._in_fence(self._fence, text, at)
        here = _end(_PREFIX, text, at)
        if here - at > MAX_PREFIX:
            return self._text()
        prefix = text[at:here]
        code, plain = self._code(prefix), not prefix.strip()
        if here == len(text) or (not code and _undecided(text, here)):
            return None
        if text[here] == "\n":
            return self._blank(prefix, plain=plain)
        if plain and not self._span and self._relative(prefix) < 4:
            start = text[here : here + len(OPENER)]
            if OPENER.startswith(start):
                return Beginning.OPENER if start == OPENER else None
        return self._skipped() if code else self._block(prefix, text, here)

    def rest(self, text: str, at: int) -> tuple[int, bool]:
        """Where the line at `at` goes on, and whether that is the next line."""
        if self._rest is _Rest.INFO:
            found = _INFO_END.search(text, at)
            if found is None:
                return len(text), False
            if found[0] == "\n":
                return found.end(), True
            self._span, self._fence = (self._fence.length if self._fence else 0), None
            self._rest, self._paragraph, at = _Rest.TEXT, True, found.start()
        if self._rest is _Rest.SKIPPED:
            end = text.find("\n", at)
            return (len(text), False) if end < 0 else (end + 1, True)
        return self._spans(text, at)

    def goes_on(self, text: str) -> bool:
        """Whether `text`, in the middle of a line, changes nothing."""
        return not (self._run or self._escaped) and _SPECIAL.search(text) is None

    # -- beginnings ---------------------------------------------------------------------------------------------------

    def _text(self) -> Beginning:
        self._rest, self._paragraph = _Rest.TEXT, True
        return Beginning.OTHER

    def _skipped(self) -> Beginning:
        self._rest = _Rest.SKIPPED
        return Beginning.OTHER

    def _end_paragraph(self) -> None:
        self._paragraph, self._span = False, 0

    def _blank(self, prefix: str, *, plain: bool) -> Beginning:
        self._end_paragraph()
        if not plain:
            self._enter(prefix)
        self._rest = _Rest.SKIPPED
        return Beginning.BLANK if plain else Beginning.OTHER

    def _block(self, prefix: str, text: str, here: int) -> Beginning:
        continued = self._paragraph and self._relative(prefix) >= 4
        if not continued and not self._enter(prefix):
            return self._skipped()
        mark, run = text[here], _run(text, here)
        if not continued and mark in "`~" and run >= 3:
            self._end_paragraph()
            base = self._lists[-1] if self._lists else 0
            self._fence = _Fence(mark, run, base, self._quoted)
            self._rest = _Rest.INFO if mark == "`" else _Rest.SKIPPED
            self.resume = here + run
            return Beginning.OTHER
        self._heading = False
        if not continued and mark == "#" and text[_end(_HASHES, text, here)] in " \t\r\n":
            self._end_paragraph()
            self._heading = True
        return self._text()

    def _relative(self, prefix: str) -> int:
        """Columns that the first mark of a line is indented by, inside of the list item it belongs to."""
        indent = _indent(prefix)
        return indent - max((column for column in self._lists if column <= indent), default=0)

    def _code(self, prefix: str) -> bool:
        return not self._paragraph and self._relative(prefix) >= 4

    def _enter(self, prefix: str) -> bool:
        """Leave the items that a line is not in and enter those it begins; False where indented code follows."""
        column = _indent(prefix)
        while self._lists and self._lists[-1] > column:
            self._lists.pop()
        quoted = False
        for marker, space in _MARKER.findall(prefix):
            width = _columns(space, column + len(marker))
            if marker == ">":
                quoted = True
            else:
                self._end_paragraph()
                self._lists.append(column + len(marker) + (width if 1 <= width <= 4 else 1))
            column += len(marker) + width
            if width > 4:
                self._quoted = quoted
                return False
        if quoted and not self._quoted:
            self._end_paragraph()
        self._quoted = quoted
        return True

    def _in_fence(self, fence: _Fence, text: str, at: int) -> Beginning | None:
        here = at
        while here < len(text) and (text[here] in " \t\r" or (fence.quoted and text[here] == ">")):
            here += 1
        long = len(text) - at > MAX_PREFIX
        if here == len(text):
            return self._skipped() if long else None
        if here - at > MAX_PREFIX:
            return self._skipped()
        prefix = text[at:here]
        if ">" not in prefix if fence.quoted else text[here] != "\n" and _indent(prefix) < fence.base:
            self._fence = None
            return self.begin(text, at)
        if text[here] != fence.mark or (not fence.quoted and _indent(prefix) - fence.base >= 4):
            return self._skipped()
        after = here
        while after < len(text) and text[after] == fence.mark:
            after += 1
        end = _end(_SPACE, text, after)
        if end == len(text) or end - at > MAX_PREFIX:
            return self._skipped() if long else None
        if text[end] == "\n" and after - here >= fence.length:
            self._fence = None
        return self._skipped()

    # -- spans --------------------------------------------------------------------------------------------------------

    def _spans(self, text: str, at: int) -> tuple[int, bool]:
        while at < len(text):
            mark = text[at]
            if mark == "`" and not self._escaped:
                self._run = min(self._run + 1, MAX_RUN)
                at += 1
                continue
            self._end_run()
            if self._escaped and mark in "`\\":
                self._escaped = False
                at += 1
                continue
            self._escaped = False
            found = _SPECIAL.search(text, at)
            if found is None:
                return len(text), False
            at = found.start()
            if found[0] == "\n":
                if self._heading:
                    self._end_paragraph()
                self._heading = False
                return at + 1, True
            if found[0] == "\\":
                self._escaped = not self._span
                at += 1
        return at, False

    def _end_run(self) -> None:
        if self._run:
            self._span = self._run if not self._span else (0 if self._span == self._run else self._span)
            self._run = 0


def _undecided(text: str, here: int) -> bool:
    """Whether what stands at `here` may be the beginning of something longer."""
    mark = text[here]
    if mark in "-*+":
        return here + 1 == len(text)
    if mark in "`~":
        run = _run(text, here)
        return run < MAX_RUN and here + run == len(text)
    return any(here < _end(pattern, text, here) == len(text) for pattern in (_NUMBER, _HASHES))


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def _run(text: str, here: int) -> int:
    count, limit = 0, min(len(text) - here, MAX_RUN)
    while count < limit and text[here + count] == text[here]:
        count += 1
    return count


def _indent(prefix: str) -> int:
    return _columns(prefix[: _end(_SPACE, prefix, 0)], 0)


def _columns(space: str, start: int) -> int:
    """The width of spaces and tabs that begin at the column `start`; tabs stop at every fourth."""
    column = start
    for mark in space:
        column += 4 - column % 4 if mark == "\t" else int(mark == " ")
    return column - start
