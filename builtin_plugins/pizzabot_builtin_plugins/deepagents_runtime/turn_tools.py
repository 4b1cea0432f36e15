"""What one turn hands to its agents, the orchestrator and every subagent alike: the graph's run context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pizzabot_builtin_plugins.deepagents_runtime.decisions import REFUSING, Decision
from pizzabot_hookspecs import PizzabotError
from pizzabot_hookspecs.agent_runtimes import AgentSettings
from pizzabot_hookspecs.files import TurnFiles
from pizzabot_hookspecs.interrupts import IntentLog
from pizzabot_hookspecs.wire import Namespace

if TYPE_CHECKING:
    from langchain_core.messages import ToolMessage

    from pizzabot_builtin_plugins.deepagents_runtime.intents import IntentLedger


@dataclass(kw_only=True)
class TurnTools:
    """One per turn.

    `skip`      calls that do not run, with the text that stands for their result
    `decided`   what this turn's answers say, by the call's own namespace and id
    `begun`     calls that were handed to their tool: a stop cannot say that they had no effect
    `results`   results of the orchestrator's calls, as soon as there are any: what a stop keeps
    `stopping`  from now on no tool begins
    `failure`   why the turn must end whatever the tools make of it: an intent could not be stored
    `files`     the areas of files that the turn has
    `settings`  what the person set for the agent
    `prompt`    the orchestrator's system prompt in this turn
    `vision`    whether the model sees images; None where that is not known
    `attached`  content blocks of attachments that were read in this turn
    `at_end`    called once the turn is over, however it ended: what its agents hold is let go
    """

    thread_id: str
    log: IntentLog
    ledger: IntentLedger
    skip: Mapping[str, str] = field(default_factory=dict)
    decided: Mapping[tuple[Namespace, str], Decision] = field(default_factory=dict)
    begun: set[str] = field(default_factory=set)
    results: dict[str, ToolMessage] = field(default_factory=dict)
    stopping: bool = False
    failure: BaseException | None = None
    files: TurnFiles = field(default_factory=TurnFiles)
    settings: AgentSettings = field(default_factory=AgentSettings)
    prompt: str = ""
    vision: bool | None = None
    attached: dict[str, dict[str, Any]] = field(default_factory=dict)
    at_end: list[Callable[[], None]] = field(default_factory=list)
    _open: set[str] = field(default_factory=set)

    @property
    def sees_images(self) -> bool:
        """Whether the model is known to see images."""
        return self.vision is True

    @property
    def may_see_images(self) -> bool:
        """Whether the model is not known to be blind: what a person attached is worth the try."""
        return self.vision is not False

    def refused(self, namespace: Namespace, call_id: str) -> bool:
        """Whether a person decided in this turn that the call must not run."""
        decision = self.decided.get((namespace, call_id))
        return decision is not None and decision["type"] in REFUSING

    async def announce(self, call_id: str, *, tool: str, namespace: Namespace) -> None:
        """Store the intent of a call. What that raises ends the turn: the tool must not run."""
        self._open.add(call_id)  # before it is stored: a stop meanwhile must close it, stored or not
        self.ledger.add(self, call_id)
        try:
            await self.log.open(call_id, tool=tool, namespace=namespace)
        except Exception as error:
            self.failure = error
            raise

    async def close(self, call_id: str) -> None:
        """The call has a durable result, or is known not to have happened."""
        self.ledger.remove(self, call_id)
        self._open.discard(call_id)
        await self.log.close(call_id)

    async def close_all(self) -> None:
        """After a stop was settled: every call has its result in the checkpoint now."""
        for call_id in sorted(self._open):
            with suppress(PizzabotError):  # the run was lost or ends now: nobody asks for its intents any more
                await self.close(call_id)

    def leave(self) -> None:
        """The turn is over. What is still open stays in the log: nobody knows what became of it."""
        self.release()
        for call_id in self._open:
            self.ledger.remove(self, call_id)

    def release(self) -> None:
        """Let go of what the turn's agents hold. Safe to call twice."""
        while self.at_end:
            self.at_end.pop()()


def turn_in(context: object) -> TurnTools | None:
    """The turn whose graph runs with this context; None where somebody else runs the graph, with no turn of ours."""
    return context if isinstance(context, TurnTools) else None
