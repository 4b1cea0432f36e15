"""`HostMcpServers`: the use cases of MCP servers (spec/01 §8): list, read, write, switch, connect anew, tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pizzabot.host.mcp.board import McpBoard
from pizzabot.host.mcp.definitions import check_id, read_entry
from pizzabot.host.mcp.definitions_reading import Defined
from pizzabot.host.mcp.limits import MAX_SERVERS
from pizzabot.host.mcp.rows import server_row
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.mcp_servers import KeepsMcpServers
from pizzabot_hookspecs.skill_sources import Origin
from pizzabot_hookspecs.support.redaction import REDACTED
from pizzabot_hookspecs.wire import JsonValue


@dataclass(frozen=True, kw_only=True)
class Dependent:
    """A skill that declares a tool of a server."""

    id: str
    name: str
    source: str
    plugin: str | None
    enabled: bool

    def to_json(self) -> dict[str, JsonValue]:
        plugin: dict[str, JsonValue] = {} if self.plugin is None else {"pluginName": self.plugin}
        return {"id": self.id, "name": self.name, "source": self.source, **plugin, "enabled": self.enabled}


Dependents = Callable[[str], Sequence[Dependent]]
"""The skills that declare a tool of the server of that id."""


def no_dependents(_server_id: str) -> Sequence[Dependent]:
    return ()


class HostMcpServers:
    """Implements `pizzabot_hookspecs.host_skills.McpServers`."""

    def __init__(
        self, board: McpBoard, *, redact: Callable[[str], str], dependents: Dependents = no_dependents
    ) -> None:
        self._board = board
        self._redact = redact
        self._dependents = dependents
        self._writing = asyncio.Lock()

    async def listing(self, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002 - the installation's
        merged = self._board.merged
        return {
            "servers": [self._row(defined) for defined in merged.servers.values()],
            "problems": [dict(problem) for problem in merged.problems],
        }

    async def get(self, server_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002
        defined = self._board.merged.servers.get(server_id)
        if defined is None or defined.definition.origin is not Origin.USER:
            raise _no_such_server(server_id)
        return {"id": server_id, "source": Origin.USER.value, "entry": dict(defined.definition.entry)}

    async def create(
        self, server_id: str, entry: Mapping[str, JsonValue], /, *, caller: Caller
    ) -> Mapping[str, JsonValue]:
        check_id(server_id)
        read_entry(entry)
        _refuse_hidden(entry)
        async with self._writing:
            await self._ready()
            source = self._keeper()
            known = self._board.merged.servers.get(server_id)
            if server_id in self._board.merged.plugins:
                raise Conflict("reserved_id", f'the id "{server_id}" is that of a plugin\'s MCP server: choose another')
            if known is not None:
                raise Conflict("already_exists", f'there is an MCP server "{server_id}" already')
            if len(self._board.merged.servers) >= MAX_SERVERS:
                raise Conflict("too_many_servers", f"there are {MAX_SERVERS} MCP servers: delete one first")
            await self._board.enablement.set(Origin.USER.value, server_id, None)
            await source.put(server_id, entry)
            await self._board.reload()
        return self._row_of(server_id, caller)

    async def replace(
        self, server_id: str, entry: Mapping[str, JsonValue], /, *, caller: Caller
    ) -> Mapping[str, JsonValue]:
        read = read_entry(entry)
        _refuse_hidden(entry)
        async with self._writing:
            await self._ready()
            defined = self._own(server_id, "not_editable")
            said, stored = "enabled" in entry, defined.definition.entry.get("enabled")
            if not said and isinstance(stored, bool):
                entry = {**entry, "enabled": stored}
            if said and not read.enabled and self._board.enabled(defined):
                self._refuse_in_use(server_id)
            await self._keeper().put(server_id, entry)
            if said:
                await self._board.enablement.set(defined.owner_key, server_id, None)  # what was said last counts
            await self._board.reload()
        return self._row_of(server_id, caller)

    async def delete(self, server_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002
        async with self._writing:
            await self._ready()
            defined = self._own(server_id, "not_deletable")
            if server_id not in self._board.merged.plugins:
                self._refuse_in_use(server_id)
            await self._keeper().remove(server_id)
            await self._board.enablement.set(defined.owner_key, server_id, None)
            await self._board.reload()
        return {"deleted": True}

    async def enable(self, server_id: str, enabled: bool, /, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: FBT001 - the contract's
        async with self._writing:
            await self._ready()
            defined = self._defined(server_id)
            if not enabled and self._board.enabled(defined):
                self._refuse_in_use(server_id)
            await self._board.enablement.set(defined.owner_key, server_id, enabled)
            await self._board.reload()
        return self._row_of(server_id, caller)

    async def reconnect(self, server_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        defined = self._defined(server_id)
        if defined.entry is not None and not self._board.enabled(defined):
            raise Conflict("mcp_disabled", f'MCP server "{server_id}" is disabled: enable it first')
        await self._board.reconnect(server_id)
        return self._row_of(server_id, caller)

    async def tools(self, server_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002
        state = self._board.state(self._defined(server_id))
        return {"tools": [{"name": tool.name, "description": tool.description} for tool in state.tools.values()]}

    async def _ready(self) -> None:
        """Before the sources were read nothing is known that could be protected."""
        await self._board.ready()

    def _defined(self, server_id: str) -> Defined:
        defined = self._board.merged.servers.get(server_id)
        if defined is None:
            raise _no_such_server(server_id)
        return defined

    def _own(self, server_id: str, code: str) -> Defined:
        defined = self._defined(server_id)
        if defined.definition.origin is not Origin.USER:
            owner = defined.definition.plugin or defined.source
            raise Conflict(
                code, f'MCP server "{server_id}" is from the plugin {owner}: it can be disabled, not changed'
            )
        return defined

    def _keeper(self) -> KeepsMcpServers:
        for source in self._board.sources.values():
            if isinstance(source, KeepsMcpServers):
                return source
        raise Conflict("mcp_disabled", "no source of MCP servers can keep any: enable the plugin user-mcp-servers")

    def _refuse_in_use(self, server_id: str) -> None:
        using = [skill for skill in self._dependents(server_id) if skill.enabled]
        if using:
            names = ", ".join(skill.name for skill in using[:5])
            raise Conflict(
                "resource_in_use",
                f'MCP server "{server_id}" is used by {len(using)} enabled skills ({names}): disable them first',
                fields={skill.id: skill.name for skill in using},
            )

    def _row_of(self, server_id: str, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002 - the installation's
        defined = self._board.merged.servers.get(server_id)
        if defined is None:
            raise InvalidRequest("invalid", f'the source did not keep the MCP server "{server_id}"')
        return self._row(defined)

    def _row(self, defined: Defined) -> dict[str, JsonValue]:
        skills = [skill.to_json() for skill in self._dependents(defined.id)]
        return server_row(self._board, defined, skills, redact=self._redact)


def _refuse_hidden(entry: Mapping[str, JsonValue]) -> None:
    """A client that sends back what the list showed it would lose the real value."""
    for field in ("env", "headers"):
        values = entry.get(field)
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if value == REDACTED:
                problem = f"is {REDACTED}, as lists show it: send the value, or read it at GET /mcp-servers/<id>"
                raise InvalidRequest("invalid", f"`{field}.{name}` {problem}", fields={f"{field}.{name}": problem})


def _no_such_server(server_id: str) -> NotFound:
    return NotFound("no_such_server", f"there is no MCP server {server_id[:80]!r}")
