"""Kind `agent_middleware`: what stands around an agent's model calls and tool calls. Those in `[agent_middleware] use`
act, in that order; each is nearer to the model than what the runtime itself has there.

A turn can be answered before any model call (return a `ModelResponse`), a request changed, a call of a tool watched.
A hook between the steps (`before_model`, `after_agent`, …) works too and costs one more checkpoint each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pizzabot_hookspecs.offers import Offer, hookspec

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware


class AgentMiddlewareSource(Protocol):
    def middleware(self, agent: str | None, /) -> Sequence[AgentMiddleware[Any, Any, Any]]:
        """For one agent: None is the orchestrator, else a subagent by its name. Called in a worker thread, whenever the
        agent's graph is built; state between turns belongs into the graph's state, not into these objects."""
        ...


@hookspec
def pizzabot_agent_middleware() -> list[Offer[AgentMiddlewareSource]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the sources this plugin has; `[agent_middleware] use` names those
    that act::

    @hookimpl
    def pizzabot_agent_middleware() -> list[Offer[AgentMiddlewareSource]]:
        return [Offer(name="quota", summary="ends turns over a budget", create=make_quota)]
    """
