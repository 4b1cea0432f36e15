"""Kind `materializers`: turn local sources into a bundle of skills and MCP servers. The host runs and switches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pizzabot_hookspecs.offers import Offer, hookspec


@dataclass(frozen=True, kw_only=True, slots=True)
class MaterializeRequest:
    """`sources` are the folders to read; `reason` is install, startup or manual."""

    sources: Sequence[Path]
    reason: str


class Materializer(Protocol):
    async def materialize(self, request: MaterializeRequest, /) -> Mapping[str, bytes]:
        """The files of the bundle by their path in it. Raising keeps the last good version, which is then `stale`."""
        ...


@hookspec
def pizzabot_materializers() -> list[Offer[Materializer]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the materializers this plugin has."""
