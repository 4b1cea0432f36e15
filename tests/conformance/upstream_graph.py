"""A deep agent that does on demand what the wire tells of; the events are LangGraph's own, nothing of ours between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from deepagents import create_deep_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core._api import suppress_langchain_beta_warning
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.stream import StreamTransformer
from langgraph.stream.transformers import CheckpointsTransformer, CustomTransformer
from langgraph.types import Command, interrupt

from pizzabot.testing.scripted_model import Reply, ScriptedModel

CONFIG: Any = {"configurable": {"thread_id": "thread-1"}}


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


@tool
def break_down() -> str:
    """Fail."""
    raise RuntimeError("broken")


@tool
def write_custom(text: str) -> str:
    """Write to the custom channel."""
    get_stream_writer()({"said": text})
    return "written"


class Notice(AgentMiddleware[Any, Any, Any]):
    """A node that returns a ready-made answer, as call limiters do."""

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        said = next(message for message in state["messages"] if isinstance(message, HumanMessage))
        return {"messages": [AIMessage("NOTICE: limit reached")]} if "notice" in said.text else None


class Tasks(StreamTransformer):
    """Keeps what the `tasks` mode tells, which the built-in transformers do not pass on."""

    required_stream_modes: ClassVar[tuple[str, ...]] = ("tasks",)

    def __init__(self, scope: tuple[str, ...] = (), *, seen: list[Any] | None = None) -> None:
        super().__init__(scope)
        self._seen = seen

    def init(self) -> dict[str, Any]:
        return {}

    def process(self, event: Any) -> bool:
        if event["method"] == "tasks" and self._seen is not None:
            self._seen.append(event["params"])
        return True


def call(name: str, call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "id": call_id, "args": args, "type": "tool_call"}


CALLS = {
    "sub: add": call("add", "call-sub", a=2, b=3),
    "sub: ask": call("ask_user", "call-sub-ask", question="colour?"),
    "add": call("add", "call-add", a=20, b=22),
    "add wrongly": call("add", "call-wrong", a="twenty"),
    "unknown": call("nothing", "call-unknown"),
    "break": call("break_down", "call-break"),
    "custom": call("write_custom", "call-custom", text="half done"),
    "deploy": call("deploy", "call-deploy", env="prod"),
    "delegate": call("task", "call-task", description="sub: add", subagent_type="worker"),
    "delegate a question": call("task", "call-task", description="sub: ask", subagent_type="worker"),
}


def script(messages: Sequence[BaseMessage]) -> Reply:
    at = max(index for index, message in enumerate(messages) if isinstance(message, HumanMessage))
    said, results = messages[at].text, [m for m in messages[at:] if isinstance(m, ToolMessage)]
    if said == "fail":
        return Reply("I am b", error=RuntimeError("the model is broken"))
    if results:
        return Reply(f"the tool said {results[-1].text}")
    return Reply(f"{said}? Let me see. ", tool_calls=[CALLS[said]]) if said in CALLS else Reply(f"You said {said}")


def make_graph() -> Any:
    return create_deep_agent(
        ScriptedModel(script=script),
        tools=[add, deploy, ask_user, break_down, write_custom],
        interrupt_on={"deploy": True},
        subagents=[{"name": "worker", "description": "works", "system_prompt": "You work.", "tools": [add, ask_user]}],
        middleware=[Notice()],
        checkpointer=InMemorySaver(),
    )


async def opened(graph: Any, given: str | Command[Any], tasks: list[Any] | None = None) -> Any:
    """The run, with the transformers whose channels the wire needs (wire.md §9); `tasks` collects that mode's."""
    message = {"messages": [HumanMessage(given, id="u1")]} if isinstance(given, str) else given
    with suppress_langchain_beta_warning():
        return await graph.astream_events(
            message,
            CONFIG,
            version="v3",
            durability="sync",
            transformers=[
                CheckpointsTransformer,
                CustomTransformer,
                lambda scope: Tasks(scope, seen=tasks if scope == () else None),
            ],
        )


async def events(given: str | Command[Any], graph: Any = None, *, tasks: list[Any] | None = None) -> list[Any]:
    """Every event of a turn, in order."""
    run = await opened(graph or make_graph(), given, tasks)
    return [event async for event in run]
