"""The repository's pages: where they are, their tables, their code blocks and their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
ROOMS = ("pizzabot", "hookspecs", "builtin_plugins")

_FENCE = re.compile(r"^([ ]*)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """Every page a reader may open: README, docs, changes, skills, examples."""
    found = [*REPOSITORY.glob("*.md")]
    for folder in ("docs", "changes", "skills", "examples"):
        found += (REPOSITORY / folder).rglob("*.md")
    return sorted(found)


def read(page: str | Path) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Block:
    language: str
    text: str


def blocks(page: str | Path, *languages: str) -> list[Block]:
    """The fenced blocks of a page, those of `languages` where any are named."""
    found = [Block(match[2], match[3]) for match in _FENCE.finditer(read(page))]
    return [block for block in found if not languages or block.language in languages]


def prose(page: str | Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", read(page))


def anchors(page: Path) -> set[str]:
    """The ids that headings get: lower case, without punctuation, spaces as hyphens."""
    return {
        re.sub(r"[^\w\- ]", "", heading.replace("`", "").strip().lower()).replace(" ", "-")
        for heading in _HEADING.findall(prose(page))
    }


def sections(page: str | Path) -> dict[str, str]:
    """Text by heading, the deepest ones; what comes before the first heading is left out."""
    parts = _HEADING.split(read(page))[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every table row but the header's and the rule's."""
    lines = text.splitlines()
    for above, line in zip(["", *lines], lines, strict=False):
        if line.startswith("|") and not set(line) <= set("|-: ") and above.startswith("|"):
            yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def code_words(cell: str) -> list[str]:
    """What stands in backticks."""
    return re.findall(r"`([^`]+)`", cell)


@cache
def source_files() -> tuple[Path, ...]:
    """The modules that are shipped."""
    return tuple(path for room in ROOMS for path in sorted((REPOSITORY / room).rglob("*.py")))


@cache
def source() -> str:
    """All shipped code as one text."""
    return "\n".join(path.read_text(encoding="utf-8") for path in source_files())
