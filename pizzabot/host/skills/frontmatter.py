"""The one frontmatter parser: a SKILL.md's bytes to its fields with their lines, and its body.

Lenient where the meaning is plain (BOM, CRLF, blank lines before the fence, no newline after it, `description: Use
when: …` without quotes), a reported fault where it is not. The fields that grant or restrict are never repaired: a
skill whose frontmatter cannot be read is not used, rather than used without them (cases: R8, 42, 43).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pizzabot.host.skills.faults import FrontmatterError
from pizzabot.host.skills.yaml_values import Fields, quoted, read_mapping

MAX_SKILL_FILE_BYTES = 1024 * 1024
MAX_FRONTMATTER_CHARACTERS = 64 * 1024
"""An honest one has a few hundred."""

_FENCE = re.compile(r"---[ \t]*")
_TEXT_LINE = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):[ \t]+(\S.*?)[ \t]*")
_KEY_INSIDE = re.compile(r"\s+[\"']?[A-Za-z][A-Za-z0-9_-]*[\"']?\s*:(\s|$)")
_MORE_THAN_A_LIST = re.compile(r"\[[^\]]*\]\s*\S|\{[^}]*\}\s*\S")
"""`[beta] sorts mail` is text; `[beta` is a list that does not end."""
_STRUCTURED = frozenset({"tools", "mcp", "interrupton", "metadata", "hooks", "mcpservers", "permissionmode"})
"""Keys that are not text, or that grant or restrict: what is wrong there is said, never mended."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PROSE = frozenset({"name", "description"})


@dataclass(frozen=True, kw_only=True)
class Frontmatter:
    """`body` is what comes after the fence, with `\\n` line ends; `body_line` is where it begins in the file."""

    fields: Fields
    body: str
    body_line: int


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A SKILL.md cut at its fences, nothing read yet. `first_line` is where `frontmatter` begins."""

    frontmatter: str
    first_line: int
    body: str
    body_line: int


def read_frontmatter(content: bytes) -> Frontmatter:
    """Raises `FrontmatterError`, whose `fault` has the line."""
    parts = split(decoded(content))
    return Frontmatter(fields=_read_fields(parts), body=parts.body, body_line=parts.body_line)


def decoded(content: bytes) -> str:
    """The text, without a BOM and with `\\n` line ends. Raises `FrontmatterError`."""
    if len(content) > MAX_SKILL_FILE_BYTES:
        raise FrontmatterError(f"it has {len(content)} bytes; at most {MAX_SKILL_FILE_BYTES} are read")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise FrontmatterError("it is not UTF-8 text: save it as UTF-8", line) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split(text: str) -> Parts:
    """Cut at the fences. Raises `FrontmatterError` where there is none, or only the first."""
    lines = text.split("\n")
    start = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines) or not _FENCE.fullmatch(lines[start]):
        raise FrontmatterError(
            "it has no frontmatter: begin with a line `---`, then `description: …`, then `---`", start + 1
        )
    end = next((place for place in range(start + 1, len(lines)) if _FENCE.fullmatch(lines[place])), None)
    if end is None:
        raise FrontmatterError("its frontmatter does not end: write a line `---` after it", start + 1)
    frontmatter = "\n".join(lines[start + 1 : end])
    if len(frontmatter) > MAX_FRONTMATTER_CHARACTERS:
        raise FrontmatterError(f"its frontmatter is longer than {MAX_FRONTMATTER_CHARACTERS} characters", start + 1)
    return Parts(frontmatter=frontmatter, first_line=start + 2, body="\n".join(lines[end + 1 :]), body_line=end + 2)


def _read_fields(parts: Parts) -> Fields:
    try:
        return read_mapping(parts.frontmatter, first_line=parts.first_line)
    except FrontmatterError:
        mended = _quote_texts(parts.frontmatter)
        if mended == parts.frontmatter:
            raise
        try:
            return read_mapping(mended, first_line=parts.first_line)
        except FrontmatterError:
            pass
        raise


def _quote_texts(frontmatter: str) -> str:
    """`description: Use when: …` with the quotes that YAML wants; line numbers stay."""
    lines = frontmatter.split("\n")
    place = 0
    while place < len(lines):
        found = _TEXT_LINE.fullmatch(lines[place])
        after = place + 1
        while after < len(lines) and lines[after][:1] in (" ", "\t"):
            after += 1
        more = [line for line in lines[place + 1 : after] if line.strip()]
        if found and _is_text(found[1], found[2]) and not any(_KEY_INSIDE.match(line) for line in more):
            words = " ".join([found[2], *(line.strip() for line in more)])
            lines[place] = f"{found[1]}: {quoted(words)}"
            lines[place + 1 : after] = [""] * (after - place - 1)
        place = after
    return "\n".join(lines)


def _is_text(key: str, value: str) -> bool:
    """Whether the value of a top-level key can only be meant as text."""
    lowered = key.lower().replace("-", "").replace("_", "")
    if lowered in _STRUCTURED or value[0] in "\"'|>" or _CONTROL.search(value):
        return False
    if value[0] in "[{":
        return lowered in _PROSE and _MORE_THAN_A_LIST.match(value) is not None
    return lowered in _PROSE or value[0] not in "&*!"
