"""A source of skills in Python: each chapter of a Markdown file that a team keeps is a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.skill_sources import SkillSource


@hookimpl
def pizzabot_skill_sources() -> list[Offer[SkillSource]]:
    from pizzabot_handbook.source import HandbookSettings, create

    return [Offer(name="handbook", summary="chapters of a handbook", create=create, settings=HandbookSettings)]
