"""Lines of a file that hold a text, and whether a file is text at all."""

from __future__ import annotations

from collections.abc import Iterator

from pizzabot_hookspecs import InvalidRequest
from pizzabot_hookspecs.files import TextMatch

MAX_LINE = 1_000
"""Characters shown of a line that was found."""
MAX_SOUGHT = 1_000
"""Characters of a text that is looked for."""


def checked_text(text: str) -> bytes:
    """What to look for. Raises `InvalidRequest` `invalid_text`: empty, too long, several lines, not Unicode."""
    problem = None
    if not 0 < len(text) <= MAX_SOUGHT:
        problem = f"has {len(text)} characters; 1 to {MAX_SOUGHT} can be looked for"
    elif "\n" in text:
        problem = "has several lines; look for one of them"
    try:
        sought = text.encode()
    except UnicodeEncodeError:
        problem = "is not Unicode text"
    if problem is not None:
        raise InvalidRequest("invalid_text", f"the text to look for {problem}", fields={"text": problem})
    return sought


def is_text(content: bytes) -> bool:
    """UTF-8 without NUL."""
    if b"\0" in content:
        return False
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def matching_lines(path: str, content: bytes, sought: bytes) -> Iterator[TextMatch]:
    """Each line that holds `sought`, once. None of a file that is not text."""
    at = content.find(sought)
    if at < 0 or not is_text(content):
        return
    line, counted = 1, 0
    while at >= 0:
        start = content.rfind(b"\n", 0, at) + 1
        end = content.find(b"\n", at)
        end = len(content) if end < 0 else end
        line += content.count(b"\n", counted, start)
        counted = start
        yield TextMatch(path=path, line=line, text=_cut(content[start:end]))
        at = content.find(sought, end)


def _cut(line: bytes) -> str:
    # No character has more than 4 bytes; a megabyte of one line need not be decoded for its first 1,000.
    return line[: MAX_LINE * 4].decode(errors="ignore").removesuffix("\r")[:MAX_LINE]
