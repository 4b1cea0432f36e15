# ruff: noqa: TID253 - imported behind `runtime.prepare`
"""Subagents as a guest calls them: the agent's tool `task`, with the callbacks of the eval that calls.

The callbacks carry what a subagent does to the stream, under the eval's own namespace (`tools:<id>`, then
`tools:<id>|1`, …). The id of a dispatch follows from its place in the eval: an eval that is run again after a pause
dispatches under the same ids.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bridges import Returned, text_of
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.launching import Launches
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.refusals import Refused
from pizzabot_builtin_plugins.deepagents_runtime.plain import DISPATCHED, Dispatched
from pizzabot_builtin_plugins.deepagents_runtime.tool_sets import ROSTER

SIGNATURE = "task({description, subagentType}) → string"

_ARGUMENTS = {"description": "description", "subagentType": "subagent_type", "subagent_type": "subagent_type"}

_NOBODY = "We cannot invoke subagent "
"""How DeepAgents answers a call for a subagent that does not exist: as if it were a report."""


async def dispatch(
    tool: BaseTool, given: Mapping[str, Any], runtime: ToolRuntime[Any, Any], *, call_id: str, launches: Launches
) -> Returned:
    """The report of a subagent. Raises `Refused`, and what interrupts the run."""
    if unknown := [name for name in given if name not in _ARGUMENTS]:
        raise Refused(f"task has no argument {', '.join(unknown)[:200]}; it takes description, subagentType")
    arguments = {_ARGUMENTS[name]: value for name, value in given.items()}
    for label, name in (("description", "description"), ("subagentType", "subagent_type")):
        if not isinstance(arguments.get(name), str) or not arguments[name].strip():
            raise Refused(f"task needs {label}, a text that is not empty")
    name = arguments["subagent_type"]
    known = (tool.metadata or {}).get(ROSTER)
    if known is not None and name not in known:
        raise Refused(f"there is no subagent {name!r}; there are {', '.join(sorted(known))}")
    async with launches.next(runtime.config.get("callbacks")) as callbacks, _told(runtime, call_id, launches, name):
        result = await tool.arun(
            {**arguments, "runtime": replace(runtime, tool_call_id=call_id)},
            callbacks=callbacks,
            config=runtime.config,
            tool_call_id=call_id,
        )
    text = text_of(result)
    if text.startswith(_NOBODY):
        raise Refused(text)
    return Returned(text)


@asynccontextmanager
async def _told(runtime: ToolRuntime[Any, Any], call_id: str, launches: Launches, name: str) -> AsyncIterator[None]:
    """Tells what becomes of the subagent: LangGraph tells it of the first one of a step alone."""
    index = launches.number()

    def tell(event: str) -> None:
        told = Dispatched(eval_call_id=runtime.tool_call_id or "", call_id=call_id, index=index, name=name, event=event)
        runtime.stream_writer({DISPATCHED: told})

    tell("started")
    try:
        yield
    except GraphBubbleUp:
        tell("interrupted")
        raise
    except BaseException:
        tell("failed")
        raise
    tell("completed")
