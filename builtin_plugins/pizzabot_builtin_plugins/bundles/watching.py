"""`bursts`: an item for each burst of changes in the folders of bundles, also in those that are made later."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.support.readable_folders import readable_folders

QUIET_MS = 50
"""Without another change: then the burst is over."""
BURST_MS = 300
"""A burst that does not end is told after so long."""
POLL_MS = 500
"""Between two looks where the system has no watches left to give."""
WAKE_MS = 1_000
"""How soon the thread sees a folder that is new or gone, and that nobody listens any more."""

_NOISE = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""Folders in which programs write all the time, and no bundle has anything."""


async def bursts(folders: Sequence[Path], logger: Logger) -> AsyncGenerator[None, None]:
    """Goes on until it is closed. Raises what the watch died of."""
    loop = asyncio.get_running_loop()
    changed, stop = asyncio.Event(), threading.Event()
    failure: list[BaseException] = []

    def tell() -> None:
        if not stop.is_set():
            loop.call_soon_threadsafe(changed.set)

    def watch() -> None:
        try:
            while not stop.is_set():
                _watch(folders, stop, tell, logger)
        except BaseException as error:  # noqa: BLE001 - raised again in the loop
            failure.append(error)
            tell()

    threading.Thread(target=watch, name="watch bundles", daemon=True).start()
    try:
        while True:
            await changed.wait()
            changed.clear()
            if failure:
                raise failure[0]
            yield
    finally:
        stop.set()


def _watch(folders: Sequence[Path], stop: threading.Event, tell: Callable[[], None], logger: Logger) -> None:
    """Until the set of folders is another one. Native watches; polling where there are none."""
    watched = _present(folders)
    if not watched:
        tell()
        while not stop.wait(WAKE_MS / 1000):
            if _present(folders):
                return
        return
    try:
        try:
            _follow(folders, watched, stop, tell, poll=False)
        except PermissionError:
            _follow(folders, watched, stop, tell, poll=False, locked=True)
    except OSError as error:
        logger.warning("bundles.watch_polls", cause=str(error), milliseconds=POLL_MS)
        _follow(folders, watched, stop, tell, poll=True)


def _follow(
    folders: Sequence[Path],
    watched: frozenset[Path],
    stop: threading.Event,
    tell: Callable[[], None],
    *,
    poll: bool,
    locked: bool = False,
) -> None:
    """`locked`: one of the folders below cannot be read, and is passed over."""
    from watchfiles import watch

    first = True
    for changes in watch(
        *(readable_folders(watched) if locked else sorted(watched)),
        watch_filter=lambda _change, path: not _NOISE.intersection(Path(path).parts),
        debounce=BURST_MS,
        step=QUIET_MS,
        stop_event=stop,
        rust_timeout=WAKE_MS,
        yield_on_timeout=True,
        force_polling=poll,
        poll_delay_ms=POLL_MS,
        ignore_permission_denied=locked,
    ):
        moved = _present(folders) != watched
        if changes or first or moved:
            tell()
        first = False
        if moved:
            return


def _present(folders: Sequence[Path]) -> frozenset[Path]:
    """Those that are there, and what links in them lead to: a bundle may be linked into the folder."""
    found: set[Path] = set()
    for folder in folders:
        if folder.is_dir():
            found.add(folder)
            try:
                found |= {
                    Path(os.path.realpath(entry.path))
                    for entry in os.scandir(folder)
                    if entry.is_symlink() and entry.is_dir()
                }
            except OSError:
                continue
    return frozenset(found)
