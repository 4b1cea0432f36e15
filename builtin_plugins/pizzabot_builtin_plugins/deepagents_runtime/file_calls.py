# ruff: noqa: TID253 - imported behind `runtime.prepare`, when LangGraph is there
"""DeepAgents' file tools, whose refusals are told: it answers some calls itself, and LangGraph reports only tools that
run. Two writes of one file in one step are such a call: the second is refused."""

from __future__ import annotations

from typing import Any

from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage

from pizzabot_builtin_plugins.deepagents_runtime.plain import TOLD_RESULT
from pizzabot_builtin_plugins.deepagents_runtime.tool_calls import Handler, Result


class FileCalls(FilesystemMiddleware[Any, Any]):
    """Stands in for `FilesystemMiddleware`, under its name."""

    @property
    def name(self) -> str:
        return FilesystemMiddleware.__name__

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Handler) -> Result:
        was_handled = False

        async def handled(given: ToolCallRequest) -> Result:
            nonlocal was_handled
            was_handled = True
            return await handler(given)

        result: Result = await super().awrap_tool_call(request, handled)
        if not was_handled and isinstance(result, ToolMessage):
            request.runtime.stream_writer({TOLD_RESULT: result})
        return result
