# ruff: noqa: TID253 - imported behind `runtime.prepare`
"""The six file tools as a guest calls them: camelCase there, the agent's own tools here, under the eval's config.

They report nothing to the stream: what a sandbox reads in bulk is not part of the conversation.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import _get_all_injected_args
from langgraph.types import Command
from pydantic import ValidationError

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.pages import content_of, is_the_end
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.refusals import Refused
from pizzabot_hookspecs.errors import InvalidRequest

SIGNATURES = {
    "ls": "ls({path}) → string[]",
    "read_file": "readFile({filePath, offset?, limit?}) → string",
    "write_file": "writeFile({filePath, content}) → string",
    "edit_file": "editFile({filePath, oldString, newString, replaceAll?}) → string",
    "glob": "glob({pattern, path?}) → string[]",
    "grep": "grep({pattern, path?, glob?, outputMode?, maxCount?}) → string",
}
"""Everything that may be bridged, as the model is told. No other tool is: it would run without an approval."""

_LISTS = frozenset({"ls", "glob"})
_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_NO_FILES = "No files found"


@dataclass(frozen=True)
class Returned:
    """A JSON value for the guest, and a note about it for the console."""

    value: object
    note: str = ""


class Bridge:
    """One file tool."""

    def __init__(self, tool: BaseTool) -> None:
        if tool.name not in SIGNATURES:
            raise InvalidRequest(
                "not_a_file_tool", f"{tool.name} cannot be called from eval; {', '.join(SIGNATURES)} can"
            )
        self.name = tool.name
        self.label = camel(tool.name)
        self._tool = tool
        injected = _get_all_injected_args(tool)
        self._runtime_argument = injected.runtime
        self._arguments = {camel(name): name for name in tool.args if name != injected.runtime}

    async def call(self, given: Mapping[str, Any], runtime: ToolRuntime[Any, Any], *, call_id: str) -> Returned:
        """Raises `Refused`, and what interrupts the run."""
        arguments = self._named(given)
        if self._runtime_argument:
            arguments[self._runtime_argument] = replace(runtime, tool_call_id=call_id)
        try:
            result = await self._tool.arun(arguments, config=runtime.config, tool_call_id=None)
        except (GraphBubbleUp, Refused):
            raise
        except ValidationError as error:
            raise Refused(f"tools.{self.label}: {faults(error)}") from error
        if self.name == "read_file":
            return Returned(_page(result))
        text = text_of(result)
        return _listed(text) if self.name in _LISTS else Returned(text)

    def _named(self, given: Mapping[str, Any]) -> dict[str, Any]:
        known = {**{name: name for name in self._arguments.values()}, **self._arguments}
        if unknown := [name for name in given if name not in known]:
            raise Refused(
                f"tools.{self.label} has no argument {', '.join(unknown)[:200]}; it takes {', '.join(self._arguments)}"
            )
        return {known[name]: value for name, value in given.items()}


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def faults(error: ValidationError) -> str:
    """What is wrong with arguments, in one line."""
    told = [f"{camel('.'.join(map(str, fault['loc'])))}: {fault['msg']}" for fault in error.errors()[:5]]
    return "; ".join(told)


def text_of(result: object) -> str:
    """The text of what a tool returned. Raises `Refused` for one that says it failed."""
    message = _message(result)
    if isinstance(message, ToolMessage):
        if not isinstance(message.content, str):
            kinds = {str(block.get("type")) for block in message.content if isinstance(block, dict)}
            raise Refused(f"it is not text but {', '.join(sorted(kinds)) or 'something else'}")
        if message.status == "error":
            raise Refused(message.content.removeprefix("Error: "))
        return message.content
    text = str(message)
    if text.startswith("Error: "):
        raise Refused(text.removeprefix("Error: "))
    return text


def _page(result: object) -> str:
    try:
        return content_of(text_of(result))
    except Refused as error:
        if is_the_end(str(error)):
            return ""
        raise


def _message(result: object) -> object:
    if isinstance(result, Command) and isinstance(result.update, dict):
        result = result.update.get("messages") or ""
    if isinstance(result, Sequence) and not isinstance(result, str):
        return next((item for item in reversed(result) if isinstance(item, ToolMessage)), "")
    return result


def _listed(text: str) -> Returned:
    """Paths that a tool wrote as a Python list, and its note behind them. `ast` alone would hold the loop for long."""
    listed, _, note = text.partition("\n\n")
    if listed == _NO_FILES:
        return Returned([], note)
    if not listed.startswith("["):
        return Returned(text)
    paths = [_unquoted(item) for item in _QUOTED.findall(listed)]
    if paths and not paths[-1].startswith("/"):  # advice to narrow the search, where the list was cut
        note = f"{paths.pop()} {note}".strip()
    return Returned(paths, note)


def _unquoted(literal: str) -> str:
    return str(ast.literal_eval(literal)) if "\\" in literal else literal[1:-1]
