"""Bundles put together for a host: the source that loads them, their folders, their materializers, who follows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from pizzabot import __version__
from pizzabot.host.bundles.installing import InstallFolder
from pizzabot.host.bundles.live import LiveBundles
from pizzabot.host.bundles.places import INSTALLED, places_of
from pizzabot.host.bundles.use_case import HostBundles
from pizzabot.host.ground import Ground
from pizzabot.host.materializing.choosing import Materializers
from pizzabot.host.materializing.running import Materializing
from pizzabot.host.materializing.snapshots import FOLDER, Snapshots
from pizzabot.host.mcp.board import McpBoard
from pizzabot.host.plugins.making import PluginMaker
from pizzabot.host.skills.assembly import SkillParts
from pizzabot_hookspecs import PizzabotError
from pizzabot_hookspecs.bundles import BringsBundle, LoadsBundles
from pizzabot_hookspecs.skill_sources import SkillSource


class BundleParts:
    """`use_case` is what transports call."""

    def __init__(self, ground: Ground, maker: PluginMaker, skills: SkillParts, board: McpBoard) -> None:
        self._ground = ground
        self._maker = maker
        self._skills = skills
        self._board = board
        self._logger = ground.logger("bundles")
        self._loader = ""
        folder = InstallFolder(ground.data_root / INSTALLED)
        self.use_case = HostBundles(folder, forget=self._forget, redact=ground.redact)

    async def open(self) -> None:
        """Begin to read, once the sources of skills are made."""
        sources = self._skills.live.sources
        found = next(((name, one) for name, one in sources.items() if isinstance(one, LoadsBundles)), None)
        if found is None:
            return
        try:
            await asyncio.to_thread(self.use_case.folder.prepare)
        except PizzabotError as error:
            self._logger.error("bundles.folder_unusable", code=error.code, detail=error.detail)
        self._loader, source = found
        self.use_case.live = LiveBundles(
            places=places_of(self._ground.settings, _brought(sources)),
            source=source,
            materializing=self._materializing(source),
            apply=self._apply,
            version=__version__,
            logger=self._logger,
        )
        self.use_case.live.start()

    async def close(self) -> None:
        if self.use_case.live is not None:
            await self.use_case.live.close()

    def _materializing(self, source: LoadsBundles) -> Materializing:
        ground = self._ground
        return Materializing(
            Snapshots(ground.data_root / FOLDER),
            make=Materializers(ground, self._maker).of,
            read=lambda folder: source.read(folder, host_version=__version__),
            clock=ground.clock,
            logger=self._logger,
            redact=ground.redact,
        )

    async def _apply(self) -> None:
        await self._skills.live.refresh(self._loader)
        await self._board.ready()
        await self._board.reload()

    async def _forget(self, owner_key: str) -> None:
        await self._skills.enablement.forget(owner_key)
        await self._board.enablement.forget(owner_key)


def _brought(sources: Mapping[str, SkillSource]) -> list[Path]:
    return [source.bundle for source in sources.values() if isinstance(source, BringsBundle)]
