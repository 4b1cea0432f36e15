"""Real agents whose scripted model calls `eval`; how the loop, the memory and the threads fare meanwhile."""

from __future__ import annotations

import asyncio
import resource
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deepagents.backends import StateBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from deepagents.middleware.subagents import SubAgent, SubAgentMiddleware
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from pizzabot.testing.scripted_model import Reply, ScriptedModel
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import EVAL_SECONDS
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.image import load_image
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.middleware import CodeInterpreter, interpreter_middleware

SIX = ("ls", "read_file", "write_file", "edit_file", "glob", "grep")
MIB = 2**20

HELD_SECONDS = 5.0
"""Far beyond what any of these takes, on any machine; bench/sandbox.py looks more closely."""

BEATS = 3
"""Times that the loop came round while something else computed: one that waited for it would not come round at all."""


def run(scenario: Coroutine[Any, Any, None], *, seconds: float = 30) -> None:
    load_image(None)  # compiled once for all tests of a process; test_image.py looks at the compiling itself
    asyncio.run(asyncio.wait_for(scenario, seconds))


@dataclass
class Agent:
    graph: Any
    interpreter: CodeInterpreter
    model: ScriptedModel
    checkpoints: InMemorySaver

    async def say(self, *, thread: str = "t") -> list[ToolMessage]:
        """The results of the turn's tool calls."""
        state = await self.graph.ainvoke({"messages": [HumanMessage("go")]}, config(thread))
        last = max(at for at, message in enumerate(state["messages"]) if message.type == "human")
        return [message for message in state["messages"][last:] if isinstance(message, ToolMessage)]

    async def stream(self, *, thread: str = "t") -> None:
        """A turn whose model streams, so that the gates of its replies hold."""
        async for _ in self.graph.astream({"messages": [HumanMessage("go")]}, config(thread), stream_mode="messages"):
            pass

    async def results(self, thread: str) -> list[ToolMessage]:
        state = await self.graph.aget_state(config(thread))
        return [message for message in state.values["messages"] if isinstance(message, ToolMessage)]


def config(thread: str = "t") -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}}


def evaluates(code: str, *, call_id: str = "e") -> Reply:
    return Reply(tool_calls=[{"name": "eval", "args": {"code": code}, "id": call_id}])


def script(codes: Sequence[str]) -> Callable[[Sequence[Any]], Reply]:
    """The codes of a turn, one after another, then a word. The same again in the next turn."""

    def reply(messages: Sequence[Any]) -> Reply:
        last = max(at for at, message in enumerate(messages) if message.type == "human")
        done = sum(message.type == "tool" for message in messages[last:])
        return evaluates(codes[done], call_id=f"e{done}") if done < len(codes) else Reply("done")

    return reply


def agent(
    *codes: str,
    team: Callable[[Sequence[Any]], Reply] | None = None,
    team_tools: Sequence[BaseTool] = (),
    team_evals: bool = False,
    seconds: float = EVAL_SECONDS,
    replaced: Sequence[BaseTool] = (),
    page_tokens: int | None = 20_000,
    says: Callable[[Sequence[Any]], Reply] | None = None,
) -> Agent:
    """With `team` there is a subagent `helper` who answers as that says. `replaced` are other tools for some files'."""
    backend = StateBackend()
    files = FilesystemMiddleware(backend=backend, tools=list(SIX), tool_token_limit_before_evict=page_tokens)
    own = {tool.name: tool for tool in replaced}
    bridges = [own.get(tool.name, tool) for tool in files.tools if tool.name in SIX]
    middleware: list[Any] = [files]
    dispatch = None
    if team is not None:
        inside = [interpreter_middleware(bridges=bridges, dispatch=None)] if team_evals else []
        helper = SubAgent(
            name="helper", description="Helps", system_prompt="Help.", model=ScriptedModel(script=team),
            tools=list(team_tools), middleware=[files, *inside],
        )  # fmt: skip
        delegation = SubAgentMiddleware(backend=backend, subagents=[helper])
        middleware.append(delegation)
        (dispatch,) = delegation.tools
    interpreter = interpreter_middleware(bridges=bridges, dispatch=dispatch)
    assert isinstance(interpreter, CodeInterpreter)
    interpreter._seconds = seconds
    model = ScriptedModel(script=says or script(codes))
    saver = InMemorySaver()
    graph = create_agent(model, middleware=[*middleware, interpreter], checkpointer=saver)
    return Agent(graph, interpreter, model, saver)


async def evaluated(*codes: str, **given: Any) -> list[ToolMessage]:
    return await agent(*codes, **given).say()


async def text(*codes: str, **given: Any) -> str:
    """What the last eval returned."""
    return str((await evaluated(*codes, **given))[-1].content)


@dataclass
class Gaps:
    seconds: list[float] = field(default_factory=list)

    @property
    def longest(self) -> float:
        return max(self.seconds, default=0.0)


@asynccontextmanager
async def heartbeat() -> AsyncIterator[Gaps]:
    """How long the loop was held, beyond the beat itself."""
    gaps = Gaps()

    async def beat() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.002)
            gaps.seconds.append(time.perf_counter() - before - 0.002)

    task = asyncio.ensure_future(beat())
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.001)  # as the server does
    try:
        yield gaps
    finally:
        sys.setswitchinterval(before)
        task.cancel()


def resident() -> int:
    """Bytes of this process in memory."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def sandbox_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pizzabot-eval"]


def join_sandbox_threads() -> None:
    """They end by themselves; waiting for that is how a test sees it."""
    for thread in sandbox_threads():
        thread.join(5)
        assert not thread.is_alive()
