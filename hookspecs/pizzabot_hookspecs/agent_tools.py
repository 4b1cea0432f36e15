"""Kind `agent_tools`: tools that the orchestrator may call. All act; each says what a person must allow.

Permissions fail closed: a decision kind that does not exist, or an empty set for a tool that needs approval, makes the
tool unavailable with the reason, never free to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from pizzabot_hookspecs.offers import Offer, hookspec

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

DECISIONS = frozenset({"approve", "edit", "reject", "respond"})
"""The kinds of decision that an approval may allow."""


@dataclass(frozen=True, kw_only=True)
class AgentTool:
    """A tool and its rules.

    `approval`    None: it runs unasked. A set: a person decides each call, in one of these ways (see `DECISIONS`)
    `repeatable`  running the same call twice does no harm (it only reads). Everything else is announced by an intent
                  before it runs, and after a crash a person is asked what became of it (durable-runs rule 7)
    """

    tool: BaseTool
    approval: frozenset[str] | None = None
    repeatable: bool = False


class AgentToolSource(Protocol):
    async def tools(self) -> list[AgentTool]:
        """The tools, made once. Names are unique over all sources; a second one of a name is left out and reported."""
        ...


@hookspec
def pizzabot_agent_tools() -> list[Offer[AgentToolSource]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the sources of tools this plugin has::

    @hookimpl
    def pizzabot_agent_tools() -> list[Offer[AgentToolSource]]:
        return [Offer(name="mail", summary="sends mail, after asking", create=make_mail_tools, settings=MailSettings)]
    """
