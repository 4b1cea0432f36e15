"""Which models are in memory: loaded on first need, one child each, the one unused longest makes room."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from pizzabot_builtin_plugins.local.process import COMMAND, Launch, ModelProcess
from pizzabot_hookspecs import Logger, Unavailable

CHECK_AFTER_SECONDS = 30.0
"""A child that was last known to answer longer ago than this is asked for its health before it gets a turn."""


class _Seat:
    """The place of one model: its child, once there is one, and who uses it."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.process: ModelProcess | None = None
        self.loading = asyncio.Lock()
        self.places = asyncio.Semaphore(launch.parallel)
        self.users = 0
        self.checked = 0.0
        self.timer: asyncio.TimerHandle | None = None


class Pool:
    """At most `max_loaded` children. All methods belong to the loop that entered it."""

    def __init__(
        self, *, max_loaded: int, idle_seconds: float, start_seconds: float, queue_seconds: float, logger: Logger,
        command: Sequence[str] = COMMAND,
    ) -> None:  # fmt: skip
        self._max_loaded = max_loaded
        self._idle_seconds = idle_seconds
        self._start_seconds = start_seconds
        self._queue_seconds = queue_seconds
        self._logger = logger
        self._command = command
        self._seats: OrderedDict[str, _Seat] = OrderedDict()
        self._freed = asyncio.Condition()
        self._endings: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def use(self, launch: Launch) -> AsyncIterator[ModelProcess]:
        """A child that has `launch` loaded, for one answer. It is not unloaded meanwhile.

        Waits up to `queue_seconds` for a place (TimeoutError), and as long as loading may take for the model. Raises
        `Unavailable` `model_unavailable`.
        """
        seat = await self._sit(launch)
        try:
            await asyncio.wait_for(seat.places.acquire(), self._queue_seconds)
            try:
                yield await self._ready(seat)
            finally:
                seat.places.release()
        finally:
            await self._rise(seat)

    async def close(self) -> None:
        """End every child and take no more. Safe to call twice."""
        self._closed = True
        seats = list(self._seats.values())
        self._seats.clear()
        for seat in seats:
            self._end(seat)
        await asyncio.gather(*self._endings)

    def pids(self) -> dict[str, int]:
        """The children that run now, by the path of their model."""
        return {
            path: seat.process.pid
            for path, seat in self._seats.items()
            if seat.process is not None and seat.process.alive
        }

    async def _sit(self, launch: Launch) -> _Seat:
        async with self._freed:
            if launch.path not in self._seats:
                await asyncio.wait_for(self._freed.wait_for(self._has_room), self._queue_seconds)
            if self._closed:
                raise Unavailable("model_unavailable", "the local models were stopped; start pizzabot again")
            seat = self._seats.get(launch.path)
            if seat is None:
                await self._make_room()
                seat = self._seats[launch.path] = _Seat(launch)
            seat.users += 1
            self._seats.move_to_end(launch.path)
            if seat.timer is not None:
                seat.timer.cancel()
                seat.timer = None
            return seat

    def _has_room(self) -> bool:
        return (
            self._closed or len(self._seats) < self._max_loaded or any(seat.users == 0 for seat in self._seats.values())
        )

    async def _make_room(self) -> None:
        while len(self._seats) >= self._max_loaded:
            path = next(path for path, seat in self._seats.items() if seat.users == 0)
            seat = self._seats.pop(path)
            self._logger.info("local.unloaded", model=seat.launch.name, reason="another model needs the room")
            await asyncio.shield(self._end(seat))

    async def _ready(self, seat: _Seat) -> ModelProcess:
        async with seat.loading:
            now = asyncio.get_running_loop().time()
            process = seat.process
            if process is not None and (now - seat.checked > CHECK_AFTER_SECONDS or not process.alive):
                if await process.healthy():
                    seat.checked = now
                else:
                    self._logger.warning("local.restarted", model=seat.launch.name, reason=process.obituary)
                    await asyncio.shield(self._end(seat))
            if seat.process is None:
                seat.process = await ModelProcess.launch(
                    seat.launch, seconds=self._start_seconds, logger=self._logger, command=self._command
                )
                seat.checked = asyncio.get_running_loop().time()
            return seat.process

    async def _rise(self, seat: _Seat) -> None:
        seat.users -= 1
        if seat.users == 0:
            if seat.process is None or not seat.process.alive:
                self._drop(seat)
            elif self._idle_seconds:
                loop = asyncio.get_running_loop()
                seat.timer = loop.call_later(self._idle_seconds, self._drop, seat)
        async with self._freed:
            self._freed.notify_all()

    def _drop(self, seat: _Seat) -> None:
        """Unload in the background: its time is up, or its child is dead. Who comes meanwhile gets a new seat."""
        if self._seats.get(seat.launch.path) is seat and seat.users == 0:
            del self._seats[seat.launch.path]
            reason = "idle" if seat.process is not None and seat.process.alive else "not running"
            self._logger.info("local.unloaded", model=seat.launch.name, reason=reason)
            self._end(seat)

    def _end(self, seat: _Seat) -> asyncio.Task[None]:
        """A task of the pool's own, so that a cancelled caller does not leave a child half ended."""
        if seat.timer is not None:
            seat.timer.cancel()
        process, seat.process = seat.process, None
        ending = asyncio.get_running_loop().create_task(_close(process))
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
        return ending


async def _close(process: ModelProcess | None) -> None:
    if process is not None:
        await process.close()
