"""Skills put together for a host: the live catalogue, the switches, the use cases, and the sources of plugins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pizzabot.host.ground import Ground
from pizzabot.host.plugins.making import PluginMaker
from pizzabot.host.skills.enablement import Enablement
from pizzabot.host.skills.live import LiveSkills
from pizzabot.host.skills.servers import NoServers, Servers
from pizzabot.host.skills.use_case import HostSkills
from pizzabot_hookspecs.agent_runtimes import ChosenModel
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.storage_backends import SettingStorage

KIND = "skill_sources"


@dataclass(frozen=True, kw_only=True)
class SkillParts:
    """`live` gives the runtime its roster, `use_case` is what transports call."""

    live: LiveSkills
    enablement: Enablement
    use_case: HostSkills

    async def open(self, ground: Ground, maker: PluginMaker) -> None:
        """Make the sources and begin to read them. Raises for a name in `[skills] use` that nothing offers."""
        await self.enablement.load()
        first = [ground.plugins.choose(KIND, use).offer.name for use in ground.settings.skills.use]
        made = dict(await maker.acting(KIND, section_name="skills"))
        for name in (*first, *sorted(made.keys() - set(first))):
            if name in made:
                self.live.add(name, made[name])
        self.live.start()

    async def use_tools(self, tools: Sequence[AgentTool]) -> None:
        """The orchestrator's own; when it returns the roster has them, and every skill."""
        await self.live.use_tools(tools)

    async def close(self) -> None:
        await self.live.close()


def make_skills(
    ground: Ground,
    storage: SettingStorage,
    *,
    model: Callable[[], Awaitable[ChosenModel]],
    servers: Servers | None = None,
) -> SkillParts:
    """`model` resolves the model that drafts skills; without `servers` there are no MCP tools."""
    enablement = Enablement(storage)
    live = LiveSkills(
        servers=servers or NoServers(), enablement=enablement, logger=ground.logger("skills"), redact=ground.redact
    )
    return SkillParts(
        live=live,
        enablement=enablement,
        use_case=HostSkills(live=live, enablement=enablement, model=model, redact=ground.redact),
    )
