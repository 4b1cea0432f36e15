"""Which agent has which sandbox: one for each invocation of an agent, made when it first evals, gone when it ends.

A session holds up nobody while it is not used: when all sandboxes are taken, the one unused for longest makes room,
and its agent is told at its next eval.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from weakref import WeakKeyDictionary

from pizzabot_builtin_plugins.deepagents_runtime.interpreter.bounds import (
    IDLE_SECONDS,
    MAX_DELEGATING_SANDBOXES,
    MAX_SANDBOXES,
    SANDBOX_WAIT_SECONDS,
)
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.guest import Guest
from pizzabot_builtin_plugins.deepagents_runtime.interpreter.threads import in_thread, start_thread


class NoRoom(Exception):
    """All sandboxes were at work for as long as an eval waits."""


class Room:
    """Places for sandboxes of one kind, on one loop."""

    def __init__(self, places: int) -> None:
        self._places = asyncio.Semaphore(places)
        self._waiting = 0
        self._unused: dict[Session, None] = {}  # unused for longest first

    async def enter(self) -> None:
        """Take a place. Raises `NoRoom`."""
        if self._places.locked():
            self._make()
        self._waiting += 1
        try:
            async with asyncio.timeout(SANDBOX_WAIT_SECONDS):
                await self._places.acquire()
        except TimeoutError:
            raise NoRoom from None
        finally:
            self._waiting -= 1

    def leave(self) -> None:
        self._places.release()

    def unused(self, session: Session) -> None:
        self._unused[session] = None
        if self._waiting:
            self._make()

    def used(self, session: Session) -> None:
        self._unused.pop(session, None)

    def _make(self) -> None:
        for session in self._unused:
            session.drop()
            return


_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Room, Room]] = WeakKeyDictionary()


def room(*, delegating: bool) -> Room:
    """Two kinds, so that a sandbox that waits for subagents never takes the place that one of them needs."""
    loop = asyncio.get_running_loop()
    if loop not in _rooms:
        _rooms[loop] = Room(MAX_SANDBOXES), Room(MAX_DELEGATING_SANDBOXES)
    return _rooms[loop][delegating]


@dataclass(eq=False)
class Session:
    """The sandbox of one invocation of an agent, while it has one. Evals of one session take turns."""

    room: Room
    forget: Callable[[], object]
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    guest: Guest | None = None
    lost: bool = False
    _idle: asyncio.TimerHandle | None = None

    async def open(self, make: Callable[[], Guest]) -> Guest:
        """The sandbox, a new one where there is none. Raises `NoRoom` and what `make` raises."""
        self._used()
        if self.guest is None:
            await self.room.enter()
            try:
                self.guest = await _made(make)
            except BaseException:
                self.room.leave()
                raise
        return self.guest

    def rest(self) -> None:
        """Not used from now on. When that lasts the sandbox goes, and later what is known of the session."""
        self._used()
        if self.guest is not None:
            self.room.unused(self)
        self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self.expire)

    def expire(self) -> None:
        if self.guest is None:
            self.forget()
        else:
            self.drop()
            self.rest()

    def drop(self) -> None:
        """Stop what runs in the sandbox and give its memory back, in a thread. Safe to call at any time."""
        self._used()
        guest, self.guest = self.guest, None
        if guest is not None:
            self.lost = True
            self.room.leave()
            guest.stop()
            start_thread(guest.close)

    def _used(self) -> None:
        self.room.used(self)
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


class Sessions:
    """Those of one middleware, by what `session_key` names."""

    def __init__(self, *, delegating: bool) -> None:
        self._delegating = delegating
        self._sessions: dict[str, Session] = {}

    @asynccontextmanager
    async def using(self, key: str) -> AsyncIterator[Session]:
        """The session, with nobody else in it."""
        session = self._sessions.get(key)
        if session is None:
            forget = partial(self._sessions.pop, key, None)
            session = self._sessions[key] = Session(room(delegating=self._delegating), forget)
        async with session.turn:
            try:
                yield session
            finally:
                session.rest()

    def end(self, key: str) -> None:
        session = self._sessions.pop(key, None)
        if session is not None:
            session.drop()

    def __len__(self) -> int:
        return len(self._sessions)


async def _made(make: Callable[[], Guest]) -> Guest:
    future = in_thread(make)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        future.add_done_callback(_closed)
        raise


def _closed(future: asyncio.Future[Guest]) -> None:
    if future.exception() is None:
        start_thread(future.result().close)
