"""A real deep agent with a tool, a gated tool, a tool that asks and a subagent, and the events of its turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from deepagents import create_deep_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime.normaliser import Normaliser
from pizzabot_builtin_plugins.deepagents_runtime.streaming import open_stream
from pizzabot_hookspecs.wire import Frame


@tool
def add(a: int, b: int) -> str:
    """Add."""
    return str(a + b)


@tool
def deploy(env: str) -> str:
    """Deploy; needs an approval."""
    return f"deployed {env}"


@tool
def ask_user(question: str) -> str:
    """Ask the person."""
    return f"the person said {interrupt({'question': question})}"


class Notice(AgentMiddleware[Any, Any, Any]):
    """A node that returns a ready-made answer, as call limiters do."""

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        said = next(message for message in state["messages"] if isinstance(message, HumanMessage))
        return {"messages": [AIMessage("NOTICE: limit reached")]} if "notice" in said.text else None


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "id": call_id, "args": args, "type": "tool_call"}


def script(messages: Sequence[BaseMessage]) -> Reply:
    """What the model does follows from the last thing a person (or the orchestrator) said and whether a tool ran."""
    at = max(index for index, message in enumerate(messages) if isinstance(message, HumanMessage))
    said, results = messages[at].text, [m for m in messages[at:] if isinstance(m, ToolMessage)]
    if results:
        return Reply(f"the tool said {results[-1].text}")
    calls = {
        "sub: add": [call("add", "call-sub", a=2, b=3)],
        "sub: ask": [call("ask_user", "call-sub-ask", question="colour?")],
        "add": [call("add", "call-add", a=20, b=22)],
        "deploy": [call("deploy", "call-deploy", env="prod")],
        "delegate": [call("task", "call-task", description="sub: add", subagent_type="worker")],
        "delegate a question": [call("task", "call-task", description="sub: ask", subagent_type="worker")],
    }
    return Reply(f"{said}? Let me see. ", tool_calls=calls[said]) if said in calls else Reply(f"You said {said}")


@dataclass
class DeepGraph:
    graph: Any = field(
        default_factory=lambda: create_deep_agent(
            ScriptedModel(script=script),
            tools=[add, deploy, ask_user],
            interrupt_on={"deploy": True},
            subagents=[
                {"name": "worker", "description": "works", "system_prompt": "You work.", "tools": [add, ask_user]}
            ],
            middleware=[Notice()],
            checkpointer=InMemorySaver(),
        )
    )

    async def events(self, said: str | Command[Any]) -> list[Any]:
        """LangGraph's own events of a turn."""
        stream, _ = await self._open(said)
        return [event async for event in stream]

    async def frames(self, said: str | Command[Any]) -> list[Frame]:
        """The frames that the normaliser makes of them."""
        stream, index = await self._open(said)
        normaliser = Normaliser(index.by_call)
        frames = [frame async for event in stream for frame in normaliser.feed(event)]
        return [*frames, *normaliser.close()]

    async def resume(self, answer: Any) -> list[Frame]:
        pending = await self.graph.aget_state(self.config)
        return await self.frames(Command(resume={pending.interrupts[0].id: answer}))

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": "thread-1"}}

    async def _open(self, said: str | Command[Any]) -> Any:
        given = {"messages": [HumanMessage(said, id="u1")]} if isinstance(said, str) else said
        return await open_stream(self.graph, given, self.config)
