"""The scripted host itself: threads and runs per owner, and what tests ask of it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self

from pizzabot.testing.scripted_host.activity import ActivityFeed
from pizzabot.testing.scripted_host.conversation import Conversation
from pizzabot.testing.scripted_host.log import Log
from pizzabot.testing.scripted_host.runs import ScriptedRuns
from pizzabot.testing.scripted_host.threads import ScriptedThreads
from pizzabot.testing.scripted_host.transcripts import ScriptedTranscripts
from pizzabot_hookspecs import Caller, NotFound, TooLarge
from pizzabot_hookspecs.host import Activity, CommandReply, Health
from pizzabot_hookspecs.http_routes import HttpRoutes
from pizzabot_hookspecs.interrupts import Interrupt
from pizzabot_hookspecs.storage_backends import StoredEvent, Thread
from pizzabot_hookspecs.wire import PROTOCOL_VERSION, JsonValue, Namespace, ThreadState

MAX_THREADS = 1_000


class ScriptedHost:
    """A `pizzabot_hookspecs.host.Host`. Use it as an async context manager: on exit its runs are ended.

    `health_now` and `mounts` are what it answers; `next_reply` is returned (or raised) by the next command instead of
    doing it; `calls` has every command as (thread id, body, caller, idempotency key). `histories` has the earlier
    states of a thread by its id, newest first, for a test to fill. `waiting` is what waits for a person:
    `set_waiting` also tells those who follow the activity. Methods that take no caller are for tests and mean the owner
    `local`.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.health_now = Health.HEALTHY
        self.mounts: Sequence[HttpRoutes] = ()
        self.next_reply: CommandReply | Exception | None = None
        self.calls: list[tuple[str, object, Caller, str | None]] = []
        self.waiting: list[Interrupt] = []
        self.histories: dict[str, list[ThreadState]] = {}
        self.feed = ActivityFeed()
        self.threads = ScriptedThreads(self)
        self.runs = ScriptedRuns(self)
        self.transcripts = ScriptedTranscripts(self)
        self._conversations: dict[tuple[str, str], Conversation] = {}
        self._ids = count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.feed.close()
        for owner, thread_id in list(self._conversations):
            await self.threads.delete(thread_id, caller=Caller(owner=owner))

    def identity(self) -> Mapping[str, JsonValue]:
        return {"service": "scripted", "protocolVersion": PROTOCOL_VERSION, "apiVersion": "1", "version": "0"}

    def health(self) -> Health:
        return self.health_now

    async def status(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        return {"model": "scripted", "owner": caller.owner}

    async def models(self, *, caller: Caller, refresh: bool = False) -> Mapping[str, JsonValue]:
        return {"models": [], "default": "scripted", "owner": caller.owner, "refreshed": refresh}

    def plugins(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        return {"plugins": [], "owner": caller.owner}

    async def activity(self, *, idle_seconds: float = 5.0, caller: Caller) -> AsyncGenerator[Activity, None]:
        told = self.feed.follow(lambda: (self.rows(caller.owner), self.inbox(caller.owner)), idle_seconds)
        await anext(told)  # attached from here on: closing it detaches, also when nobody ever reads
        return told

    async def http_routes(self) -> Sequence[HttpRoutes]:
        return self.mounts

    def append(
        self,
        thread_id: str,
        method: str,
        data: Mapping[str, Any],
        *,
        namespace: Namespace = (),
        node: str | None = None,
        run_id: str | None = None,
    ) -> StoredEvent:
        """Put one event into the thread's log, outside any run; its observers get it."""
        conversation = self.conversation(thread_id)
        now = self.clock()
        self.begin(conversation)
        timestamp = int(now * 1000)
        return conversation.log.append(method, data, timestamp=timestamp, namespace=namespace, node=node, run_id=run_id)

    def set_waiting(self, *interrupts: Interrupt) -> None:
        """From now on exactly these wait for a person."""
        self.waiting[:] = interrupts
        self.feed.changes.notify()

    def events(self, thread_id: str) -> tuple[StoredEvent, ...]:
        return tuple(self.conversation(thread_id).log.events)

    def forget_before(self, thread_id: str, seq: int) -> None:
        """What retention does: the log begins at `seq` from now on."""
        self.conversation(thread_id).log.forget_before(seq)

    def release(self, thread_id: str) -> None:
        """Let a run that holds go on to its end."""
        run = self.conversation(thread_id).run
        if run is not None:
            run.released.set()

    async def observed(self, thread_id: str, observers: int = 1) -> None:
        """Wait until exactly so many observers are attached; 0 waits until all of them are gone."""
        log = self.conversation(thread_id).log
        await log.changes.until(lambda: log.observers == observers)

    async def followed(self, subscribers: int = 1) -> None:
        """Wait until exactly so many follow the activity of any owner; 0 waits until all of them are gone."""
        await self.feed.changes.until(lambda: self.feed.subscribers == subscribers)

    async def settled(self, thread_id: str) -> None:
        """Wait until the thread's latest run has written its last frame."""
        conversation = self.conversation(thread_id)
        await conversation.log.changes.until(lambda: conversation.run is not None and not conversation.run.active)

    async def logged(self, thread_id: str, holds: Callable[[StoredEvent], bool]) -> StoredEvent:
        """Wait for an event in the log and return it."""
        log = self.conversation(thread_id).log
        await log.changes.until(lambda: any(holds(event) for event in log.events))
        return next(event for event in log.events if holds(event))

    def conversation(self, thread_id: str, owner: str = "local") -> Conversation:
        """The thread, or an empty place for one. Raises `TooLarge` `too_many_threads`."""
        key = (owner, thread_id)
        if key not in self._conversations and len(self._conversations) >= MAX_THREADS:
            raise TooLarge("too_many_threads", f"a scripted host keeps {MAX_THREADS} threads")
        return self._conversations.setdefault(key, Conversation(log=Log(thread_id), owner=owner))

    def known(self, thread_id: str, caller: Caller) -> Conversation:
        """Raises `NotFound` `no_such_thread`."""
        conversation = self._conversations.get((caller.owner, thread_id))
        if conversation is None or conversation.created_at is None:
            raise NotFound("no_such_thread", f"there is no thread {thread_id}; create it, or start a run on it")
        return conversation

    def begin(self, conversation: Conversation) -> None:
        """The thread exists from now on, if it did not already."""
        if conversation.created_at is None:
            conversation.created_at = self.clock()
            self.feed.changes.notify()

    def row(self, conversation: Conversation) -> Thread:
        return conversation.row(waiting=bool(self.inbox(conversation.owner, conversation.log.thread_id)))

    def rows(self, owner: str) -> list[Thread]:
        """The owner's threads, newest activity first; of two that are as new, the one that was created later."""
        owned = [found for found in self._conversations.values() if found.owner == owner]
        rows = [self.row(found) for found in reversed(owned) if found.created_at is not None]
        return sorted(rows, key=lambda row: row.last_activity_at, reverse=True)

    def inbox(self, owner: str, thread_id: str | None = None) -> list[Interrupt]:
        """What waits for the owner, on one thread or on all."""
        return [found for found in self.waiting if found.owner == owner and thread_id in (None, found.thread_id)]

    def drop(self, thread_id: str, caller: Caller) -> Conversation | None:
        return self._conversations.pop((caller.owner, thread_id), None)

    def mint(self, prefix: str) -> str:
        return f"{prefix}_{next(self._ids)}"
