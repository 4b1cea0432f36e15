# ruff: noqa: TID253 - imported when the first server is connected
"""A server's tools as an agent calls them.

LangChain's `StructuredTool` takes arguments called `config`, `run_manager` or `self` for its own; a server may call
them what it likes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from pizzabot_builtin_plugins.mcp_client.content import Answer
from pizzabot_builtin_plugins.mcp_client.schemas import normalised
from pizzabot_builtin_plugins.mcp_client.settings import MAX_DESCRIPTION
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.mcp_clients import McpTool

Call = Callable[[str, Mapping[str, Any]], Awaitable[tuple[Answer, bool]]]
"""Calls the tool of that name; the answer, and whether it is an error."""

MAX_TOOL_NAME = 128


class FailedCall(ToolException):
    """The tool answered with `isError`; its content stands in the result, whose status is `error`."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(next((block["text"] for block in answer.blocks if "text" in block), "the tool failed"))
        self.answer = answer


def _content_of(error: ToolException) -> Any:
    return error.answer.blocks if isinstance(error, FailedCall) else str(error)


class ServerTool(BaseTool):
    """`tool_name` is the server's; `name` is a label that the host may change."""

    tool_name: str
    call: Call = Field(exclude=True, repr=False)
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = _content_of

    def _run(self, /, **_arguments: Any) -> Any:
        raise Unavailable("mcp_failed", f"the tool {self.name} is asynchronous: use `ainvoke`")

    async def _arun(self, /, **arguments: Any) -> Any:
        answer, failed = await self.call(self.tool_name, arguments)
        if failed:
            raise FailedCall(answer)
        return answer.blocks, answer.artifact


def make_tool(raw: object, call: Call) -> McpTool | None:
    """The tool that an entry of `tools/list` describes, or None for what is none."""
    if not isinstance(raw, Mapping):
        return None
    name = raw.get("name")
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_TOOL_NAME:
        return None
    described = raw.get("description")
    description = described.strip()[:MAX_DESCRIPTION] if isinstance(described, str) else ""
    hints = raw.get("annotations")
    hints = hints if isinstance(hints, Mapping) else {}
    tool = ServerTool(
        name=name,
        tool_name=name,
        description=description or name,  # a blank one is refused by some models' APIs
        args_schema=normalised(raw.get("inputSchema")),
        call=call,
    )
    return McpTool(
        name=name,
        description=description or name,
        tool=tool,
        reads_only=hints.get("readOnlyHint") is True,
        idempotent=hints.get("idempotentHint") is True,
    )
