"""The scripted host itself: threads and runs per owner, and what tests ask of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Literal, Self

from pizzabot.testing.scripted_host.log import Log
from pizzabot.testing.scripted_host.script import Run, begin
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound, PizzabotError, TooLarge
from pizzabot_hookspecs.host import CommandOutcome, CommandReply, EventBatch, EventFilter, Health, StopOutcome
from pizzabot_hookspecs.http_routes import HttpRoutes
from pizzabot_hookspecs.interrupts import Interrupt
from pizzabot_hookspecs.storage_backends import StoredEvent, Thread
from pizzabot_hookspecs.wire import PROTOCOL_VERSION, JsonValue, Namespace, ThreadState

MAX_THREADS = 1_000


@dataclass
class Conversation:
    """One owner's thread. `created_at` is None while somebody only listens for a thread that is not there yet."""

    log: Log
    owner: str
    created_at: float | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    messages: list[dict[str, Any]] = field(default_factory=list)
    run: Run | None = None
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def thread(self) -> Thread:
        created = self.created_at or 0.0
        return Thread(
            thread_id=self.log.thread_id,
            owner=self.owner,
            title="New conversation",
            source="user",
            created_at=created,
            last_activity_at=self.log.events[-1].timestamp / 1000 if self.log.events else created,
            next_seq=self.log.last_seq + 1,
            metadata=self.metadata,
        )


class ScriptedHost:
    """A `pizzabot_hookspecs.host.Host`. Use it as an async context manager: on exit its runs are ended.

    `health_now` and `mounts` are what it answers; `next_reply` is returned (or raised) by the next command instead of
    doing it; `calls` has every command as (thread id, body, caller, idempotency key). Methods that take no caller are
    for tests and mean the owner `local`.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self.health_now = Health.HEALTHY
        self.mounts: Sequence[HttpRoutes] = ()
        self.next_reply: CommandReply | Exception | None = None
        self.calls: list[tuple[str, object, Caller, str | None]] = []
        self.waiting: list[Interrupt] = []
        self.threads = ScriptedThreads(self)
        self.runs = ScriptedRuns(self)
        self._conversations: dict[tuple[str, str], Conversation] = {}
        self._ids = count(1)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        conversation.created_at = conversation.created_at or now
        timestamp = int(now * 1000)
        return conversation.log.append(method, data, timestamp=timestamp, namespace=namespace, node=node, run_id=run_id)

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

    def drop(self, thread_id: str, caller: Caller) -> Conversation | None:
        return self._conversations.pop((caller.owner, thread_id), None)

    def mint(self, prefix: str) -> str:
        return f"{prefix}_{next(self._ids)}"


class ScriptedThreads:
    """`host.threads`."""

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host

    async def create(
        self,
        thread_id: str | None = None,
        /,
        *,
        metadata: Mapping[str, JsonValue] | None = None,
        if_exists: str = "raise",
        caller: Caller,
    ) -> Thread:
        wanted = thread_id or self._host.mint("thread")
        if not wanted.isprintable() or "/" in wanted or len(wanted) > 255:
            raise InvalidRequest("invalid_id", "the id of a thread has at most 255 characters and no slash")
        conversation = self._host.conversation(wanted, caller.owner)
        if conversation.created_at is None:
            conversation.created_at = self._host.clock()
            conversation.metadata = metadata or {}
        elif if_exists != "do_nothing":
            raise Conflict("thread_exists", f"thread {wanted} exists; pass if_exists=do_nothing to get it")
        return conversation.thread

    async def get(self, thread_id: str, /, *, caller: Caller) -> Thread:
        return self._host.known(thread_id, caller).thread

    async def status(self, thread_id: str, /, *, caller: Caller) -> str:
        run = self._host.known(thread_id, caller).run
        return "busy" if run is not None and run.active else "idle"

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState:
        conversation = self._host.known(thread_id, caller)
        return {
            "values": {"messages": list(conversation.messages)} if conversation.messages else {},
            "next": [],
            "tasks": [],
            "metadata": {},
            "created_at": None,
            "checkpoint": {"thread_id": thread_id, "checkpoint_ns": "", "checkpoint_id": checkpoint_id},
            "parent_checkpoint": None,
            "interrupts": [],
        }

    async def delete(self, thread_id: str, /, *, caller: Caller) -> bool:
        conversation = self._host.drop(thread_id, caller)
        if conversation is None:
            return False
        if conversation.run is not None and conversation.run.active:
            await _interrupt(conversation.run, "CANCELLED")
            await conversation.run.ended()
        conversation.log.close()
        return conversation.created_at is not None


class ScriptedRuns:
    """`host.runs`."""

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host

    async def command(
        self, thread_id: str, body: object, /, *, caller: Caller, idempotency_key: str | None = None
    ) -> CommandReply:
        self._host.calls.append((thread_id, body, caller, idempotency_key))
        scripted, self._host.next_reply = self._host.next_reply, None
        if isinstance(scripted, Exception):
            raise scripted
        if scripted is not None:
            return scripted
        if not isinstance(body, dict):
            return _refusal(CommandOutcome.MALFORMED, None, "invalid_argument", "a command is a JSON object")
        try:
            return await self._do(thread_id, body, caller, idempotency_key)
        except PizzabotError as error:
            return _refusal(CommandOutcome.REFUSED, body.get("id"), error.code, error.detail)

    async def interrupts(self, thread_id: str | None = None, /, *, caller: Caller) -> Sequence[Interrupt]:
        """Those that a test put into `ScriptedHost.waiting`."""
        return [
            found
            for found in self._host.waiting
            if found.owner == caller.owner and thread_id in (None, found.thread_id)
        ]

    async def stop(
        self, thread_id: str, run_id: str | None = None, /, *, caller: Caller, wait_seconds: float = 10.0
    ) -> StopOutcome:
        run = self._host.conversation(thread_id, caller.owner).run
        if run is None or not run.active or run_id not in (None, run.run_id):
            return StopOutcome.NO_RUN
        await _interrupt(run, "CANCELLED")
        try:
            async with asyncio.timeout(wait_seconds):
                await run.ended()
        except TimeoutError:
            return StopOutcome.PENDING
        return StopOutcome.CANCELLED

    async def observe(
        self,
        thread_id: str,
        filter: EventFilter,  # noqa: A002 - the contract's name
        /,
        *,
        since: int | None = None,
        idle_seconds: float = 5.0,
        caller: Caller,
    ) -> AsyncGenerator[EventBatch, None]:
        log = self._host.conversation(thread_id, caller.owner).log
        if since is not None and since > log.last_seq:
            raise Conflict("cursor_ahead", f"since {since} lies beyond the log's end {log.last_seq}")
        batches = log.follow(filter, since, idle_seconds)
        await anext(batches)  # attached from here on: closing it detaches, also when nobody ever reads
        return batches

    async def _do(self, thread_id: str, body: Mapping[str, Any], caller: Caller, key: str | None) -> CommandReply:
        method, command_id, params = body.get("method"), body.get("id"), _object(body.get("params"))
        if method == "run.start":
            last_seq = self._host.conversation(thread_id, caller.owner).log.last_seq
            run_id = await self._start(thread_id, params, caller, key)
            return _success(command_id, {"run_id": run_id}, meta={"applied_through_seq": last_seq})
        if method == "run.stop":
            await self.stop(thread_id, params.get("run_id"), caller=caller)
            return _success(command_id, {})
        if method == "state.get":
            state = await self._host.threads.state(thread_id, caller=caller)
            return _success(command_id, {"values": state["values"], "checkpoint": None})
        message = f"unknown command {str(method)[:80]!r}; known are run.start, run.stop, state.get"
        return _refusal(CommandOutcome.UNKNOWN, command_id, "unknown_command", message)

    async def _start(self, thread_id: str, params: Mapping[str, Any], caller: Caller, key: str | None) -> str:
        conversation = self._host.conversation(thread_id, caller.owner)
        if key is not None and key in conversation.keys:
            return conversation.keys[key]
        run = Run(run_id=self._host.mint("run"), text=_last_text(params))
        active = conversation.run if conversation.run is not None and conversation.run.active else None
        if active is not None and params.get("multitask_strategy") == "reject":
            raise Conflict("run_active", f"run {active.run_id} is active on thread {thread_id}; stop it first")
        if active is not None:
            await _interrupt(active, "SUPERSEDED")
            await active.ended()
        if key is not None:
            conversation.keys[key] = run.run_id
        conversation.run = run
        conversation.created_at = conversation.created_at or self._host.clock()
        begin(conversation.log, run, conversation.messages, self._host.clock)
        return run.run_id


async def _interrupt(run: Run, ending: Literal["CANCELLED", "SUPERSEDED"]) -> None:
    """Tell the run to stop. The pause lets one that has only just begun write its first frame."""
    await asyncio.sleep(0)
    run.interrupt(ending)


def _last_text(params: Mapping[str, Any]) -> str:
    messages = _object(params.get("input")).get("messages")
    if not isinstance(messages, list) or not messages or not isinstance(messages[-1], dict):
        raise InvalidRequest("invalid_argument", "`params.input.messages` must be a list that ends with a message")
    content = messages[-1].get("content")
    return content if isinstance(content, str) else ""


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _success(command_id: object, result: Mapping[str, Any], **extra: Mapping[str, Any]) -> CommandReply:
    envelope = {"type": "success", "id": command_id, "result": result, **extra}
    return CommandReply(outcome=CommandOutcome.DONE, envelope=envelope)


def _refusal(outcome: CommandOutcome, command_id: object, code: str, message: str) -> CommandReply:
    envelope = {"type": "error", "id": command_id, "error": code, "message": message}
    return CommandReply(outcome=outcome, envelope=envelope)
