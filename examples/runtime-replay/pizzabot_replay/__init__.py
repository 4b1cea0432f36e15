"""An agent runtime without a graph: it asks the model, writes the answer down, and can play it again without asking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pizzabot_hookspecs import Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.agent_runtimes import AgentRuntime


@hookimpl
def pizzabot_agent_runtimes() -> list[Offer[AgentRuntime]]:
    from pizzabot_replay.runtime import create
    from pizzabot_replay.settings import ReplaySettings

    return [Offer(name="replay", summary="records answers and replays them", create=create, settings=ReplaySettings)]
