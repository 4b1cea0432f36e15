"""The bundle in the folder `bundle`, for whoever installs it with pip. As a folder or a ZIP it needs no Python here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl
from pizzabot_hookspecs.support.packaged_bundles import bundle_offer

if TYPE_CHECKING:
    from pizzabot_hookspecs.skill_sources import SkillSource


@hookimpl
def pizzabot_skill_sources() -> list[Offer[SkillSource]]:
    return [bundle_offer("weather", Path(__file__).with_name("bundle"))]
