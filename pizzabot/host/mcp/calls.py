# ruff: noqa: TID253 - imported in a thread when the first server is connected
"""A server's tool with the host's rules around a call: a deadline, a line in the log, nothing told with secrets in it.

The log says server, tool and duration, never arguments or results (spec/09 §2.8). A server knows the secrets it was
given, and some tell them: in an answer they would be in the checkpoint and in the log of events for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any, Literal

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import Field

from pizzabot.host.mcp.call_rules import CallRules
from pizzabot_hookspecs import PizzabotError, Unavailable
from pizzabot_hookspecs.mcp_clients import McpTool

_PICTURES = ("base64", "mime_type")
_EVENTS = {outcome: f"mcp.call_{outcome}" for outcome in ("completed", "failed", "cancelled")}


class _Failed(ToolException):
    def __init__(self, content: Any) -> None:
        super().__init__("the tool failed")
        self.content = content


def _content_of(error: ToolException) -> Any:
    return error.content if isinstance(error, _Failed) else str(error)


class GuardedTool(BaseTool):
    """The tool of a client, called under these rules. `name` is a label: whoever hands it out may change it."""

    inner: BaseTool = Field(exclude=True, repr=False)
    rules: Any = Field(exclude=True, repr=False)
    """`CallRules`; pydantic would look into them."""
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = _content_of

    def _run(self, /, **_arguments: Any) -> Any:
        raise Unavailable("mcp_failed", f"the tool {self.name} is asynchronous: use `ainvoke`")

    async def _arun(self, /, **arguments: Any) -> Any:
        rules: CallRules = self.rules
        facts = {"server": rules.server_id, "tool": self.inner.name}
        began = monotonic()
        rules.logger.info("mcp.call_started", **facts)
        outcome = "failed"
        rules.watch.going_on += 1
        try:
            message = await self._called(arguments)
            failed = message.status == "error"
            outcome = "failed" if failed else "completed"
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            rules.watch.going_on -= 1
            rules.logger.info(_EVENTS[outcome], **facts, seconds=round(monotonic() - began, 3))
        if failed:
            raise _Failed(_without(message.content, rules.redact))
        return _without(message.content, rules.conceal), _without(message.artifact, rules.conceal)

    async def _called(self, arguments: dict[str, Any]) -> ToolMessage:
        """The client's answer. Of this call's own events nobody is told: they are those of the tool around it."""
        call = {"type": "tool_call", "name": self.inner.name, "args": arguments, "id": "call"}
        rules: CallRules = self.rules
        try:
            async with asyncio.timeout(rules.seconds) as deadline:
                answer = await self.inner.ainvoke(call, {"callbacks": []})
        except TimeoutError as error:
            if not deadline.expired():
                raise self._unavailable(error) from None
            rules.watch.doubt.set()
            raise Unavailable(
                "mcp_timeout",
                f'MCP server "{rules.server_id}" did not answer the call of {self.inner.name} within'
                f" {rules.seconds:g} s ([mcp] call_seconds)",
            ) from None
        except Exception as error:  # noqa: BLE001 - whatever a client raises, the model is told in one way
            raise self._unavailable(error) from None
        return answer if isinstance(answer, ToolMessage) else ToolMessage(content=str(answer), tool_call_id="call")

    def _unavailable(self, error: Exception) -> Unavailable:
        """Without the original: its text and its causes may hold what must not be told."""
        if isinstance(error, PizzabotError):
            return Unavailable(error.code, self.rules.redact(error.detail))
        told = self.rules.redact(f"{type(error).__name__}: {error}")[:500]
        return Unavailable("mcp_failed", f'MCP server "{self.rules.server_id}" failed: {told}')


def guarded(tools: Sequence[McpTool], rules: CallRules) -> tuple[McpTool, ...]:
    """The tools under `rules`. Blocking: some hundred take milliseconds."""
    return tuple(
        replace(
            tool,
            tool=GuardedTool(
                name=tool.name,
                description=tool.description.strip() or tool.name,
                args_schema=tool.tool.args_schema,
                metadata=tool.tool.metadata,
                inner=tool.tool,
                rules=rules,
            ),
        )
        for tool in tools
    )


def _without(value: Any, hide: Callable[[str], str]) -> Any:
    """What a tool told, with every text in it through `hide`; pictures stay."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {key: each if key in _PICTURES else _without(each, hide) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without(each, hide) for each in value]
    return value
