"""`Materializing`: one run for one bundle, bounded in time and size; a failing one leaves the last good version."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from pizzabot.host.materializing import output
from pizzabot.host.materializing.snapshots import Snapshots, write_files
from pizzabot.host.materializing.states import Materialization, MaterializationState, Snapshot
from pizzabot_hookspecs import Logger, PizzabotError, Unavailable
from pizzabot_hookspecs.bundles import Bundle, MaterializerEntry
from pizzabot_hookspecs.materializers import Materializer, MaterializeReason, MaterializeRequest

LOOK_SECONDS = 0.5
"""Between two looks at how much it has made."""
END_SECONDS = 10.0
"""For a materializer that is cancelled to end; then it is left behind."""
MAX_DETAIL = 500

Make = Callable[[Bundle], Awaitable[Materializer]]
Read = Callable[[Path], Awaitable[Bundle]]


class Materializing:
    """`make` has the materializer of a bundle, `read` reads a folder as a bundle."""

    def __init__(
        self,
        snapshots: Snapshots,
        *,
        make: Make,
        read: Read,
        clock: Callable[[], float],
        logger: Logger,
        redact: Callable[[str], str],
    ) -> None:
        self.snapshots = snapshots
        self._make = make
        self._read = read
        self._clock = clock
        self._logger = logger
        self._redact = redact

    async def run(self, bundle: Bundle, reason: MaterializeReason) -> Materialization:
        """Never raises for what the materializer does. A reason that the manifest does not name runs nothing."""
        entry = _entry(bundle)
        sources = source_paths(entry, bundle.root)
        last = await asyncio.to_thread(self.snapshots.last, bundle.name)
        if reason not in entry.sync:
            return self.unrun(bundle, last, f"it does not run for the reason {reason.value}, and nothing was made yet")
        try:
            made = await self._made(bundle, entry, sources, reason)
        except PizzabotError as error:
            return self._failed(bundle, sources, last, error.detail)
        except Exception as error:  # noqa: BLE001 - a plugin's error is data: reported, and the last good one stays
            return self._failed(bundle, sources, last, f"{type(error).__name__}: {error}")
        self._logger.info("materializer.synced", bundle=bundle.name, reason=reason.value)
        return Materialization(state=MaterializationState.SYNCED, sources=sources, snapshot=made)

    def unrun(self, bundle: Bundle, last: Snapshot | None, otherwise: str) -> Materialization:
        """What holds without a run."""
        sources = source_paths(_entry(bundle), bundle.root)
        if last is None:
            return Materialization(state=MaterializationState.ERROR, sources=sources, detail=otherwise)
        return Materialization(state=MaterializationState.SYNCED, sources=sources, snapshot=last)

    async def _made(
        self, bundle: Bundle, entry: MaterializerEntry, sources: tuple[Path, ...], reason: MaterializeReason
    ) -> Snapshot:
        materializer = await self._make(bundle)
        staging = await asyncio.to_thread(self.snapshots.begin, bundle.name)
        try:
            request = MaterializeRequest(
                sources=sources,
                reason=reason.value,
                bundle=bundle.name,
                root=bundle.root,
                output=staging,
                entrypoint=entry.entrypoint,
                seconds=entry.timeout_ms / 1000,
            )
            files = await _bounded(materializer, request)
            await asyncio.to_thread(output.settle, staging)
            if files:  # behind the check: no link that it made is written through
                await asyncio.to_thread(write_files, staging, files)
                await asyncio.to_thread(output.settle, staging)
            made = await self._read(staging)
            await asyncio.to_thread(output.check_bundle, made, bundle.name)
            return await asyncio.to_thread(self.snapshots.keep, bundle.name, staging, self._clock())
        finally:
            await asyncio.to_thread(shutil.rmtree, staging, ignore_errors=True)

    def _failed(self, bundle: Bundle, sources: tuple[Path, ...], last: Snapshot | None, reason: str) -> Materialization:
        detail = self._redact(" ".join(reason.split()))[:MAX_DETAIL]
        self._logger.warning("materializer.failed", bundle=bundle.name, detail=detail, stale=last is not None)
        state = MaterializationState.ERROR if last is None else MaterializationState.STALE
        return Materialization(state=state, sources=sources, snapshot=last, detail=detail)


async def _bounded(materializer: Materializer, request: MaterializeRequest) -> Mapping[str, bytes]:
    """Its files, or why it was ended. Raises `Unavailable` `materializer_timeout`, `TooLarge`, and what it raises."""
    loop = asyncio.get_running_loop()
    until = loop.time() + request.seconds
    task = asyncio.create_task(_mapping(materializer, request), name=f"materializer of {request.bundle}")
    try:
        while not task.done():
            left = until - loop.time()
            if left <= 0:
                raise Unavailable("materializer_timeout", f"it did not end within {request.seconds:g} s (`timeoutMs`)")
            await asyncio.wait({task}, timeout=min(left, LOOK_SECONDS))
            await asyncio.to_thread(output.check_size, request.output)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=END_SECONDS)


async def _mapping(materializer: Materializer, request: MaterializeRequest) -> Mapping[str, bytes]:
    files = await materializer.materialize(request)
    if not isinstance(files, Mapping) or not all(
        isinstance(path, str) and isinstance(content, bytes) for path, content in files.items()
    ):
        raise Unavailable("materializer_failed", "it returned no files: it has to return paths and their bytes")
    return files


def source_paths(entry: MaterializerEntry, root: Path) -> tuple[Path, ...]:
    """Absolute: `~` and `${HOME}` filled in, relative ones from the bundle's folder."""
    home = os.path.expanduser("~")  # noqa: PTH111 - `Path.home` raises where there is none
    filled = [source.replace("${HOME}", home) for source in entry.sources]
    return tuple(Path(os.path.abspath(root / os.path.expanduser(source))) for source in filled)  # noqa: PTH100, PTH111


def _entry(bundle: Bundle) -> MaterializerEntry:
    assert bundle.materializer is not None  # noqa: S101 - only such are run
    return bundle.materializer
