"""Which skills declare a tool of a server, out of the catalogue as it is now."""

from __future__ import annotations

from collections.abc import Sequence

from pizzabot.host.mcp.use_case import Dependent, Dependents
from pizzabot.host.skills.assembly import SkillParts


def dependents_of(skills: SkillParts) -> Dependents:
    def dependents(server_id: str) -> Sequence[Dependent]:
        return [
            Dependent(
                id=skill.id,
                name=skill.name,
                source=skill.origin.value,
                plugin=skill.plugin,
                enabled=skills.enablement.enabled(skill),
            )
            for skill in skills.live.catalogue.skills.values()
            if server_id in skill.servers
        ]

    return dependents
