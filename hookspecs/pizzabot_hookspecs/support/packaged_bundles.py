"""`bundle_offer`: a folder in the Claude Code plugin format, shipped by a Python plugin as package data, as an offer.

@hookimpl
def pizzabot_skill_sources() -> list[Offer[SkillSource]]:
    return [bundle_offer("acme", Path(__file__).with_name("bundle"))]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pizzabot_hookspecs.offers import Context, Offer
from pizzabot_hookspecs.skill_sources import RawSkill, SkillSource


class PackagedBundle:
    """A `BringsBundle`. Its skills and servers are listed as the bundle's: of its own it has none."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle

    async def skills(self) -> Sequence[RawSkill]:
        return ()


class MakesBundle:
    """The `create` of such an offer: `bundle` is known before anything is made."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle

    def __call__(self, _context: Context, _settings: object) -> SkillSource:
        return PackagedBundle(self.bundle)


def bundle_offer(name: str, folder: Path, *, summary: str = "") -> Offer[SkillSource]:
    """`folder` has `.claude-plugin/plugin.json` in it. It is read where it is, and deleted with its package only."""
    return Offer(
        name=name,
        summary=summary or f"the bundle in {folder.name}",
        create=MakesBundle(folder),
    )
