"""Cuts `<think>…</think>` out of a text that arrives in pieces (spec/12 §1.1): the same, however it is cut up.

An opener counts at the start of the text or of a line, indented by three columns at most, outside of code. The first
closer behind it ends it, whatever lies between; openers in there mean nothing. Behind a closer the text begins anew.
Tags are written exactly so: `<Think>` and `<thinking>` are text. Blank lines next to a tag are dropped with it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import ClassVar, NamedTuple

from pizzabot.host.models.markdown_lines import OPENER, Beginning, MarkdownLines

CLOSER = "</think>"
MAX_BLANK = 64
"""Characters of white space before the text that wait for an opener."""
MAX_BREAKS = 4
"""Line breaks before a closer that are dropped."""


class Piece(NamedTuple):
    """A piece of reasoning or text. `block` counts: pieces with the same number belong together."""

    reasoning: bool
    block: int
    text: str


class _Phase(Enum):
    PREFILLED = auto()
    TAG_LINE = auto()
    TAG_LINES = auto()
    THOUGHT = auto()
    BEGINNING = auto()
    REST = auto()


class ThinkTags:
    """One message. `feed` its pieces, then `close`; `unclosed` then says whether its reasoning had no end.

    `prefilled`: the text begins as reasoning, for the opener was given to the model. Without any closer it stays
    reasoning: what was shown as such is not taken back.
    """

    def __init__(self, *, prefilled: bool = False) -> None:
        self._phase = _Phase.PREFILLED if prefilled else _Phase.BEGINNING
        self._reasoning = prefilled
        self._opened = False
        self._block = 0
        self._held = ""
        self._blank = ""
        self._begun = False
        self._lines = MarkdownLines()
        self._said: list[tuple[bool, int, list[str]]] = []

    @property
    def unclosed(self) -> bool:
        return self._reasoning and (self._opened or self._begun)

    def feed(self, text: str) -> list[Piece]:
        """What `text` adds. What may still become a tag or code is held back, some 300 characters at most."""
        if not self._held and text and self._is_plain(text):
            self._begun = True
            return [Piece(self._reasoning, self._block, text)]
        text, self._held = self._held + text, ""
        at = 0
        while at < len(text):
            at = self._STEPS[self._phase](self, text, at)
        return self._taken()

    def close(self) -> list[Piece]:
        """What was held back: the message has ended."""
        held, self._held = self._blank + self._held, ""
        self._blank = ""
        if not (self._reasoning and held.isspace()):
            self._say(held)
        return self._taken()

    def _is_plain(self, text: str) -> bool:
        """Whether `text` goes on with what is going on: nearly every token does."""
        if self._phase is _Phase.THOUGHT:
            return not ("<" in text or "\n" in text or "\r" in text)
        return self._phase is _Phase.REST and self._lines.goes_on(text)

    def _taken(self) -> list[Piece]:
        said, self._said = self._said, []
        return [Piece(reasoning, block, "".join(texts)) for reasoning, block, texts in said]

    def _say(self, text: str) -> None:
        if not text:
            return
        self._begun = True
        if self._said and self._said[-1][1] == self._block:
            self._said[-1][2].append(text)
        else:
            self._said.append((self._reasoning, self._block, [text]))

    def _hold(self, text: str, at: int) -> int:
        self._held = text[at:]
        return len(text)

    def _turn(self, *, reasoning: bool) -> None:
        self._reasoning, self._begun, self._phase = reasoning, False, _Phase.TAG_LINE
        self._block += 1

    # -- phases: each is given the text and a place in it, and says where the next one goes on ------------------------

    def _prefilled(self, text: str, at: int) -> int:
        start = len(text) - len(text[at:].lstrip())
        if start - at <= MAX_BLANK:
            if text.startswith(OPENER, start):
                self._opened = True
                at = start + len(OPENER)
            elif OPENER.startswith(text[start:]):
                return self._hold(text, at)
        self._phase = _Phase.TAG_LINE
        return at

    def _tag_line(self, text: str, at: int) -> int:
        while at < len(text) and text[at] in " \t\r":
            at += 1
        if at < len(text):
            self._phase = _Phase.TAG_LINES
        return at

    def _tag_lines(self, text: str, at: int) -> int:
        while at < len(text) and text[at] in "\r\n":
            at += 1
        if at < len(text):
            self._phase = _Phase.THOUGHT if self._reasoning else _Phase.BEGINNING
        return at

    def _thought(self, text: str, at: int) -> int:
        found = text.find(CLOSER, at)
        if found < 0:
            end = _partial_closer(text, at)
            self._say(text[at : _without_breaks(text, at, end)])
            return self._hold(text, _without_breaks(text, at, end))
        self._say(text[at : _without_breaks(text, at, found)])
        self._turn(reasoning=False)
        self._opened = False
        self._lines = MarkdownLines()
        return found + len(CLOSER)

    def _beginning(self, text: str, at: int) -> int:
        beginning = self._lines.begin(text, at)
        if beginning is None:
            return self._hold(text, at)
        if beginning is Beginning.OPENER:
            self._blank = ""
            self._opened = True
            self._turn(reasoning=True)
            return text.index(OPENER, at) + len(OPENER)
        if beginning is Beginning.BLANK and not self._begun:
            end = text.index("\n", at) + 1
            self._blank += text[at:end]
            if len(self._blank) > MAX_BLANK:
                self._say_blank()
            return end
        self._say_blank()
        self._phase = _Phase.REST
        return self._line(text, at, self._lines.resume)

    def _say_blank(self) -> None:
        self._say(self._blank)
        self._blank = ""

    def _rest(self, text: str, at: int) -> int:
        return self._line(text, at, at)

    def _line(self, text: str, at: int, scanned: int) -> int:
        """Say the rest of a line: from `at`, though what lies before `scanned` is known already."""
        end, over = self._lines.rest(text, scanned)
        self._say(text[at:end])
        if over:
            self._phase = _Phase.BEGINNING
        return end

    _STEPS: ClassVar[dict[_Phase, Callable[[ThinkTags, str, int], int]]] = {
        _Phase.PREFILLED: _prefilled,
        _Phase.TAG_LINE: _tag_line,
        _Phase.TAG_LINES: _tag_lines,
        _Phase.THOUGHT: _thought,
        _Phase.BEGINNING: _beginning,
        _Phase.REST: _rest,
    }


def _partial_closer(text: str, at: int) -> int:
    """Where at the end of `text` a closer begins that is not all there."""
    start = text.rfind("<", max(at, len(text) - len(CLOSER) + 1))
    return start if start >= 0 and CLOSER.startswith(text[start:]) else len(text)


def _without_breaks(text: str, at: int, end: int) -> int:
    least = max(at, end - MAX_BREAKS)
    while end > least and text[end - 1] in "\r\n":
        end -= 1
    return end
