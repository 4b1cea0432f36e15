"""Built-in plugin `deepagents-runtime`: answers turns with DeepAgents on LangGraph. The one place that builds graphs.

Light modules, imported at any time: `settings`, `loading`, `prompts`, `interrupts`, `decisions`, `open_messages`,
`tool_sets`, `turn_tools`, `graphs`, `run`, `runtime`. The rest import LangGraph at their top and are therefore only
imported behind `runtime.prepare`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pizzabot_hookspecs import Context, Offer, hookimpl

if TYPE_CHECKING:
    from pizzabot_hookspecs.agent_runtimes import AgentRuntime


def _create(context: Context, settings: Any) -> AgentRuntime:
    from pizzabot_builtin_plugins.deepagents_runtime.runtime import DeepAgentsRuntime

    return DeepAgentsRuntime(settings, logger=context.logger, redact=context.redact)


@hookimpl
def pizzabot_agent_runtimes() -> list[Offer[AgentRuntime]]:
    from pizzabot_builtin_plugins.deepagents_runtime.settings import RuntimeSettings

    return [
        Offer(
            name="deepagents",
            summary="DeepAgents on LangGraph, with checkpoints in the host's storage",
            create=_create,
            settings=RuntimeSettings,
        )
    ]
