"""Kind `skill_sources`: where SKILL.md bundles come from. All act; a skill of the person's own wins over a shipped one.

A source returns raw files; the host parses, checks and runs them (one frontmatter parser for everybody).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from pizzabot_hookspecs.offers import Offer, hookspec

SKILL_FILE = "SKILL.md"


class Origin(StrEnum):
    """Who a skill or an MCP server is from; it decides who wins and who may change it (spec/04 §2)."""

    BUILTIN = "builtin"
    PLUGIN = "plugin"
    USER = "user"


@dataclass(frozen=True, kw_only=True, slots=True)
class RawSkill:
    """One bundle as found: `files` maps a path inside the bundle (`SKILL.md`, `references/a.md`) to its bytes.

    `fault` says why it cannot be read (a link, too large); it is listed with it and not used. `plugin` names the
    plugin that brings it, for origin `plugin`.
    """

    id: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    origin: Origin = Origin.PLUGIN
    plugin: str | None = None
    fault: str | None = None


class SkillSource(Protocol):
    """May also be a `WatchesSkills` and a `KeepsSkills`."""

    async def skills(self) -> Sequence[RawSkill]:
        """Every bundle the source has now. One that cannot be read has a `fault`."""
        ...


@runtime_checkable
class WatchesSkills(Protocol):
    """A capability of a `SkillSource`: tell when what `skills` returns may be another answer."""

    def changes(self) -> AsyncIterator[None]:
        """An item for each burst of changes, soon after it; goes on until it is closed."""
        ...


@runtime_checkable
class KeepsSkills(Protocol):
    """A capability of a `SkillSource`: keep the person's own skills. The host has checked ids, paths and sizes."""

    async def put(self, skill_id: str, files: Mapping[str, bytes], /, *, new: bool) -> None:
        """The bundle is exactly these files afterwards, or unchanged. `new` raises `Conflict` `already_exists`."""
        ...

    async def remove(self, skill_id: str, /) -> bool:
        """Whether there was one."""
        ...


@hookspec
def pizzabot_skill_sources() -> list[Offer[SkillSource]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the sources this plugin has::

    @hookimpl
    def pizzabot_skill_sources() -> list[Offer[SkillSource]]:
        return [Offer(name="acme", summary="skills of the Acme handbook", create=make_source)]
    """
