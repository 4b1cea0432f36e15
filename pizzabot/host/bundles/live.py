"""`LiveBundles`: the bundles as they are now, read anew whenever a folder changes, their materializers run when due.

Static bundles count at once; a materializer runs behind them, with what it made last in use meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar, cast

from pizzabot.host.materializing.running import Materializing
from pizzabot.host.materializing.states import Materialization, MaterializationState, Snapshot
from pizzabot_hookspecs import Logger, PizzabotError
from pizzabot_hookspecs.bundles import Bundle, BundlePlace, BundleStatus, LoadRequest, LoadsBundles
from pizzabot_hookspecs.materializers import MaterializeReason

WATCH_AGAIN_SECONDS = 5.0
"""After a watch that broke; everything is read again then, so nothing is missed."""
LOAD_SECONDS = 60.0
"""For the source to read every folder; then what it told before stays."""
RUNS_AT_ONCE = 2
"""Materializers that run at the same time."""

T = TypeVar("T")

_RUNNING = Materialization(state=MaterializationState.RUNNING)


class LiveBundles:
    """Owned by one host, used from its loop. `apply` has skills and MCP servers follow what was loaded."""

    def __init__(
        self,
        *,
        places: Sequence[BundlePlace],
        source: LoadsBundles,
        materializing: Materializing,
        apply: Callable[[], Awaitable[None]],
        version: str,
        logger: Logger,
    ) -> None:
        self.materializing = materializing
        self.bundles: Sequence[Bundle] = ()
        self.materializations: dict[str, Materialization] = {}
        self.writing = asyncio.Lock()
        self._places = places
        self._source = source
        self._apply = apply
        self._version = version
        self._logger = logger
        self._snapshots: dict[str, Snapshot] = {}
        self._ran: dict[str, Materialization] = {}
        """What came of runs whose output is not in use yet: a row that says so finds its skills there."""
        self._applied: Sequence[Bundle] | None = None
        self._closing = False
        self._first = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self) -> None:
        self._begin(self._work(), "bundles")

    async def ready(self) -> None:
        """Until every folder was read once; materializers may be running then."""
        await self._first.wait()

    async def close(self) -> None:
        """Ends what runs, materializers too: they leave nothing half done."""
        self._closing = True
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def whole(self, work: Coroutine[Any, Any, T], name: str) -> T:
        """Done to its end, also when whoever asked for it is gone."""
        return await asyncio.shield(self._begin(work, name))

    async def read(self, folder: Path) -> Bundle:
        return await self._source.read(folder, host_version=self._version)

    async def reload(self, reason: MaterializeReason | None = None, only: str | None = None) -> None:
        """Under `writing`: read everything, run what is due, follow. Without a reason only new bundles' run."""
        await self._load()
        due = self._due(reason, only)
        try:
            if due:
                await self._run_all(due)
                await self._load()
            await self._follow(anew=reason is MaterializeReason.MANUAL)
        finally:
            self.materializations |= self._ran
            self._ran.clear()
        self._forget_missing()

    def forget(self, name: str) -> None:
        """What was generated for it counts no more."""
        self.materializations.pop(name, None)
        self._snapshots.pop(name, None)

    async def _work(self) -> None:
        try:
            self._snapshots = await asyncio.to_thread(self.materializing.snapshots.every)
            await self._changed(MaterializeReason.STARTUP)
        finally:
            self._first.set()
        while True:
            try:
                # A generator in all but its Protocol: closing it ends what it holds.
                async with aclosing(cast("Any", self._source.bundle_changes(self._places))) as changes:
                    async for _ in changes:
                        await self._changed(None)
            except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and tried again
                self._logger.error("bundles.watch_failed", cause=type(error).__name__, detail=str(error))
            await asyncio.sleep(WATCH_AGAIN_SECONDS)
            await self._changed(None)

    async def _changed(self, reason: MaterializeReason | None) -> None:
        try:
            async with self.writing:
                await self.reload(reason)
        except Exception as error:
            self._logger.exception("bundles.load_failed", cause=type(error).__name__)

    async def _load(self) -> None:
        generated = {name: snapshot.folder for name, snapshot in self._snapshots.items()}
        request = LoadRequest(places=self._places, generated=generated, host_version=self._version)
        async with asyncio.timeout(LOAD_SECONDS):
            self.bundles = tuple(await self._source.load(request))
        for bundle in self.materialized():
            if bundle.name in self._snapshots and bundle.name not in self.materializations:
                last = self._snapshots[bundle.name]
                self.materializations[bundle.name] = self.materializing.unrun(bundle, last, "")
        self._first.set()

    def materialized(self) -> list[Bundle]:
        """Those that have a materializer which may run: of two of one name the one that is used."""
        found: dict[str, Bundle] = {}
        for bundle in self.bundles:
            if bundle.materializer is None or bundle.status in {BundleStatus.DISABLED, BundleStatus.INCOMPATIBLE}:
                continue
            known = found.setdefault(bundle.name, bundle)
            if known.status is BundleStatus.FAILED and bundle.status is BundleStatus.LOADED:
                found[bundle.name] = bundle
        taken = {bundle.name: bundle for bundle in self.bundles if bundle.status is BundleStatus.LOADED}
        return [bundle for name, bundle in found.items() if taken.get(name, bundle) is bundle]

    def _due(self, reason: MaterializeReason | None, only: str | None) -> list[tuple[Bundle, MaterializeReason]]:
        due: list[tuple[Bundle, MaterializeReason]] = []
        if self._closing:
            return due
        for bundle in self.materialized():
            if reason is not None and only in {None, bundle.name}:
                due.append((bundle, reason))
            elif bundle.name not in self.materializations:
                due.append((bundle, MaterializeReason.INSTALL))
        return due

    async def _run_all(self, due: Sequence[tuple[Bundle, MaterializeReason]]) -> None:
        new = [bundle.name for bundle, _ in due if bundle.name not in self.materializations]
        self.materializations |= dict.fromkeys(new, _RUNNING)
        slots = asyncio.Semaphore(RUNS_AT_ONCE)
        try:
            await self._follow()
            await asyncio.gather(*(self._run(bundle, why, slots) for bundle, why in due))
        finally:
            for name in new:
                if name not in self._ran and self.materializations.get(name) is _RUNNING:
                    del self.materializations[name]  # it was not told: the next reload runs it

    async def _run(self, bundle: Bundle, reason: MaterializeReason, slots: asyncio.Semaphore) -> None:
        before = self.materializations[bundle.name]
        async with slots:
            now = await self.materializing.run(bundle, reason)
        idle = bundle.materializer is not None and reason not in bundle.materializer.sync
        if idle and before is not _RUNNING and before.snapshot == now.snapshot:
            return  # nothing ran: what is known of the last run stays
        self._ran[bundle.name] = now
        if now.snapshot is not None:
            self._snapshots[bundle.name] = now.snapshot

    def _forget_missing(self) -> None:
        """A bundle that is gone and comes back is a new one."""
        names = {bundle.name for bundle in self.materialized()}
        for name in self.materializations.keys() - names:
            del self.materializations[name]

    async def _follow(self, *, anew: bool = False) -> None:
        """What a server writes into its bundle's folder changes nothing, and nobody is asked anything then."""
        if self.bundles == self._applied and not anew:
            return
        try:
            await self._apply()
            self._applied = self.bundles
        except PizzabotError as error:
            self._logger.error("bundles.follow_failed", code=error.code, detail=error.detail)

    def _begin(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        """An error is whoever asked's; where they are gone it is not asyncio's to complain of."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.info("bundles.refused", what=task.get_name(), cause=type(error).__name__)
