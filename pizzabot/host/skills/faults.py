"""`Fault`: what is wrong with a skill, and where. A blocking one makes the skill unavailable; the others are told."""

from __future__ import annotations

from dataclasses import dataclass

from pizzabot_hookspecs.skill_sources import SKILL_FILE

MAX_REASON = 300
"""Characters of a reason: a file can quote itself at any length."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One line for a person. `line` counts from 1 in `file`."""

    reason: str
    line: int | None = None
    file: str = SKILL_FILE
    blocking: bool = True

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file} line {self.line}"
        return f"{where}: {self.reason}"


class FrontmatterError(Exception):
    """Frontmatter that cannot be read, with its `Fault`."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.fault = Fault(reason=" ".join(reason.split())[:MAX_REASON], line=line)
