"""The few threads in which areas of files do what blocks, and the order of writes to one folder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from pizzabot_hookspecs import Unavailable

THREADS = 4
"""File operations that run at the same time: a disk that hangs takes these and nothing else."""
WALKS = 2
"""Finds and searches among them: some threads are left for what is quick."""
MAX_WAITING = 1_000
"""Operations that run or wait; one more is refused."""
_LOCKS = 32

_P = ParamSpec("_P")
_T = TypeVar("_T")


class FilePool:
    """Closed by whoever made it. Threads are started when there is something to do."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="files")
        self._locks = tuple(threading.Lock() for _ in range(_LOCKS))
        self._walks = asyncio.Semaphore(WALKS)
        self._waiting = 0

    async def run(self, work: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Raises what `work` raises; `Unavailable` `files_busy` when too many wait already."""
        self._count()
        try:
            future = self._executor.submit(work, *args, **kwargs)
        except BaseException:
            self._waiting -= 1
            raise
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: _on(loop, self._done))
        return await asyncio.wrap_future(future)

    async def walk(self, work: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """As `run`, for what may take seconds."""
        self._count()
        try:
            await self._walks.acquire()
        finally:
            self._done()
        try:
            return await self.run(work, *args, **kwargs)
        finally:
            self._walks.release()

    def _count(self) -> None:
        if self._waiting >= MAX_WAITING:
            raise Unavailable("files_busy", f"{MAX_WAITING} file operations wait already; try again in a moment")
        self._waiting += 1

    def _done(self) -> None:
        self._waiting -= 1

    def lock(self, root: str) -> threading.Lock:
        """What a write below `root` holds, so that two of ours never overlook each other."""
        return self._locks[hash(root) % _LOCKS]

    def close(self) -> None:
        """What has not begun never does; nothing is waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)


def _on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)
