"""`Servers`: what skills need to know of the MCP servers. The host's own part for MCP implements it.

How a state counts for a skill that declares one of the server's tools (spec/04 §3):

    status        counts as       the skill is
    ------------  --------------  -------------------------------------------------------------
    loading       pending         loading, with `detail`
    retrying      pending         loading, with `detail`
    connected     available       ready, where the tool is among `tools`
    error         unavailable     unavailable, with `detail`
    crashed       unavailable     unavailable, with `detail`
    disabled      unavailable     unavailable, with `detail`; it cannot be enabled
    (no state)    unavailable     unavailable: not configured ("missing"); it cannot be enabled
    (not known)   pending         loading: the definitions were not read yet, `known` is false
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from pizzabot_hookspecs.mcp_clients import McpTool


class ServerStatus(StrEnum):
    LOADING = "loading"
    RETRYING = "retrying"
    CONNECTED = "connected"
    ERROR = "error"
    CRASHED = "crashed"
    DISABLED = "disabled"


PENDING = frozenset({ServerStatus.LOADING, ServerStatus.RETRYING})


@dataclass(frozen=True, kw_only=True)
class ServerState:
    """A server at one moment. `tools` by the server's own names, empty unless it is connected.

    `detail` is one line for a person, redacted. A tool object is the same one as long as its connection lives.
    """

    status: ServerStatus
    detail: str = ""
    tools: Mapping[str, McpTool] = field(default_factory=dict)


class Servers(Protocol):
    """The configured MCP servers, also those that are disabled or broken. Everything is read on the loop."""

    def states(self) -> Mapping[str, ServerState]:
        """By server id; a plain read of what is known now, without waiting."""
        ...

    def known(self) -> bool:
        """Whether the definitions were read once: until then a server that is not among `states` may still come."""
        ...

    def on_change(self, callback: Callable[[], None], /) -> None:
        """Have `callback` called on the loop whenever `states`, `known` or `trusted` may give another answer."""
        ...

    def trusted(self, server_id: str, /) -> bool:
        """Whether the person trusts the server, so that its hints about what a tool does count."""
        ...


class NoServers:
    """A `Servers` where there are none: MCP is switched off."""

    def states(self) -> Mapping[str, ServerState]:
        return {}

    def known(self) -> bool:
        return True

    def on_change(self, callback: Callable[[], None], /) -> None:
        """Nothing ever changes."""

    def trusted(self, server_id: str, /) -> bool:  # noqa: ARG002 - the Protocol's
        return False
