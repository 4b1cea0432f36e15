"""Plugin `shipped_skills`: the skills that come with pizzabot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.skill_sources import SkillSource


@hookimpl
def pizzabot_skill_sources() -> list[Offer[SkillSource]]:
    from pizzabot_builtin_plugins.shipped_skills.source import create

    return [Offer(name="shipped", summary="the skills that come with pizzabot", create=create)]
