"""Kind `materializers`: turn local sources into a bundle of skills and MCP servers. The host runs and switches them.

A bundle asks for one in its manifest (`extensions["dev.pizzabot.materializer"]`): by the offer's name (`use`), by being
called like an offer, or by an `entrypoint`, which the built-in `subprocess` runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pizzabot_hookspecs.offers import Offer, hookspec


class MaterializeReason(StrEnum):
    """Why it runs: the bundle is new, the host starts, a person asked."""

    INSTALL = "install"
    STARTUP = "startup"
    MANUAL = "manual"


@dataclass(frozen=True, kw_only=True, slots=True)
class MaterializeRequest:
    """`sources` are the folders or files to read, absolute; `reason` is a `MaterializeReason`.

    `bundle` and `root` are the name and the folder of the bundle that asks, `entrypoint` what its manifest names.
    `output` is an empty folder that becomes the generated bundle: what is written there counts beside what is returned.
    The run is cancelled after `seconds`.
    """

    sources: Sequence[Path]
    reason: str
    bundle: str
    root: Path
    output: Path
    entrypoint: str = ""
    seconds: float = 30.0


class Materializer(Protocol):
    async def materialize(self, request: MaterializeRequest, /) -> Mapping[str, bytes]:
        """The files of the bundle by their path in it. Raising keeps the last good version, which is then `stale`."""
        ...


@hookspec
def pizzabot_materializers() -> list[Offer[Materializer]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the materializers this plugin has; one is used by the bundle that
    names it, or that is called like it::

    @hookimpl
    def pizzabot_materializers() -> list[Offer[Materializer]]:
        return [Offer(name="acme-notes", summary="skills out of the team's notes", create=make_materializer)]
    """
