"""`Settings`: what one process was told, validated, with the source of every value."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pizzabot.settings.explain import with_sources
from pizzabot.settings.layers import DEFAULT, Merged
from pizzabot.settings.model import (
    SECTION_OF_KIND,
    AgentMiddlewareSection,
    BundlesSection,
    Document,
    LoggingSection,
    McpSection,
    ModelsSection,
    PluginsSection,
    RuntimeSection,
    SecretsSection,
    SkillsSection,
    StorageSection,
    TransportsSection,
)
from pizzabot.settings.paths import Path as SettingPath
from pizzabot.settings.paths import at, dotted, leaves
from pizzabot_hookspecs.errors import InvalidRequest


@dataclass(frozen=True, kw_only=True)
class SettingValue:
    """One effective value. A reference is still one; `source` is what `Settings.provenance` says."""

    path: SettingPath
    value: Any
    source: str


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`file` is the configuration that was read, None where there is none; `keys` are those that make a reference.

    `bundles_folder` is where external bundles are where `[bundles] external` does not say.
    """

    document: Document
    merged: Merged
    file: Path | None
    keys: frozenset[str]
    data_root: Path
    bundles_folder: Path

    @property
    def plugins(self) -> PluginsSection:
        return self.document.plugins

    @property
    def storage(self) -> StorageSection:
        return self.document.storage

    @property
    def runtime(self) -> RuntimeSection:
        return self.document.runtime

    @property
    def models(self) -> ModelsSection:
        return self.document.models

    @property
    def transports(self) -> TransportsSection:
        return self.document.transports

    @property
    def secrets(self) -> SecretsSection:
        return self.document.secrets

    @property
    def skills(self) -> SkillsSection:
        return self.document.skills

    @property
    def agent_middleware(self) -> AgentMiddlewareSection:
        return self.document.agent_middleware

    @property
    def mcp(self) -> McpSection:
        return self.document.mcp

    @property
    def bundles(self) -> BundlesSection:
        return self.document.bundles

    @property
    def logging(self) -> LoggingSection:
        return self.document.logging

    def section(self, kind: str, name: str) -> dict[str, Any]:
        """The table for one use, a copy, references still in place; empty where there is none.

        `kind` is a table (`storage`) or a kind of plugin (`storage_backends`). For `plugin:offer` the offer's own table
        counts where the full name has none. A model's `use` is left out: it chooses the provider.
        """
        found = self._table(SECTION_OF_KIND.get(kind, kind), name)
        if SECTION_OF_KIND.get(kind, kind) == "models":
            found.pop("use", None)
        return found

    def _table(self, section: str, name: str) -> dict[str, Any]:
        tables = at(self.merged.values, (section,)) or {}
        offer = name.rpartition(":")[2]
        # A variable cannot say `-`: PIZZABOT__STORAGE__MY_STORE__KEY is for the use `my-store`.
        for candidate in (name, offer, offer.replace("-", "_")):
            if isinstance(table := tables.get(candidate), Mapping):
                return copy.deepcopy(dict(table))
        return {}

    def provenance(self, path: str | SettingPath) -> str:
        """`file /path:12`, `environment PIZZABOT__…`, `command line` or `default`."""
        return self.merged.source(self._parsed(path))

    def _parsed(self, path: str | SettingPath) -> SettingPath:
        if not isinstance(path, str):
            return path
        return next((known for known in self.merged.origins if dotted(known) == path), tuple(path.split(".")))

    def explain(self, error: InvalidRequest, prefix: str | SettingPath) -> InvalidRequest:
        """A plugin's complaint about the section `prefix` (`transports.http`), with where each value was written."""
        return with_sources(error, self._parsed(prefix), self.merged)

    def values(self) -> Iterator[SettingValue]:
        """Every effective value, defaults included, in the order of the sections."""
        tree = {**_defaults(self.document), "data_root": str(self.data_root)}
        shown = {path: value for path, value in leaves(tree, self.keys) if value != {}}
        for path, value in leaves(self.merged.values, self.keys):
            shown.setdefault(path, value)
        order = list(Document.model_fields)
        for path, value in sorted(shown.items(), key=lambda item: (order.index(item[0][0]), len(item[0]) > 2)):
            source = self.merged.source(path) if path in self.merged.origins else DEFAULT
            yield SettingValue(path=path, value=value, source=source)


def _defaults(document: Document) -> dict[str, Any]:
    """The host's own keys as validated, without the free tables, which stay as they were written."""
    tree: dict[str, Any] = {}
    for name in Document.model_fields:
        section = getattr(document, name)
        if hasattr(section, "model_fields_set"):
            own = type(section).model_fields
            tree[name] = section.model_dump(mode="json", include=set(own))
    return tree
