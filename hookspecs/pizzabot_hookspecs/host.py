"""`Host`: the use cases, as any transport is handed them (`context.host`). It may grow; a transport only calls it.

Every method takes keyword `caller`. Errors are those of `pizzabot_hookspecs.errors`: a transport maps their classes to
its own statuses and passes `code`, `detail` and `fields` on as they are.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from pizzabot_hookspecs.callers import Caller
from pizzabot_hookspecs.host_files import AttachmentFiles, Folders, Memories, Preferences, Workspace
from pizzabot_hookspecs.host_skills import Bundles, McpServers, Skills
from pizzabot_hookspecs.http_routes import HttpRoutes
from pizzabot_hookspecs.interrupts import Interrupt
from pizzabot_hookspecs.storage_backends import StoredEvent, Thread, ThreadStatus
from pizzabot_hookspecs.wire import JsonValue, Namespace, ThreadState


class Health(StrEnum):
    """`GET /ping` (spec/01 §3). Busy: the listener answers and the graph stack is still being loaded."""

    HEALTHY = "Healthy"
    BUSY = "HealthyBusy"
    UNHEALTHY = "Unhealthy"


class ClientView(StrEnum):
    """How namespaces are shown: stored in the JS form; the Python SDK reads the root's frames at `[]` (wire.md §0)."""

    JS = "js"
    PYTHON = "python"


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """What a connection wants of a thread's log (wire.md §3). No namespaces means all; no channels means none.

    `skip_finished`: without a cursor, begin at the end where the latest run is over and nothing waits for an answer.
    """

    channels: frozenset[str]
    namespaces: tuple[tuple[str, ...], ...] = ()
    depth: int | None = None
    view: ClientView = ClientView.JS
    skip_finished: bool = False


class CommandOutcome(StrEnum):
    """What kind of answer a command got; a transport maps it to a status (HTTP: 200, 200, 400, 422, 404, 503)."""

    DONE = "done"
    REFUSED = "refused"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    NOT_FOUND = "not_found"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True)
class CommandReply:
    """The answer to a command: `envelope` is `{type: success|error, id, …}` of wire.md §2, ready to be sent."""

    outcome: CommandOutcome
    envelope: Mapping[str, Any]


class StopOutcome(StrEnum):
    CANCELLED = "cancelled"
    NO_RUN = "no_run"
    PENDING = "cancellation_pending"


@dataclass(frozen=True, kw_only=True)
class EventBatch:
    """Events of one read, oldest first, mapped to the view and filtered. Both empty: nothing for `idle_seconds`.

    `gap` is set, first on its connection, when `since` asked for what retention removed: requested, earliest, latest.
    """

    events: Sequence[StoredEvent] = ()
    gap: Mapping[str, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Activity:
    """What changed on the caller's threads since the last one; the first of a subscription is how everything is now.

    It tells states, not happenings: what changed twice in between is told once, and a reader that was slow or away
    misses nothing that still holds. All empty: nothing for `idle_seconds`.

    `complete`  the whole: `threads` are the newest ones (at most 200), and what is not among them is not told
    `threads`   rows as they are now, `deleted` the ids of threads that are gone
    `inbox`     everything that waits for a person now (at most 200), None where that did not change
    """

    complete: bool = False
    threads: Sequence[Thread] = ()
    deleted: Sequence[str] = ()
    inbox: Sequence[Interrupt] | None = None


class Threads(Protocol):
    async def create(
        self,
        thread_id: str | None = None,
        /,
        *,
        metadata: Mapping[str, JsonValue] | None = None,
        if_exists: str = "raise",
        caller: Caller,
    ) -> Thread:
        """A new thread; the id is minted where there is none.

        `if_exists` is `raise` (`Conflict` `thread_exists`) or `do_nothing`.

        Raises `InvalidRequest` `invalid_id` for an id that is not `[A-Za-z0-9._~:@-]{1,255}` or is reserved.
        """
        ...

    async def get(self, thread_id: str, /, *, caller: Caller) -> Thread:
        """Raises `NotFound` `no_such_thread`."""
        ...

    async def page(
        self, *, limit: int = 200, offset: int = 0, status: ThreadStatus | None = None, caller: Caller
    ) -> Sequence[Thread]:
        """The caller's threads, newest activity first; at most 200 at once.

        Raises `InvalidRequest` `invalid_argument` for a limit outside 1..200 or a negative offset.
        """
        ...

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState:
        """`next` is empty when no run is live and nothing is pending (wire.md §8.2).

        Raises `NotFound` `no_such_thread`.
        """
        ...

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
        """The thread's checkpoints as they are stored, newest first, those before the checkpoint `before` (exclusive).

        `namespace` is a subagent's (`("tools:<id>",)`), whose own checkpoints are told then. `next` stays what it was:
        history is not cleaned (wire.md §8.2).
        Raises `NotFound` `no_such_thread`, `no_such_checkpoint` for an unknown `before`; `InvalidRequest`
        `invalid_argument` for a limit outside 1..1000, `not_supported` where the runtime keeps no history.
        """
        ...

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
        """Write `values` as if the node had returned them, on the newest checkpoint or on `checkpoint_id`.

        Returns the new state. Raises `NotFound` `no_such_thread`, `no_such_checkpoint`; `Conflict` `thread_busy` while
        a run of the thread is not final or another client writes, `interrupt_pending` while it waits for a person;
        `InvalidRequest` `invalid_values`, `no_such_node`, `not_supported` where the runtime cannot.
        """
        ...

    async def delete(self, thread_id: str, /, *, caller: Caller) -> bool:
        """Stops its run, ends its observers, removes log, rows and checkpoints; whether there was one."""
        ...


class Runs(Protocol):
    async def command(
        self, thread_id: str, body: object, /, *, caller: Caller, idempotency_key: str | None = None
    ) -> CommandReply:
        """Do one command of the protocol: `{id, method, params}` as parsed JSON, or anything else a client sent.

        Never raises for bad input: that is an envelope too. Answers without waiting for a run.
        """
        ...

    async def stop(
        self, thread_id: str, run_id: str | None = None, /, *, caller: Caller, wait_seconds: float = 10.0
    ) -> StopOutcome:
        """Stop the run (or whichever is active). A stale `run_id` touches nothing; with 0 it does not wait."""
        ...

    async def interrupts(self, thread_id: str | None = None, /, *, caller: Caller) -> Sequence[Interrupt]:
        """What waits for a person: the caller's open interrupts, of one thread or of all (the inbox), oldest first."""
        ...

    async def observe(
        self,
        thread_id: str,
        filter: EventFilter,  # noqa: A002 - the wire's word
        /,
        *,
        since: int | None = None,
        idle_seconds: float = 5.0,
        caller: Caller,
    ) -> AsyncGenerator[EventBatch, None]:
        """Awaiting it subscribes and checks the cursor; the generator it returns is closed with `aclose()`.

        The thread's log from `since` (None: its latest run from the start, also one that was only admitted so far),
        then what comes, across runs, for ever.

        An empty batch comes after `idle_seconds` of silence: a moment to send a heartbeat. It ends when the thread is
        deleted or the host stops. A thread that does not exist (yet) is silent, not an error.
        Raises `Conflict` `cursor_ahead` when `since` lies beyond the log's end.
        """
        ...


class ExportFormat(StrEnum):
    MARKDOWN = "md"
    JSON = "json"


class ExportBranches(StrEnum):
    """The path to the thread's head alone, or every branch."""

    PATH = "path"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Export:
    """A whole conversation as a file. It is complete before it is handed out; `chunks` is closed with `aclose()`.

    `size` is in bytes; `as_of_seq` the last event in it, `turns` how many turns it has. `file_name` is ASCII.
    """

    media_type: str
    file_name: str
    size: int
    as_of_seq: int
    turns: int
    chunks: AsyncGenerator[bytes, None]


class Transcripts(Protocol):
    """The conversation as the person sees it: the log, folded (spec/12 §1.1). Answers are JSON as the fold makes it;
    docs/use/protocol.md describes them."""

    async def page(
        self,
        thread_id: str,
        /,
        *,
        limit: int = 20,
        before_seq: int | None = None,
        around_seq: int | None = None,
        head: str | None = None,
        namespace: Namespace = (),
        caller: Caller,
    ) -> Mapping[str, Any]:
        """Turns of the path to the head, or to `head`: the newest, those before a `seq`, or those around one.

        Exact as of `asOfSeq`, with what is being written now. Raises `NotFound` `no_such_thread`, `no_such_turn`;
        `InvalidRequest` `invalid_argument` for a limit outside 1..100 or both `before_seq` and `around_seq`.
        """
        ...

    async def items(
        self,
        thread_id: str,
        turn_id: str,
        /,
        *,
        limit: int = 100,
        before_seq: int | None = None,
        namespace: Namespace = (),
        caller: Caller,
    ) -> Mapping[str, Any]:
        """Older items of one turn, those that its page left out. Raises like `page`; a limit is 1..200."""
        ...

    async def tool_text(
        self, thread_id: str, call_id: str, part: str, /, *, item_id: str | None = None, caller: Caller
    ) -> str:
        """The whole `input` or `output` of a tool call, as it was written.

        `item_id` chooses among several calls of one id; without it the newest counts. Raises `NotFound`
        `no_such_tool_call`, also where that part is missing; `InvalidRequest` `invalid_argument` for another part.
        """
        ...

    async def export(
        self,
        thread_id: str,
        /,
        *,
        format: ExportFormat = ExportFormat.MARKDOWN,  # noqa: A002 - the query's word
        branches: ExportBranches = ExportBranches.PATH,
        caller: Caller,
    ) -> Export:
        """All of the conversation, or an error and nothing. Raises `NotFound` `no_such_thread`, `TooLarge`
        `export_too_large`."""
        ...

    async def choose_head(self, thread_id: str, turn_id: str, /, *, caller: Caller) -> Mapping[str, JsonValue]:
        """Go to a turn's branch: its leaf that was used last becomes the head. `{turnId}`, the leaf.

        Raises `NotFound` `no_such_turn`; `Conflict` `thread_busy`, `interrupt_pending`, `turn_not_settled`,
        `checkpoint_gone`; `InvalidRequest` `not_supported` where the runtime cannot.
        """
        ...

    async def fork(
        self, thread_id: str, turn_id: str | None = None, /, *, new_thread_id: str | None = None, caller: Caller
    ) -> Thread:
        """A new thread with the conversation up to a turn, its last one where None is given. The old one stays.

        Raises what `choose_head` raises, `Conflict` `thread_exists`, `TooLarge` `thread_too_large`.
        """
        ...

    async def compact(
        self, thread_id: str, /, *, idempotency_key: str | None = None, caller: Caller
    ) -> Mapping[str, JsonValue]:
        """Shorten the model's context; what the person sees stays. `{tokensBefore, tokensAfter}`.

        A key compacts once: sent again it gets the first answer. Raises `Conflict` `thread_busy`,
        `interrupt_pending`, `nothing_to_compact`; `InvalidRequest` `not_supported`; `Unavailable` of the model's.
        """
        ...


class Host(Protocol):
    @property
    def threads(self) -> Threads: ...

    @property
    def transcripts(self) -> Transcripts: ...

    @property
    def runs(self) -> Runs: ...

    @property
    def attachments(self) -> AttachmentFiles: ...

    @property
    def workspace(self) -> Workspace: ...

    @property
    def folders(self) -> Folders: ...

    @property
    def memories(self) -> Memories: ...

    @property
    def preferences(self) -> Preferences: ...

    @property
    def skills(self) -> Skills: ...

    @property
    def mcp_servers(self) -> McpServers: ...

    @property
    def bundles(self) -> Bundles: ...

    def identity(self) -> Mapping[str, JsonValue]:
        """`GET /`: service, protocolVersion, apiVersion, version. Public."""
        ...

    def health(self) -> Health: ...

    async def status(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`GET /status`: the model or the three ways to get one, providers, runtime state, storage, transports."""
        ...

    async def models(self, *, caller: Caller, refresh: bool = False) -> Mapping[str, JsonValue]:
        """`GET /models`: models of every provider, each provider's catalogue status, the default."""
        ...

    def plugins(self, *, caller: Caller) -> Mapping[str, JsonValue]:
        """`GET /plugins`, `pizzabot plugins --json`: every Python plugin with state, source, offers or the reason.

        `bundles` beside them are the rows of `Bundles.listing`.
        """
        ...

    async def activity(self, *, idle_seconds: float = 5.0, caller: Caller) -> AsyncGenerator[Activity, None]:
        """Awaiting it subscribes; the generator is closed with `aclose()` and ends when the host stops.

        The first `Activity` is complete. Several changes that come close together are told at once.
        """
        ...

    async def http_routes(self) -> Sequence[HttpRoutes]:
        """What plugins add to the HTTP transport, in the order of their names; broken ones are reported."""
        ...
