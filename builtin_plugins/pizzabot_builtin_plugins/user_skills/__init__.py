"""Plugin `user_skills`: the person's own skills, folders in the data root that are watched and written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.skill_sources import SkillSource


@hookimpl
def pizzabot_skill_sources() -> list[Offer[SkillSource]]:
    from pizzabot_builtin_plugins.user_skills.source import create

    return [Offer(name="user", summary="your own skills, in the folder skills of the data root", create=create)]
