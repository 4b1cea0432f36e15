"""The sections of `pizzabot.toml` that the host reads; the free tables below them belong to the plugins they name."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

MAX_NAMES = 100
"""Of any list of names: plugins, transports, fallback models."""
MAX_BROWSE_ROOTS = 32
"""Folders beneath which a person may browse for one to grant (spec/01 §1)."""


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


def _lowered(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _listed(value: object) -> object:
    """`http, lines` in an environment variable is a list of two."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f'"{twice[0]}" stands in it twice')
    return names


def _split_paths(value: object) -> object:
    """A variable holds several as `PATH` does."""
    return [part.strip() for part in value.split(os.pathsep) if part.strip()] if isinstance(value, str) else value


FolderPath = Annotated[str, Field(min_length=1, max_length=4096)]
Name = Annotated[str, Field(min_length=1, max_length=255)]
Names = Annotated[tuple[Name, ...], BeforeValidator(_listed), Field(max_length=MAX_NAMES)]
Uses = Annotated[Names, AfterValidator(_different)]
"""Each is made once: a second one would take the first one's address, or be asked for nothing."""


class Section(BaseModel):
    """A table with nothing but its own keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KindSection(BaseModel):
    """A table of a kind: its own keys, and below it one free table for each use."""

    model_config = ConfigDict(extra="allow", frozen=True)

    @property
    def tables(self) -> dict[str, dict[str, Any]]:
        return {name: dict(table) for name, table in (self.__pydantic_extra__ or {}).items()}


class PluginsSection(Section):
    """`discover` is what `--no-plugins` and `PIZZABOT_NO_PLUGINS=1` switch off."""

    disable: Names = ()
    only: Names | None = None
    strict: bool = False
    discover: bool = True


class StorageSection(KindSection):
    use: Name = "sqlite"


class RuntimeSection(KindSection):
    use: Name = "deepagents"


class ModelsSection(KindSection):
    """`default` and `fallback` are model ids, `<use>:<model>`."""

    default: Name | None = None
    fallback: Uses = ()

    @property
    def uses(self) -> dict[str, str]:
        """The offer that each `[models.<use>]` section means: its `use`, else its own name."""
        return {name: str(table.get("use", name)) for name, table in self.tables.items()}


class TransportsSection(KindSection):
    use: Uses = ("http",)


class SecretsSection(KindSection):
    use: Uses = ("environment", "keyring", "file")


class SkillsSection(KindSection):
    """`use` orders skill sources; those it does not name come after, by name."""

    use: Uses = ()


class AgentMiddlewareSection(KindSection):
    """`use` names what stands around model calls and tool calls, in that order; nothing else acts."""

    use: Uses = ()


class McpSection(KindSection):
    """`use` is the client. `path` are folders of programs that stdio servers are looked for in before `PATH`.

    `trusted` are servers whose own word counts that a tool only reads or may be run twice (durable-runs rule 7).
    """

    use: Name = "mcp"
    connect_at_once: Annotated[int, Field(ge=1, le=32)] = 3
    connect_seconds: Annotated[float, Field(gt=0, le=600)] = 20.0
    call_seconds: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    ping_seconds: Annotated[float, Field(ge=1, le=3_600)] = 30.0
    max_tools: Annotated[int, Field(ge=1, le=2_000)] = 500
    trusted: Names = ()
    path: Annotated[tuple[FolderPath, ...], BeforeValidator(_split_paths), Field(max_length=MAX_NAMES)] = ()


def _whole_paths(paths: tuple[str, ...] | None) -> tuple[str, ...] | None:
    wrong = next((path for path in paths or () if not Path(path).expanduser().is_absolute()), None)
    if wrong is not None:
        raise ValueError(f"name the folder with its whole path, not {wrong[:80]!r}")
    return paths


BundleFolders = Annotated[
    tuple[FolderPath, ...], BeforeValidator(_split_paths), Field(max_length=MAX_NAMES), AfterValidator(_whole_paths)
]


class BundlesSection(Section):
    """Folders of plugin bundles beside that of the data root. `shipped` are read first, `external` last.

    Without `external` it is the folder `plugins` beside the person's own `pizzabot.toml`.
    """

    shipped: BundleFolders = ()
    external: BundleFolders | None = None


class GrantedFolderTable(Section):
    """A folder that the file grants to the agent. `path` may begin with `~`."""

    path: FolderPath
    read_only: bool = True
    acknowledge_data_root: bool = False


class FoldersSection(Section):
    """`configure` lets folders be granted over HTTP, and looked for beneath `browse_roots`; `grants` are the file's."""

    configure: bool = False
    browse_roots: Annotated[
        tuple[FolderPath, ...], BeforeValidator(_split_paths), Field(max_length=MAX_BROWSE_ROOTS)
    ] = ()
    grants: Annotated[tuple[GrantedFolderTable, ...], Field(max_length=MAX_NAMES)] = ()


class LoggingSection(Section):
    level: Annotated[LogLevel, BeforeValidator(_lowered)] = LogLevel.INFO


class Document(BaseSettings):
    """The whole file. Its sources are given by `pizzabot.settings.load`, not by pydantic-settings' own."""

    model_config = SettingsConfigDict(extra="forbid", frozen=True, case_sensitive=True)

    data_root: Path | None = None
    plugins: PluginsSection = PluginsSection()
    storage: StorageSection = StorageSection()
    runtime: RuntimeSection = RuntimeSection()
    models: ModelsSection = ModelsSection()
    transports: TransportsSection = TransportsSection()
    secrets: SecretsSection = SecretsSection()
    skills: SkillsSection = SkillsSection()
    mcp: McpSection = McpSection()
    bundles: BundlesSection = BundlesSection()
    folders: FoldersSection = FoldersSection()
    agent_middleware: AgentMiddlewareSection = AgentMiddlewareSection()
    logging: LoggingSection = LoggingSection()
    # Kinds of which all offers act: nothing to choose, one table for each offer that has settings.
    admission_policies: KindSection = KindSection()
    agent_tools: KindSection = KindSection()
    commands: KindSection = KindSection()
    http_routes: KindSection = KindSection()
    materializers: KindSection = KindSection()
    mcp_servers: KindSection = KindSection()
    observers: KindSection = KindSection()

    @field_validator("data_root")
    @classmethod
    def _absolute(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_absolute():
            raise ValueError("it is empty: name a folder")  # any other one is absolute by now
        return value


SECTION_OF_KIND = {
    "storage_backends": "storage",
    "agent_runtimes": "runtime",
    "model_providers": "models",
    "secret_stores": "secrets",
    "skill_sources": "skills",
    "mcp_clients": "mcp",
    **{
        kind: kind
        for kind in (
            "admission_policies",
            "agent_middleware",
            "agent_tools",
            "commands",
            "http_routes",
            "materializers",
            "mcp_servers",
            "observers",
            "transports",
        )
    },
}
"""Which table holds the settings of a kind of plugin."""
