# ruff: noqa: TID253 - imported by tests of tools, never by the host
"""Tools whose runs are written down, and turns on a runtime that has them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from langchain_core.tools import tool
from langgraph.types import interrupt

from pizzabot.testing.runtime_contract.kit import RecordedIntents, services_of
from pizzabot_hookspecs.agent_runtimes import RuntimeServices, SubagentSpec
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool
from pizzabot_hookspecs.storage_backends import GraphStorage


class Workbench:
    """`journal` has what happened, in order: runs of tools, and the opening and closing of their `intents`.

    look        reads: repeatable and unasked          ask      asks the person a question
    note        writes, unasked                        fail     raises
    send        writes, after an approval              hold     waits for `release`; `held` is set when it does
    post        like send                              wait     like hold, and blocks its thread
    """

    def __init__(self) -> None:
        self.journal: list[str] = []
        self.intents = RecordedIntents(self.journal)
        self.held = asyncio.Event()
        self.release = asyncio.Event()
        self.release_thread = threading.Event()
        self.loop = asyncio.get_running_loop()
        self.tools = [*self._plain(), *self._gated(), *self._holding()]

    @property
    def runs(self) -> list[str]:
        """What tools did, without the intents."""
        return [entry for entry in self.journal if entry.partition(" ")[0] not in ("open", "close")]

    def services(
        self, storage: GraphStorage, *, more: Sequence[AgentTool] = (), subagent: bool = False
    ) -> RuntimeServices:
        """Everything on the bench for the orchestrator, or for a subagent `worker` and nothing for the orchestrator."""
        tools = (*self.tools, *more)
        if not subagent:
            return services_of(storage, tools=tools)
        worker = SubagentSpec(name="worker", description="does the work", prompt="You are the worker.", tools=tools)
        return services_of(storage, subagents=(worker,))

    def _plain(self) -> list[AgentTool]:
        @tool
        async def look(what: str) -> str:
            """Look at something."""
            self.journal.append(f"look {what}")
            return f"saw {what}"

        @tool
        async def note(text: str) -> str:
            """Write something down."""
            self.journal.append(f"note {text}")
            return f"noted {text}"

        @tool
        async def fail(reason: str) -> str:
            """Cannot be done."""
            self.journal.append(f"fail {reason}")
            raise ValueError(reason)

        @tool
        async def ask(question: str) -> str:
            """Ask the person."""
            answer = interrupt({"question": question, "answer_schema": {"type": "object"}})
            self.journal.append(f"ask {question}")
            return f"the person said {answer}"

        return [
            AgentTool(tool=look, repeatable=True),
            AgentTool(tool=note),
            AgentTool(tool=fail),
            AgentTool(tool=ask),
        ]

    def _gated(self) -> list[AgentTool]:
        @tool
        async def send(to: str) -> str:
            """Send a letter."""
            self.journal.append(f"send {to}")
            return f"sent to {to}"

        @tool
        async def post(to: str) -> str:
            """Post a letter."""
            self.journal.append(f"post {to}")
            return f"posted to {to}"

        return [AgentTool(tool=send, approval=DECISIONS), AgentTool(tool=post, approval=frozenset({"approve"}))]

    def _holding(self) -> list[AgentTool]:
        @tool
        async def hold(what: str) -> str:
            """Hold something until it is released."""
            self.journal.append(f"hold {what}")
            self.held.set()
            try:
                await self.release.wait()
                return f"held {what}"
            finally:
                await asyncio.sleep(0)  # leaving takes a moment, as ending a process does
                self.journal.append(f"left {what}")

        @tool
        def wait(what: str) -> str:
            """Wait in a thread."""
            self.journal.append(f"wait {what}")
            self.loop.call_soon_threadsafe(self.held.set)
            self.release_thread.wait(20)
            self.journal.append(f"waited {what}")
            return f"waited for {what}"

        return [AgentTool(tool=hold), AgentTool(tool=wait)]
