"""`HostBundles`: what a transport can do with bundles (`pizzabot_hookspecs.host_skills.Bundles`)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from pizzabot.host.bundles.archives import files_of_archive
from pizzabot.host.bundles.installing import InstallFolder
from pizzabot.host.bundles.live import LiveBundles
from pizzabot.host.bundles.rows import bundle_row
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.bundles import MANIFEST, Bundle, BundleStatus
from pizzabot_hookspecs.materializers import MaterializeReason
from pizzabot_hookspecs.wire import JsonValue

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class HostBundles:
    """`live` is None until plugins are there, and where none of them loads bundles. `forget` removes an owner's
    switches of skills and servers."""

    def __init__(
        self, folder: InstallFolder, *, forget: Callable[[str], Awaitable[None]], redact: Callable[[str], str]
    ) -> None:
        self.live: LiveBundles | None = None
        self.folder = folder
        self._forget = forget
        self._redact = redact

    def rows(self) -> list[dict[str, JsonValue]]:
        """As far as they are read now, by name."""
        if self.live is None:
            return []
        used = {id(bundle) for bundle in self.live.materialized()}
        told = self.live.materializations
        return [
            bundle_row(bundle, told.get(bundle.name) if id(bundle) in used else None, self._redact)
            for bundle in sorted(self.live.bundles, key=lambda bundle: (bundle.name, str(bundle.root)))
        ]

    async def listing(self, *, caller: Caller) -> Mapping[str, Any]:  # noqa: ARG002 - the contract's; one owner so far
        if self.live is not None:
            await self.live.ready()
        return {"bundles": self.rows()}

    async def reload(self, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002
        live = self._live()

        async def work() -> None:
            async with live.writing:
                await live.reload(MaterializeReason.MANUAL)

        await live.whole(work(), "reload bundles")
        return {"reloaded": True}

    async def refresh(self, name: str, /, *, caller: Caller) -> Mapping[str, Any]:  # noqa: ARG002
        live = self._live()
        await live.ready()

        async def work() -> Mapping[str, Any]:
            async with live.writing:
                self._check_materialized(live, name)
                await live.reload(MaterializeReason.MANUAL, only=name)
                self._check_materialized(live, name)
                return {"name": name, "materialization": live.materializations[name].to_json()}

        return await live.whole(work(), f"refresh {name[:64]}")

    async def import_archive(self, archive: bytes, /, *, caller: Caller) -> Mapping[str, Any]:  # noqa: ARG002
        live = self._live()
        await live.ready()
        files = await asyncio.to_thread(files_of_archive, archive)
        return await live.whole(self._install(live, files), "install a bundle")

    async def delete(self, name: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:  # noqa: ARG002
        live = self._live()
        if not _NAME.fullmatch(name):
            problem = "has to be 1 to 64 of a-z 0-9 -, a letter or digit first"
            raise InvalidRequest("invalid_name", f"`name` {problem}", fields={"name": problem})
        await live.ready()
        await live.whole(self._uninstall(live, name), f"delete {name}")
        return {"deleted": True}

    async def _install(self, live: LiveBundles, files: Mapping[str, bytes]) -> Mapping[str, Any]:
        async with live.writing:
            staged = await asyncio.to_thread(self.folder.stage, files)
            try:
                bundle = await live.read(staged)
                self._check_new(live, bundle)
                placed = await asyncio.to_thread(self.folder.place, staged, bundle.name)
            except BaseException:
                await asyncio.to_thread(self.folder.erase, staged)
                raise
            live.forget(bundle.name)  # an older one's, which was deleted by hand
            await asyncio.to_thread(live.materializing.snapshots.forget, bundle.name)
            await self._activate(live, placed, bundle.name)
        return {"name": bundle.name}

    async def _activate(self, live: LiveBundles, placed: Path, name: str) -> None:
        """In use, beside all that were, or nothing of it left."""
        before = {bundle.root for bundle in live.bundles if bundle.status is BundleStatus.LOADED}
        try:
            await live.reload(MaterializeReason.INSTALL, only=name)
            self._check_active(live, name, before)
        except BaseException:
            await self._remove(live, placed, name)
            raise

    def _check_active(self, live: LiveBundles, name: str, before: AbstractSet[Path]) -> None:
        displaced = [one for one in live.bundles if one.root in before and one.status is not BundleStatus.LOADED]
        if displaced:
            why = f"with it the plugin {displaced[0].name!r} could not be used any more: {displaced[0].detail}"
            raise Conflict("activation_failed", f"the plugin {name!r} was not installed: {why}")
        row = next((row for row in self.rows() if row["name"] == name and row["removable"]), None)
        if row is None or row["status"] not in {BundleStatus.LOADED.value, BundleStatus.DISABLED.value}:
            why = "it was not found" if row is None else str(row.get("detail", row["status"]))
            raise Conflict("activation_failed", f"the plugin {name!r} was not installed: {why}")

    async def _uninstall(self, live: LiveBundles, name: str) -> None:
        async with live.writing:
            bundle = next((one for one in live.bundles if one.name == name and one.removable), None)
            folder = None if bundle is None else await asyncio.to_thread(self.folder.folder_of, bundle.root)
            if folder is None:
                raise NotFound("no_such_plugin", f"there is no installed plugin {name!r} that could be deleted")
            await self._remove(live, folder, name)
            await self._forget(f"plugin:{name}")

    async def _remove(self, live: LiveBundles, folder: Path, name: str) -> None:
        """The manifest first: its servers end when the others are read again, and write nothing any more then."""
        await asyncio.to_thread(self.folder.hide, folder)
        live.forget(name)
        await live.reload()
        await asyncio.to_thread(self.folder.erase, folder)
        await asyncio.to_thread(live.materializing.snapshots.forget, name)

    def _check_new(self, live: LiveBundles, bundle: Bundle) -> None:
        if bundle.status is BundleStatus.FAILED:
            code = "invalid_manifest" if bundle.file == MANIFEST else "invalid_bundle"
            raise InvalidRequest(code, f"the plugin cannot be used: {bundle.detail}")
        if bundle.status is BundleStatus.INCOMPATIBLE:
            raise Conflict("activation_failed", f"the plugin {bundle.name!r} was not installed: {bundle.detail}")
        if any(known.name == bundle.name for known in live.bundles):
            raise Conflict("already_exists", f"there is a plugin {bundle.name!r} already")

    def _check_materialized(self, live: LiveBundles, name: str) -> None:
        if not any(bundle.name == name for bundle in live.materialized()):
            raise NotFound("no_such_materialization", f"there is no plugin {name[:80]!r} with a materializer")

    def _live(self) -> LiveBundles:
        if self.live is None:
            raise Conflict("plugins_disabled", "nothing loads bundles here: the plugin bundles is switched off")
        return self.live
