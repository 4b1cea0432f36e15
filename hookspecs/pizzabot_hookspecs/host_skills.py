"""The use cases of what extends the agent, as `Host` has them: skills, MCP servers, bundles (spec/01 §7 to §9).

Answers are JSON as docs/use/protocol.md describes it, camelCase. Errors are those of `pizzabot_hookspecs.errors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from pizzabot_hookspecs.callers import Caller
from pizzabot_hookspecs.wire import JsonValue


class Skills(Protocol):
    """The catalogue of skills. Writing raises `Conflict` `skills_disabled` where no source can keep skills."""

    async def listing(self, *, caller: Caller) -> Mapping[str, Any]:
        """`{skills: [SkillInfo], problems: [{source, id, file, line?, reason}]}`, by name."""
        ...

    async def get(self, skill_id: str, /, *, caller: Caller) -> Mapping[str, Any]:
        """The bundle. Raises `NotFound` `no_such_skill`."""
        ...

    async def create(self, body: Mapping[str, JsonValue], /, *, caller: Caller) -> Mapping[str, Any]:
        """The new bundle. Raises `InvalidRequest` `invalid_id`, `invalid`; `Conflict` `already_exists`,
        `reserved_id`."""
        ...

    async def replace(self, skill_id: str, body: Mapping[str, JsonValue], /, *, caller: Caller) -> Mapping[str, Any]:
        """The bundle after it; of a shipped skill this makes the person's own. Raises `Conflict` `not_editable`."""
        ...

    async def delete(self, skill_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`{deleted: true}`; a shipped skill of the id is back then. Raises `Conflict` `not_deletable`."""
        ...

    async def enable(self, skill_id: str, enabled: bool, /, *, caller: Caller) -> Mapping[str, Any]:  # noqa: FBT001 - the last word of a sentence
        """The SkillInfo. Raises `Conflict` `dependency_disabled`, whose fields name the servers."""
        ...

    async def generate(self, prompt: str, /, *, caller: Caller) -> Mapping[str, Any]:
        """A draft, not stored. Raises `InvalidRequest` `invalid`; `Unavailable` `generate_failed`."""
        ...

    async def import_archive(self, archive: bytes, /, *, caller: Caller) -> Mapping[str, Any]:
        """The new bundle, out of a ZIP. Raises the codes of spec/04 §5."""
        ...

    async def export_archive(self, skill_id: str, /, *, caller: Caller) -> bytes:
        """The bundle as a ZIP that `import_archive` takes."""
        ...

    async def tools(self, *, caller: Caller) -> Mapping[str, Any]:
        """`{builtins: [{ref, name}], servers: [{server, wildcard, tools: [{ref, name, description}]}]}`, by server."""
        ...


class McpServers(Protocol):
    """MCP servers, their states and their tools. Writing raises `Conflict` `mcp_disabled` where nothing keeps them."""

    async def listing(self, *, caller: Caller) -> Mapping[str, Any]:
        """`{servers: [row], problems: [{source, id, reason}]}`, by id."""
        ...

    async def get(self, server_id: str, /, *, caller: Caller) -> Mapping[str, Any]:
        """`{id, source, entry}` as it was written, of a server of the person's own.

        Raises `NotFound` `no_such_server`.
        """
        ...

    async def create(self, server_id: str, entry: Mapping[str, JsonValue], /, *, caller: Caller) -> Mapping[str, Any]:
        """The row. Raises `InvalidRequest` `invalid_id`, `invalid`; `Conflict` `already_exists`, `reserved_id`."""
        ...

    async def replace(self, server_id: str, entry: Mapping[str, JsonValue], /, *, caller: Caller) -> Mapping[str, Any]:
        """The row. Raises `Conflict` `not_editable`, `resource_in_use`, whose fields name the skills."""
        ...

    async def delete(self, server_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`{deleted: true}`. Raises `Conflict` `not_deletable`, `resource_in_use`."""
        ...

    async def enable(self, server_id: str, enabled: bool, /, *, caller: Caller) -> Mapping[str, Any]:  # noqa: FBT001 - the last word of a sentence
        """The row. Raises `Conflict` `resource_in_use`."""
        ...

    async def reconnect(self, server_id: str, /, *, caller: Caller) -> Mapping[str, Any]:
        """The row after one attempt. Raises `Conflict` `mcp_not_reconnectable` unless it is in error or crashed."""
        ...

    async def tools(self, server_id: str, /, *, caller: Caller) -> Mapping[str, Any]:
        """`{tools: [{name, description}]}`."""
        ...


class Bundles(Protocol):
    """Declarative bundles. All but `listing` raise `Conflict` `plugins_disabled` where nothing can load bundles."""

    async def listing(self, *, caller: Caller) -> Mapping[str, Any]:
        """`{bundles: [row]}`, by name, as spec/01 §9 has them."""
        ...

    async def reload(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        """Read every folder anew and run what runs by hand. `{reloaded: true}`, also where single bundles failed."""
        ...

    async def refresh(self, name: str, /, *, caller: Caller) -> Mapping[str, Any]:
        """Run the materializer of one bundle. `{name, materialization}`; raises `NotFound` `no_such_materialization`.
        A run that fails is told in `materialization`."""
        ...

    async def import_archive(self, archive: bytes, /, *, caller: Caller) -> Mapping[str, Any]:
        """Install a bundle out of a ZIP: `{name}`. Raises the codes of spec/04 §5, `Conflict` `already_exists`,
        `activation_failed`: nothing of it is left then."""
        ...

    async def delete(self, name: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`{deleted: true}`: an installed bundle, with what was generated for it and its switches.

        Raises `InvalidRequest` `invalid_name`, `NotFound` `no_such_plugin`, also for one that is not removable.
        """
        ...
