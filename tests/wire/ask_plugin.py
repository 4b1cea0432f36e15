"""Tools that speak while they run, as a third party writes them: `ask` waits for a person, `note` tells clients."""

from __future__ import annotations

from typing import Any

from pizzabot_hookspecs import Offer, hookimpl
from pizzabot_hookspecs.agent_tools import AgentTool


class SpeakingTools:
    def __init__(self, _context: object, _settings: object) -> None:
        pass

    async def tools(self) -> list[AgentTool]:
        return made_tools()


def made_tools() -> list[AgentTool]:
    from langchain_core.tools import tool
    from langgraph.config import get_stream_writer
    from langgraph.types import interrupt

    @tool
    async def ask(question: str) -> str:
        """Ask the person."""
        return f"the person said {interrupt({'question': question})}"

    @tool
    async def note(text: str) -> str:
        """Tell clients something while the tool runs, on a channel of its own."""
        write = get_stream_writer()
        write({"name": "progress", "payload": {"text": text}})
        write({"half": text})
        return "noted"

    return [AgentTool(tool=ask, repeatable=True), AgentTool(tool=note, repeatable=True)]


@hookimpl
def pizzabot_agent_tools() -> list[Offer[Any]]:
    return [Offer(name="speaking", summary="tools that speak while they run", create=SpeakingTools)]
