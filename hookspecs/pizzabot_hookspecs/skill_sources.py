"""Kind `skill_sources`: where SKILL.md bundles come from. All act, in the order of `[skills] use`.

A source returns raw files; the host parses, checks and runs them (one frontmatter parser for everybody).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pizzabot_hookspecs.offers import Offer, hookspec


@dataclass(frozen=True, kw_only=True, slots=True)
class RawSkill:
    """One bundle as found: `files` maps a path inside the bundle (`SKILL.md`, `references/a.md`) to its bytes."""

    id: str
    files: Mapping[str, bytes]


class SkillSource(Protocol):
    async def skills(self) -> Sequence[RawSkill]:
        """Every bundle the source has now. A bundle that cannot be read is left out and logged by its id."""
        ...


@hookspec
def pizzabot_skill_sources() -> list[Offer[SkillSource]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the sources this plugin has."""
