"""Where weights are put together: one installer of a name at a time, in a folder that is gone afterwards.

Nothing is ever visible under its final name before it is complete and verified: it is renamed there, or not at all.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pizzabot_hookspecs import Unavailable

LOCK_SECONDS = 3600.0
"""The longest wait for another process that installs the same model."""

_POLL_SECONDS = 0.1
_SPARE_BYTES = 64 * 1024 * 1024


@asynccontextmanager
async def workplace(folder: Path, name: str) -> AsyncIterator[Path]:
    """An empty folder on the disk of `folder`, held by this process alone; removed at the end, whatever happens.

    What a killed process left in it is removed first. Raises `Unavailable` `models_folder` where it cannot be made.
    """
    work = folder / ".partial" / name
    try:
        work.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(work.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(
            "models_folder",
            f"the folder of models {folder} cannot be written: {error.strerror}. "
            "Choose another one with PIZZABOT_MODELS_DIR or models_dir",
        ) from error
    try:
        await _acquire(lock, name)
        await asyncio.to_thread(_empty, work)
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)  # not in a thread: a cancelled task has to finish this
    finally:
        os.close(lock)


async def _acquire(lock: int, name: str) -> None:
    try:
        async with asyncio.timeout(LOCK_SECONDS):
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    return
                except BlockingIOError:
                    await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise Unavailable(
            "weights_unavailable", f"another process has been installing {name!r} for an hour; stop it and try again"
        ) from error


def _empty(work: Path) -> None:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(mode=0o700)


def check_room(folder: Path, needed: int) -> None:
    """Raises `Unavailable` `disk_full` where `needed` bytes and some spare do not fit on the disk of `folder`."""
    free = shutil.disk_usage(folder).free
    if free < needed + _SPARE_BYTES:
        raise Unavailable(
            "disk_full",
            f"{needed / 1e6:.0f} MB are needed in {folder} and {free / 1e6:.0f} MB are free. "
            "Make room, or choose another folder with PIZZABOT_MODELS_DIR",
        )
