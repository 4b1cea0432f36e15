"""`FolderWatch`: tells bursts of changes in a folder. watchfiles waits in a thread of its own.

The watch is set up before the server listens: with 1,000 skills that takes 30 ms in which nothing else of the process
can run (the extension keeps the interpreter's lock), and later nobody's stream should stand still for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TYPE_CHECKING

from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.support.readable_folders import readable_folders

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

QUIET_MS = 50
"""Without another change: then the burst is over."""
BURST_MS = 200
"""A burst that does not end is told after so long."""
POLL_MS = 300
"""Between two looks where the system has no watches left to give."""
WAKE_MS = 500
"""How soon the thread sees that it is to end."""


class FolderWatch:
    """Made with `open_watch`. One reader at a time; what changes while nobody reads is told to the next one."""

    def __init__(self, notify: RustNotify) -> None:
        self._notify = notify
        self._stop = threading.Event()
        self._changed = asyncio.Event()
        self._failure: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._follow, name="watch skills", daemon=True)
        self._thread.start()

    async def bursts(self) -> AsyncGenerator[None, None]:
        """Goes on until it is closed. Raises what the watch died of."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._failure is not None:
                raise self._failure
            yield

    def fail(self, error: Exception) -> None:
        """What it watches is gone: whoever reads is told, and begins another one."""
        self._failure = error
        self._changed.set()

    def close(self) -> None:
        """The thread ends within `WAKE_MS`; nobody waits for it."""
        self._stop.set()

    def _follow(self) -> None:
        try:
            while not self._stop.is_set():
                if isinstance(self._notify.watch(BURST_MS, QUIET_MS, WAKE_MS, self._stop), set):
                    self._tell()
        except BaseException as error:  # noqa: BLE001 - raised again in the loop
            self._failure = error
            self._tell()
        finally:
            self._notify.close()

    def _tell(self) -> None:
        if not self._stop.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)


async def open_watch(folder: Path, logger: Logger) -> FolderWatch:
    """With native watches; by polling where there are none left (inotify's limit). Raises `OSError`."""
    return FolderWatch(await asyncio.to_thread(_notify, folder, logger))


def _notify(folder: Path, logger: Logger) -> RustNotify:
    from watchfiles._rust_notify import RustNotify

    try:
        try:
            return RustNotify([str(folder)], False, False, POLL_MS, True, False)  # noqa: FBT003 - it takes no keywords
        except PermissionError:
            return RustNotify(readable_folders([folder]), False, False, POLL_MS, True, True)  # noqa: FBT003
    except OSError as error:
        logger.warning("skills.watch_polls", cause=str(error), milliseconds=POLL_MS)
        return RustNotify([str(folder)], False, True, POLL_MS, True, False)  # noqa: FBT003
