"""The threads as transports are handed them: `Threads` of the contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from pizzabot.host.ids import checked_id, uuid7
from pizzabot.host.runs.drivers import Changed
from pizzabot.host.runs.engine import RunEngine
from pizzabot.host.runs.hub import Hub
from pizzabot.host.text import clean, to_json
from pizzabot.host.transcripts.thread_log import compaction_setting
from pizzabot.host.transcripts.written_messages import WrittenMessages
from pizzabot_hookspecs import Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.agent_runtimes import AgentRuntime, KeepsHistory
from pizzabot_hookspecs.storage_backends import Storage, Thread, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue, Namespace, ThreadState

MAX_METADATA_KEYS = 64
MAX_METADATA_BYTES = 16 * 1024
"""Of a thread's metadata as JSON: lists of threads repeat it."""
MAX_PAGE = 200
"""Threads in one answer."""
MAX_HISTORY = 1_000
"""Checkpoints in one answer."""


class HostThreads:
    """Implements `pizzabot_hookspecs.host.Threads`; the docstrings are there."""

    def __init__(
        self,
        *,
        storage: Storage,
        engine: RunEngine,
        hub: Hub,
        runtime: Callable[[], Awaitable[AgentRuntime]],
        changed: Changed,
        written: WrittenMessages,
        forget: Callable[[str], None] = lambda _thread_id: None,
        redact: Callable[[str], str] = str,
        deleting: Callable[..., AbstractAsyncContextManager[None]] | None = None,
    ) -> None:
        """`deleting(thread_id, caller=…)` is entered around the deletion of a thread's rows."""
        self._storage = storage
        self._engine = engine
        self._hub = hub
        self._runtime = runtime
        self._changed = changed
        self._written = written
        self._forget = forget
        self._redact = redact
        self._deleting = deleting

    async def create(
        self,
        thread_id: str | None = None,
        /,
        *,
        metadata: Mapping[str, JsonValue] | None = None,
        if_exists: str = "raise",
        caller: Caller,
    ) -> Thread:
        if if_exists not in ("raise", "do_nothing"):
            raise InvalidRequest(
                "invalid_argument", "if_exists must be raise or do_nothing", fields={"if_exists": "raise or do_nothing"}
            )
        if metadata is not None and len(metadata) > MAX_METADATA_KEYS:
            raise InvalidRequest("invalid_argument", f"metadata has more than {MAX_METADATA_KEYS} keys")
        cleaned = clean(dict(metadata or {}))
        if len(to_json(cleaned)) > MAX_METADATA_BYTES:
            raise _wrong("metadata", f"at most {MAX_METADATA_BYTES} bytes of JSON")
        wanted = uuid7() if thread_id is None else checked_id(thread_id, what="thread_id")
        try:
            created = await self._storage.create_thread(wanted, metadata=cleaned, caller=caller)
        except Conflict:
            mine = await self._storage.thread(wanted, caller=caller)
            if if_exists == "raise" or mine is None:
                raise
            return mine
        self._changed(created.owner, wanted)
        return created

    async def get(self, thread_id: str, /, *, caller: Caller) -> Thread:
        thread = await self._storage.thread(checked_id(thread_id, what="thread_id"), caller=caller)
        if thread is None:
            raise NotFound("no_such_thread", f"there is no thread {thread_id!r}")
        return thread

    async def page(
        self, *, limit: int = MAX_PAGE, offset: int = 0, status: ThreadStatus | None = None, caller: Caller
    ) -> Sequence[Thread]:
        if not 1 <= limit <= MAX_PAGE:
            raise _wrong("limit", f"from 1 to {MAX_PAGE}")
        if offset < 0:
            raise _wrong("offset", "0 or more")
        return await self._storage.threads(limit=limit, offset=offset, status=status, caller=caller)

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState:
        await self.get(thread_id, caller=caller)
        runtime = await self._runtime()
        state = await runtime.state(thread_id, caller=caller, checkpoint_id=checkpoint_id)
        if state is None:
            if checkpoint_id is not None:
                raise NotFound("no_such_checkpoint", f"thread {thread_id!r} has no checkpoint {checkpoint_id!r}")
            return never_ran()
        idle = not state["interrupts"] and await self._storage.active_run(thread_id, caller=caller) is None
        if checkpoint_id is None and idle:
            # LangGraph leaves next=["model"] after a stop or a crash; clients would spin for ever (wire.md §8.2). The
            # Python SDK waits for a run as long as there are tasks, and a failed one's stays. Earlier states keep both.
            state["next"] = []
            state["tasks"] = []
        return self._redacted(state)

    async def history(
        self,
        thread_id: str,
        /,
        *,
        limit: int = 10,
        before: str | None = None,
        namespace: Namespace = (),
        caller: Caller,
    ) -> Sequence[ThreadState]:
        if not 1 <= limit <= MAX_HISTORY:
            raise _wrong("limit", f"from 1 to {MAX_HISTORY}")
        await self.get(thread_id, caller=caller)
        states = await (await self._keeper()).history(
            thread_id, limit=limit, before=before, namespace=namespace, caller=caller
        )
        return [self._redacted(state) for state in states]

    async def update_state(
        self,
        thread_id: str,
        values: Mapping[str, JsonValue],
        /,
        *,
        as_node: str | None = None,
        checkpoint_id: str | None = None,
        caller: Caller,
    ) -> ThreadState:
        await self.get(thread_id, caller=caller)
        keeper = await self._keeper()
        runtime = await self._runtime()
        async with self._engine.quiet(thread_id):
            before = await runtime.state(thread_id, caller=caller, checkpoint_id=checkpoint_id)
            state = await keeper.update_state(
                thread_id, clean(dict(values)), as_node=as_node, checkpoint_id=checkpoint_id, caller=caller
            )
            await self._written.tell(thread_id, before, state, earlier=checkpoint_id is not None, caller=caller)
        return self._redacted(state)

    async def _keeper(self) -> KeepsHistory:
        runtime = await self._runtime()
        if not isinstance(runtime, KeepsHistory):
            raise InvalidRequest("not_supported", "the agent runtime in use keeps no history of a thread's states")
        return runtime

    def _redacted(self, state: ThreadState) -> ThreadState:
        """What a provider raised is in its own words: they may hold the key that it was given."""
        for task in state["tasks"]:
            if isinstance(said := task.get("error"), str):
                task["error"] = self._redact(said)
        return state

    async def delete(self, thread_id: str, /, *, caller: Caller) -> bool:
        """A failing step leaves the thread as it is, with its row: a second try goes over the same ground."""
        await self.get(thread_id, caller=caller)
        await self._engine.fence(thread_id)
        try:
            self._hub.close_thread(thread_id)
            runtime = await self._runtime()
            await runtime.forget(thread_id, caller=caller)
            await self._storage.put_setting(compaction_setting(thread_id), None, caller=caller)
            async with AsyncExitStack() as around:
                if self._deleting is not None:
                    await around.enter_async_context(self._deleting(thread_id, caller=caller))
                deleted = await self._storage.delete_thread(thread_id, caller=caller)
            self._forget(thread_id)
            self._changed(caller.owner, thread_id, inbox=True)
            return deleted
        finally:
            self._engine.unfence(thread_id)


def _wrong(field: str, expected: str) -> InvalidRequest:
    return InvalidRequest("invalid_argument", f"{field} must be {expected}", fields={field: f"must be {expected}"})


def never_ran() -> ThreadState:
    """The state of a thread without a turn: present and empty, never an error (wire.md §8.1)."""
    return {
        "values": {},
        "next": [],
        "tasks": [],
        "metadata": {},
        "created_at": None,
        "checkpoint": None,
        "parent_checkpoint": None,
        "interrupts": [],
    }
