"""Tool references: `builtin:eval`, `mcp:<server>:<tool>`, `mcp:<server>:<prefix>*` (spec/04 §1.2)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pizzabot_hookspecs.agent_runtimes import BuiltinTool

MAX_REF_CHARACTERS = 256

_MCP = re.compile(r"mcp:([^:*\s]+):([^:*\s]*\*?)")
BUILTINS: frozenset[str] = frozenset(BuiltinTool)


class InvalidRefError(ValueError):
    """Not a reference; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class McpRef:
    """`tool` without its star where `wildcard`: a prefix, the empty one for all."""

    server: str
    tool: str
    wildcard: bool

    def matches(self, tool: str) -> bool:
        return tool.startswith(self.tool) if self.wildcard else tool == self.tool

    def covers(self, other: McpRef) -> bool:
        """Whether every tool that `other` names is one of this one's."""
        if self.server != other.server:
            return False
        return self.matches(other.tool) if self.wildcard else not other.wildcard and self.tool == other.tool


def parse_ref(text: str) -> BuiltinTool | McpRef:
    """Raises `InvalidRefError` for anything that names no tool there can be."""
    if text in BUILTINS:
        return BuiltinTool(text)
    if len(text) > MAX_REF_CHARACTERS:
        raise InvalidRefError(f"the tool reference {text[:40]!r}… is longer than {MAX_REF_CHARACTERS} characters")
    if text.startswith("builtin:"):
        raise InvalidRefError(f"there is no tool {text!r}; built in are {', '.join(sorted(BUILTINS))}")
    return parse_mcp_ref(text)


def parse_mcp_ref(text: str) -> McpRef:
    """Like `parse_ref`, of a server's tool alone."""
    found = _MCP.fullmatch(text)
    if found is None or not found[2] or len(text) > MAX_REF_CHARACTERS:
        raise InvalidRefError(
            f"{text[:80]!r} is not a tool reference: write `mcp:<server>:<tool>`, a `*` only at its end"
        )
    tool = found[2]
    return McpRef(server=found[1], tool=tool.removesuffix("*"), wildcard=tool.endswith("*"))


def servers_of(refs: Iterable[str]) -> tuple[str, ...]:
    """The servers that the references name, in order, each once."""
    found: dict[str, None] = {}
    for ref in refs:
        if match := _MCP.fullmatch(ref):
            found[match[1]] = None
    return tuple(found)
