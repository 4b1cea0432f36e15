"""The plugin of the JavaScript clients' tests, as a third party would write it: three tools, and a clerk who has them.

add     harmless; adds
mail    a person decides each call
boom    fails
`team`  the built-in runtime with a subagent `clerk`
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime
from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings
from pizzabot_hookspecs import Context, Offer, hookimpl
from pizzabot_hookspecs.agent_runtimes import RuntimeServices, SubagentSpec
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool


class WireTools:
    def __init__(self, context: Context, _settings: object) -> None:
        self._context = context

    async def tools(self) -> list[AgentTool]:
        return made_tools()


def made_tools() -> list[AgentTool]:
    from langchain_core.tools import tool

    @tool
    async def add(a: int, b: int) -> str:
        """Add two numbers."""
        return f"{a} and {b} make {a + b}"

    @tool
    async def mail(to: str) -> str:
        """Send a mail, once a person has allowed it."""
        return f"mail sent to {to}"

    @tool
    async def boom(why: str) -> str:
        """Fail."""
        raise RuntimeError(f"boom: {why}")

    return [
        AgentTool(tool=add, repeatable=True),
        AgentTool(tool=mail, approval=DECISIONS, repeatable=True),
        AgentTool(tool=boom, repeatable=True),
    ]


class Team(DeepAgentsRuntime):
    """The built-in runtime with somebody to delegate to."""

    def __init__(self, context: Context, settings: RuntimeSettings) -> None:
        super().__init__(settings, logger=context.logger, redact=context.redact)

    async def prepare(self, services: RuntimeServices, /) -> None:
        given = services.roster()
        clerk = SubagentSpec(
            name="clerk", description="does as told", prompt="You are a clerk.", tools=tuple(given.tools)
        )
        roster = replace(given, fingerprint="with a clerk", subagents=(clerk,))
        await super().prepare(replace(services, roster=lambda: roster))


@hookimpl
def pizzabot_agent_tools() -> list[Offer[Any]]:
    return [Offer(name="wire", summary="tools to watch on the wire", create=WireTools)]


@hookimpl
def pizzabot_agent_runtimes() -> list[Offer[Any]]:
    return [Offer(name="team", summary="with a subagent", create=Team, settings=RuntimeSettings)]
