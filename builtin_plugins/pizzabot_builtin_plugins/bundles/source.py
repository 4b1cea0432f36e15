"""The two sources, which share what was loaded last: `BundleSkills` reads, `BundleServers` tells the servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pizzabot_builtin_plugins.bundles.loading import load_all
from pizzabot_builtin_plugins.bundles.reading import Reader
from pizzabot_builtin_plugins.bundles.skills import SkillFolders
from pizzabot_hookspecs import Context, Logger
from pizzabot_hookspecs.bundles import Bundle, BundlePlace, LoadRequest
from pizzabot_hookspecs.mcp_servers import McpServerDefinition
from pizzabot_hookspecs.skill_sources import RawSkill

FOLDER = "plugins"
"""Of the data root: what is read where no host says what to read."""
FIRST_SECONDS = 2.0
"""For the first loading, after which skills and servers are told without bundles."""


class Loaded:
    """What was loaded last. `alone` is loaded by whoever asks first; without it they wait for the host."""

    def __init__(self, alone: LoadRequest | None = None) -> None:
        self._alone = alone
        self._folders = SkillFolders()
        self._disk = threading.Lock()
        self._loading = asyncio.Lock()
        self._first = asyncio.Event()
        self.bundles: Sequence[Bundle] = ()

    async def load(self, request: LoadRequest) -> Sequence[Bundle]:
        async with self._loading:
            self.bundles = await asyncio.to_thread(self._load, request)
            self._first.set()
            return self.bundles

    async def read(self, folder: Path, host_version: str) -> Bundle:
        reader = Reader(host_version=host_version, folders=SkillFolders(), generated={})
        return await asyncio.to_thread(reader.read, folder)

    async def ready(self) -> Sequence[Bundle]:
        """Nothing where the first loading takes long: a folder on a drive that is away must not hold up other sources.
        Whoever loads has everybody ask again."""
        if self._alone is not None and not self._first.is_set():
            await self.load(self._alone)
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_SECONDS):
                await self._first.wait()
        return self.bundles

    def _load(self, request: LoadRequest) -> Sequence[Bundle]:
        with self._disk:
            self._folders.forget_missing()
            reader = Reader(host_version=request.host_version, folders=self._folders, generated=request.generated)
            return tuple(load_all(request.places, reader))


class BundleSkills:
    """A `SkillSource` and a `LoadsBundles`."""

    def __init__(self, loaded: Loaded, logger: Logger) -> None:
        self._loaded = loaded
        self._logger = logger

    async def skills(self) -> Sequence[RawSkill]:
        return [skill for bundle in await self._loaded.ready() for skill in bundle.skills]

    async def load(self, request: LoadRequest, /) -> Sequence[Bundle]:
        return await self._loaded.load(request)

    async def read(self, folder: Path, /, *, host_version: str) -> Bundle:
        return await self._loaded.read(folder, host_version)

    async def bundle_changes(self, places: Sequence[BundlePlace], /) -> AsyncIterator[None]:
        from pizzabot_builtin_plugins.bundles.watching import bursts

        async with aclosing(bursts([place.path for place in places], self._logger)) as found:
            async for _ in found:
                yield


class BundleServers:
    """An `McpServerSource`. What changes is told by the host, which loads."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    async def servers(self) -> Sequence[McpServerDefinition]:
        return [server for bundle in await self._loaded.ready() for server in bundle.servers]


_OF_HOSTS: WeakKeyDictionary[Any, Loaded] = WeakKeyDictionary()
"""Both sources of a host share one; it goes with the host."""
_SHARING = threading.Lock()


def create_skills(context: Context) -> BundleSkills:
    return BundleSkills(_shared(context), context.logger)


def create_servers(context: Context) -> BundleServers:
    return BundleServers(_shared(context))


def _shared(context: Context) -> Loaded:
    if context.host is None:
        return Loaded(LoadRequest(places=[BundlePlace(path=context.data_root / FOLDER, removable=True)]))
    with _SHARING:
        return _OF_HOSTS.setdefault(context.host, Loaded())
