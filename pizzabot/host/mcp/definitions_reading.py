"""`Definitions`: what every source defines, merged: an entry of the person's own hides a plugin's of the same id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pizzabot.host.mcp.definitions import Entry, check_id, read_entry
from pizzabot.host.mcp.limits import MAX_SERVERS, SOURCE_SECONDS
from pizzabot_hookspecs import Logger, PizzabotError
from pizzabot_hookspecs.mcp_servers import McpServerDefinition, McpServerSource
from pizzabot_hookspecs.skill_sources import Origin
from pizzabot_hookspecs.wire import JsonValue


@dataclass(frozen=True, kw_only=True)
class Defined:
    """A server that is listed. `entry` is None where `fault` says what is wrong with it."""

    source: str
    definition: McpServerDefinition
    entry: Entry | None
    fault: str = ""

    @property
    def id(self) -> str:
        return self.definition.id

    @property
    def owner_key(self) -> str:
        """Under what its enablement is kept: `user`, `builtin` or `plugin:<name>`."""
        plugin = self.definition.plugin
        return f"plugin:{plugin}" if plugin is not None else self.definition.origin.value

    def same_server(self, other: Defined) -> bool:
        """Whether a session of the one does for the other."""
        mine, others = self.definition, other.definition
        return (mine.entry, mine.root, self.fault) == (others.entry, others.root, other.fault)


@dataclass(frozen=True, kw_only=True)
class Merged:
    """`hidden` are the ids of plugins' entries behind an entry of the person's own."""

    servers: Mapping[str, Defined] = field(default_factory=dict)
    plugins: Mapping[str, Defined] = field(default_factory=dict)
    problems: Sequence[Mapping[str, JsonValue]] = ()


class Definitions:
    """Asks the sources; what one told before stays where it cannot be read now."""

    def __init__(self, logger: Logger, redact: Callable[[str], str]) -> None:
        self.sources: dict[str, McpServerSource] = {}
        self._logger = logger
        self._redact = redact
        self._told: dict[str, Sequence[McpServerDefinition]] = {}
        self._failed: dict[str, str] = {}

    async def read(self) -> Merged:
        for name in self.sources:
            await self._ask(name)
        return self._merged()

    async def _ask(self, name: str) -> None:
        try:
            async with asyncio.timeout(SOURCE_SECONDS):
                self._told[name] = tuple(await self.sources[name].servers())
        except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and the rest goes on
            cause = error.detail if isinstance(error, PizzabotError) else f"{type(error).__name__}: {error}"
            kept = "; what it had before is used" if self._told.get(name) else ""
            reason = self._redact(f"{cause}{kept}")
            if self._failed.get(name) != reason:
                self._logger.error("mcp.source_failed", source=name, detail=reason)
            self._failed[name] = reason
        else:
            self._failed.pop(name, None)

    def _merged(self) -> Merged:
        found: dict[str, Defined] = {}
        plugins: dict[str, Defined] = {}
        problems: list[Mapping[str, JsonValue]] = [
            {"source": name, "id": None, "reason": reason} for name, reason in self._failed.items()
        ]
        for name, definitions in self._told.items():
            for definition in definitions:
                defined = self._checked(name, definition)
                if defined.fault:
                    problems.append({"source": name, "id": definition.id, "reason": defined.fault})
                if definition.origin is not Origin.USER:
                    plugins.setdefault(definition.id, defined)
                known = found.get(definition.id)
                if known is None or (definition.origin is Origin.USER and known.definition.origin is not Origin.USER):
                    found[definition.id] = defined
                elif definition.origin is not Origin.USER and known.definition.origin is not Origin.USER:
                    reason = f"the source {known.source} has a server of this id"
                    problems.append({"source": name, "id": definition.id, "reason": reason})
        self._bound(found, problems)
        return Merged(servers=dict(sorted(found.items())), plugins=plugins, problems=problems)

    def _checked(self, source: str, definition: McpServerDefinition) -> Defined:
        entry: Entry | None = None
        fault = definition.fault or ""
        if not fault:
            try:
                check_id(definition.id)
                entry = read_entry(definition.entry)
            except PizzabotError as error:
                fault = error.detail
        return Defined(source=source, definition=definition, entry=entry, fault=self._redact(fault))

    def _bound(self, found: dict[str, Defined], problems: list[Mapping[str, JsonValue]]) -> None:
        for defined in list(found.values())[MAX_SERVERS:]:
            reason = f"there are {MAX_SERVERS} servers already"
            problems.append({"source": defined.source, "id": defined.id, "reason": reason})
            del found[defined.id]
