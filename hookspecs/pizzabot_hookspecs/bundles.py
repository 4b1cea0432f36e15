"""Declarative bundles: folders in the Claude Code plugin format, as a source reads them and the host switches them.

No kind of its own: a source of skills that is a `LoadsBundles` reads bundles (the built-in `bundles`), one that is a
`BringsBundle` has a folder for it (a Python plugin that ships one, see `support.packaged_bundles`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from pizzabot_hookspecs.materializers import MaterializeReason
from pizzabot_hookspecs.mcp_servers import McpServerDefinition
from pizzabot_hookspecs.skill_sources import RawSkill
from pizzabot_hookspecs.wire import JsonValue

MANIFEST = ".claude-plugin/plugin.json"
"""The file that makes a folder a bundle."""


class BundleStatus(StrEnum):
    """Only a loaded one contributes anything (spec/04 §6)."""

    LOADED = "loaded"
    DISABLED = "disabled"
    INCOMPATIBLE = "incompatible"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class BundlePlace:
    """Where to look: each sub-directory of `path` that has a manifest is a bundle, with `single` `path` itself is one.

    `removable` is the folder in which bundles are installed and may be deleted again.
    """

    path: Path
    removable: bool = False
    single: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class MaterializerEntry:
    """What a manifest says under `extensions["dev.pizzabot.materializer"]` (spec/04 §11).

    `use` names the offer that runs it; without one that is the offer of the bundle's name, else `subprocess`, which
    runs `entrypoint`, a path inside the bundle. `sources` are as written, `~` and `${HOME}` in them.
    """

    entrypoint: str = ""
    use: str = ""
    sources: tuple[str, ...] = ()
    sync: frozenset[MaterializeReason] = frozenset(MaterializeReason)
    timeout_ms: int = 30_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """One bundle as it was read. `root` is its own folder, also where its contributions come out of a generated one.

    `detail` is one line: why it is not loaded (file, line and reason), or what in it was left out. `file` is the file
    at fault, a path inside the bundle. `about` has what the manifest tells of it: version, displayName, description,
    author, homepage, repository, license, keywords, engine, capabilities, where they are there.
    """

    name: str
    root: Path
    status: BundleStatus
    detail: str = ""
    file: str = ""
    api_version: str = "unknown"
    about: Mapping[str, JsonValue] = field(default_factory=dict)
    removable: bool = False
    skills: tuple[RawSkill, ...] = ()
    servers: tuple[McpServerDefinition, ...] = ()
    materializer: MaterializerEntry | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadRequest:
    """`generated` has, by the name of a bundle with a materializer, the folder that it made last; a bundle whose is
    missing contributes nothing yet. `host_version` is what `engines.pizzaBot` is compared with."""

    places: Sequence[BundlePlace] = ()
    generated: Mapping[str, Path] = field(default_factory=dict)
    host_version: str = ""


@runtime_checkable
class LoadsBundles(Protocol):
    """A capability of a `SkillSource`: its skills, and the servers of the `McpServerSource` beside it, are those of the
    bundles that were loaded last. The host calls `load` when it starts and whenever something changed."""

    async def load(self, request: LoadRequest, /) -> Sequence[Bundle]:
        """Read every place anew. A bundle counts whole or not at all; of two that collide the first one stays."""
        ...

    async def read(self, folder: Path, /, *, host_version: str) -> Bundle:
        """One folder, nothing registered. Never raises for what is in it."""
        ...

    def bundle_changes(self, places: Sequence[BundlePlace], /) -> AsyncIterator[None]:
        """An item for each burst of changes in the places; goes on until it is closed."""
        ...


@runtime_checkable
class BringsBundle(Protocol):
    """A capability of a `SkillSource`: a folder that is one bundle, read like every other."""

    @property
    def bundle(self) -> Path: ...
