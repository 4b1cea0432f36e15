"""Names that one eval declares and a later one again, as models do: `const` and `let` at the top become `var`.

JavaScript refuses to declare a `const` of the global scope twice. Only the outermost declarations are changed, in
place, so that lines and columns stay; where the brackets of the code do not add up, nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
      | (?P<word>[^\W\d][\w$]*|\$[\w$]*)
      | (?P<number>\d[\w.]*)
      | (?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_TEMPLATE = re.compile(r"(?:\\.|(?!\$\{)[^`\\])*(?P<end>`|\$\{)", re.DOTALL)
_PATTERN = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*")
_LET_DECLARES = re.compile(r"\s*[\[{]|\s+[^\W\d]|\s+\$")

_QUOTES = ("'", '"')
_CLOSES = {")": "(", "]": "[", "}": "{"}
_BEFORE_A_PATTERN = frozenset(
    {"return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "else", "await"}
)
_ENDS_A_VALUE = frozenset({")", "]", "}"})


class _Unclear(Exception):
    """The code cannot be followed; it is a matter for the JavaScript engine."""


def redeclarable(code: str) -> str:
    """`code` with its outermost `const` and `let` as `var`, of the same length."""
    try:
        places = list(_outermost(code))
    except _Unclear:
        return code
    pieces, at = [], 0
    for start, word in places:
        pieces += [code[at:start], f"{'var':<{len(word)}}"]
        at = start + len(word)
    return "".join([*pieces, code[at:]])


def _outermost(code: str) -> Iterator[tuple[int, str]]:
    """Where the words are, in order. `stack` holds the open brackets, a backquote for the `${` of a template."""
    stack: list[str] = []
    before, at = "", 0
    while at < len(code):
        if (end := _pattern_end(code, at, before)) is not None:
            before, at = ")", end
            continue
        token = _TOKEN.match(code, at)
        if token is None or token["mark"] in _QUOTES or (token["mark"] == "/" and code.startswith("/*", at)):
            raise _Unclear  # something is never closed
        text, at = token.group(), token.end()
        if token.lastgroup == "space":
            continue
        if token.lastgroup == "mark":
            at = _after_mark(text, code, at, stack)
        elif not stack and before != "." and _declares(text, code, at):
            yield token.start(), text
        before = text if token.lastgroup != "string" else ")"
    if stack:
        raise _Unclear


def _pattern_end(code: str, at: int, before: str) -> int | None:
    """Where the regular expression that begins here ends, None where none does."""
    if code[at] != "/" or code.startswith(("//", "/*"), at) or not _may_be_pattern(before):
        return None
    pattern = _PATTERN.match(code, at)
    if pattern is None:
        raise _Unclear
    return pattern.end()


def _after_mark(mark: str, code: str, at: int, stack: list[str]) -> int:
    """Keep account of brackets. Where to go on: behind the text of a template, for a backquote."""
    if mark == "`":
        return _after_template(code, at, stack)
    if mark in "([{":
        stack.append(mark)
    elif mark in _CLOSES:
        opened = stack.pop() if stack else ""
        if opened == "`" and mark == "}":
            return _after_template(code, at, stack)
        if opened != _CLOSES[mark]:
            raise _Unclear
    return at


def _after_template(code: str, at: int, stack: list[str]) -> int:
    piece = _TEMPLATE.match(code, at)
    if piece is None:
        raise _Unclear
    if piece["end"] == "${":
        stack.append("`")
    return piece.end()


def _declares(word: str, code: str, at: int) -> bool:
    return word == "const" or (word == "let" and _LET_DECLARES.match(code, at) is not None)


def _may_be_pattern(before: str) -> bool:
    """Whether a slash after this token begins a regular expression; else it divides."""
    if not before or before in _BEFORE_A_PATTERN:
        return True
    return before not in _ENDS_A_VALUE and before != "`" and not (before[-1].isalnum() or before[-1] in "_$")
