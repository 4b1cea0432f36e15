"""Kind `storage_backends`: everything that must survive. One acts, chosen by `[storage] use`; the built-in is `sqlite`.

`Storage` is the sum of eight Protocols. Rows go in and come out as frozen dataclasses. Every method filters on
`caller.owner`, except for `caller.system`. Times are seconds since the epoch (float) unless a name says otherwise;
how a backend writes them (SQLite: ISO-8601 UTC text) is its own business. The promises are those of
design/durable-runs.md; `pizzabot.testing.StorageContract` is the test of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from pizzabot_hookspecs.callers import Caller
from pizzabot_hookspecs.file_storage import FileStorage, FileVersion
from pizzabot_hookspecs.interrupts import Decision, Intent, Interrupt, NewInterrupt
from pizzabot_hookspecs.offers import Offer, hookspec
from pizzabot_hookspecs.wire import JsonValue, Namespace

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore


class RunStatus(StrEnum):
    """The life of a run: pending → running → cancelling → one of the rest (durable-runs rule 7)."""

    PENDING = "pending"
    RUNNING = "running"
    CANCELLING = "cancelling"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    NEEDS_ATTENTION = "needs_attention"

    @property
    def active(self) -> bool:
        """Whether the run holds its thread: at most one row per thread does."""
        return self in (RunStatus.RUNNING, RunStatus.CANCELLING)

    @property
    def final(self) -> bool:
        return not self.active and self is not RunStatus.PENDING


class Multitask(StrEnum):
    """What a request wants on a busy thread (durable-runs rule 1)."""

    INTERRUPT = "interrupt"
    ENQUEUE = "enqueue"
    REJECT = "reject"


class CancelReason(StrEnum):
    """Why a run is being cancelled; it decides the run's last frame (wire.md §0)."""

    STOPPED = "stopped"
    SUPERSEDED = "superseded"
    SHUTDOWN = "shutdown"


class ThreadStatus(StrEnum):
    """What LangGraph's clients know of a thread: `busy` while a run of it is not final, `interrupted` while it waits
    for a person (and nothing is busy), `error` when the run that ended last failed or timed out, else `idle`.

    A message that waits behind an open question may not begin (`claim_run`) and makes nothing busy. Of the runs that
    have ended, one that was never claimed counts only where none was.
    """

    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True, slots=True)
class Thread:
    """A conversation. `rev` is not here yet; `next_seq` is the number the thread's next event gets, from 1.

    `status` is what the thread's runs and interrupts were at the moment of reading; nobody writes it.
    """

    thread_id: str
    owner: str
    title: str
    source: str
    created_at: float
    last_activity_at: float
    next_seq: int
    status: ThreadStatus = ThreadStatus.IDLE
    model_id: str | None = None
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class NewRun:
    """A run to admit. `fingerprint` is a digest of the request: the same key with another one is a mismatch.

    `input` and `options` are JSON objects; `message_id` is the id of the (last) human message, by which a resent
    message is recognised (durable-runs rule 11); None for a fork or a run without a message.
    """

    run_id: str
    thread_id: str
    input: Mapping[str, Any]
    options: Mapping[str, Any]
    fingerprint: str
    multitask: Multitask = Multitask.INTERRUPT
    idempotency_key: str | None = None
    message_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """A row of `runs`. `epoch` grows with each claim; a write that carries an older one is refused.

    `first_seq` is the place of the run's first event, None before there is one. `released` counts the claims that its
    server gave back in order: those did not fail.
    """

    run_id: str
    thread_id: str
    owner: str
    status: RunStatus
    input: Mapping[str, Any]
    options: Mapping[str, Any]
    created_at: float
    epoch: int = 0
    attempt: int = 0
    released: int = 0
    server_id: str | None = None
    lease_until: float | None = None
    first_seq: int | None = None
    started_at: float | None = None
    ended_at: float | None = None
    cancel_requested_at: float | None = None
    cancel_reason: CancelReason | None = None
    idempotency_key: str | None = None
    message_id: str | None = None
    error_code: str | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """The answer to `admit_run`. `created` is false when the request was known: `run` is then the first one.

    `replaces` is the active run that this admission asked to stop (strategy `interrupt`), `last_seq` the thread's
    highest event before the run's first, 0 for none.
    """

    run: Run
    created: bool
    replaces: Run | None
    last_seq: int


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    """An event to append. `data` is encoded JSON (UTF-8), `timestamp` milliseconds, `name` that of a custom frame."""

    method: str
    data: bytes
    timestamp: int
    namespace: Namespace = ()
    node: str | None = None
    name: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredEvent:
    """An event of the log. `seq` counts from 1 per thread, without gaps; `run_id` is None for the thread's facts."""

    seq: int
    thread_id: str
    run_id: str | None
    method: str
    data: bytes
    timestamp: int
    namespace: Namespace = ()
    node: str | None = None
    name: str | None = None

    @property
    def event_id(self) -> str:
        """`synth:<run_id>:<seq>`, for an event without a run `synth:thread:<seq>` (wire.md §0)."""
        return f"synth:{self.run_id or 'thread'}:{self.seq}"


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedEvents:
    """Deltas of one block that become one: `data` takes the place of `last_seq`, the events from `first_seq` on go."""

    first_seq: int
    last_seq: int
    data: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class LogBounds:
    """What a thread's log holds: the first and last stored `seq` (0, 0 when empty) and where its latest run begins.

    `latest_run_seq` is the `seq` of the first event of the run that began last; None when no run has an event.
    """

    first_seq: int
    last_seq: int
    latest_run_seq: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRow:
    """One turn as the host's fold of the log left it. `body` is the host's JSON: a backend keeps it as it is.

    `seq` is the turn's place on the thread, `settled` says that no event can change it any more.
    """

    turn_id: str
    seq: int
    rev: int
    parent_id: str | None
    settled: bool
    body: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnPlace:
    """A `TurnRow` without its body: where the turn stands in the tree of its thread."""

    turn_id: str
    seq: int
    rev: int
    parent_id: str | None
    settled: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TranscriptIndex:
    """The rows of a thread's transcript: they are the log up to `cursor`, folded. 0 and empty: nothing was kept yet.

    `summary` is the host's JSON of what belongs to no turn, empty where there is nothing.
    """

    cursor: int = 0
    summary: bytes = b""
    turns: Sequence[TurnPlace] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreadCopy:
    """A thread to store whole: what forking one makes. Everything is the new thread's: its id, runs that are final,
    events with `seq` from 1 without gaps, each of one of the runs or of none, file versions as they were numbered.
    `attachments` are the ids of those that its messages refer to; unknown ones and those of others are passed over."""

    thread_id: str
    title: str
    source: str = "fork"
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    model_id: str | None = None
    runs: Sequence[Run] = ()
    events: Sequence[StoredEvent] = ()
    files: Sequence[FileVersion] = ()
    attachments: Sequence[str] = ()


class ThreadStorage(Protocol):
    async def create_thread(
        self,
        thread_id: str,
        /,
        *,
        caller: Caller,
        title: str = "New conversation",
        source: str = "user",
        metadata: Mapping[str, JsonValue] | None = None,
    ) -> Thread:
        """Insert a thread. Raises `Conflict` `thread_exists`, also when it belongs to another owner."""
        ...

    async def thread(self, thread_id: str, /, *, caller: Caller) -> Thread | None:
        """The caller's thread, or None."""
        ...

    async def threads(
        self, *, caller: Caller, limit: int = 200, offset: int = 0, status: ThreadStatus | None = None
    ) -> Sequence[Thread]:
        """The caller's threads, newest activity first; `status` leaves only those that are so now."""
        ...

    async def pin_model(self, thread_id: str, model_id: str | None, /, *, caller: Caller) -> None:
        """Remember the model that the thread's last turn used."""
        ...

    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        """Remove the row with its runs, events, transcript, interrupts, intents, workspace and attachments in one
        transaction; whether there was one."""
        ...

    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        """Store a thread that is a copy, as the caller's, with its runs and its log in one transaction.

        The runs keep their status, times and options; no epoch, lease, key or message id goes with them. The ids of
        their messages are taken all the same (`admit_run`). Raises
        `Conflict` `thread_exists`, `run_exists`; `InvalidRequest` `invalid_copy`.
        """
        ...


class RunStorage(Protocol):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        """Store a pending run, its input and (if missing) its thread in one transaction that survives power loss.

        In this order, inside the transaction: a thread of another owner raises `NotFound` `no_such_thread`. A known
        `run_id`, `idempotency_key` or `message_id` of this thread and owner returns the first run with
        `created=False`, or raises `Conflict` `idempotency_mismatch` when `fingerprint` differs. So does another
        request that brings a message (`input.messages[]`) under an `id` that a message with other `parts` of an
        earlier run of the thread has, a copied one included: it would take that message's place. Without `message_id`,
        for a fork, it may. With an open interrupt
        on the thread, every strategy raises `Conflict` `interrupt_pending`, whose `fields` map `interrupt_ids` to the
        ids, joined by commas (rule 1). With an active or pending run, `REJECT` raises `Conflict` `run_active`;
        `ENQUEUE` goes to the end of the thread's queue; `INTERRUPT` goes to its
        front, but behind resumes that wait (see `decide`): in front of them it would drop an approval. It sets the
        active run to `cancelling` (reason superseded), and marks pending runs that were themselves admitted as
        replacements as superseded, resumes never.
        """
        ...

    async def known_request(self, new: NewRun, /, *, caller: Caller) -> Admission | None:
        """What `admit_run` and `decide` would answer to a request that was made before; None for a new one.

        Nothing is stored, and neither the thread's runs nor its interrupts matter. Raises `NotFound` `no_such_thread`
        and `Conflict` `idempotency_mismatch` where `admit_run` does.
        """
        ...

    async def claim_run(
        self, run_id: str, /, *, server_id: str, takeover: bool = False, lease_seconds: float = 30.0, caller: Caller
    ) -> Run | None:
        """pending → running, with the next epoch and attempt; None when it is no longer pending or the thread is held.

        A thread with an open interrupt is held for every run but a resume (see `decide`) and one that is to be
        cancelled: a message that was queued before the question waits for its answer (rules 1 and 9).

        `takeover` claims a run that is active under another, dead server instead, leaving its status. The lease runs
        `lease_seconds` from now, by the store's clock.
        """
        ...

    async def renew_leases(self, server_id: str, /, *, lease_seconds: float, caller: Caller) -> frozenset[str]:
        """Move the deadline of every active run of this server forward, never back; the ids of those runs.

        A run that is missing from the answer was taken over or is final: its server stops writing.
        """
        ...

    async def release_runs(self, server_id: str, /, *, caller: Caller) -> frozenset[str]:
        """The server goes in order: each of its active runs counts one more in `released` and its lease ends now.

        Status, epoch and attempt stay; whoever takes the run over goes on. The ids of those runs.
        """
        ...

    async def append_events(self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        """Append a batch in one transaction and return the `seq` of its first event; the rest follow without gaps.

        Raises `Conflict` `lease_lost` when `epoch` is not the row's or the run is final: nothing is written then.
        """
        ...

    async def finish_run(
        self,
        run_id: str,
        epoch: int,
        events: Sequence[NewEvent],
        /,
        *,
        status: RunStatus,
        error_code: str | None = None,
        error: str | None = None,
        interrupts: Sequence[NewInterrupt] = (),
        withdraw: bool = False,
        caller: Caller,
    ) -> int:
        """Append the last events, the terminal one too, set the final status and open interrupts, in one transaction.

        `withdraw`: the turn was given up, and what it asked with it. Every open interrupt of the thread becomes
        `WITHDRAWN` (`decided_by` stays None, `decided_at` is now) and every resume that waits is asked to stop, in the
        same transaction; `interrupts` is empty then.

        An interrupt whose id the thread knows already stays as it is: a resumed run reports again what is still open,
        and what was decided meanwhile stays decided. Returns and raises like `append_events`.
        """
        ...

    async def request_cancel(self, run_id: str, /, *, reason: CancelReason, caller: Caller) -> Run | None:
        """Write down that the run is to stop: running → cancelling; a pending run stays pending with the request set.

        Returns the row as it is now; None when there is no such run of the caller's or it is final.
        The first reason stays.
        """
        ...

    async def run(self, run_id: str, /, *, caller: Caller) -> Run | None: ...

    async def active_run(self, thread_id: str, /, *, caller: Caller) -> Run | None: ...

    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        """The front of the thread's queue: the first run that `claim_run` would claim if no run were active.

        Behind resumes (see `decide`), runs that are asked to stop come first, in the order of their admission, so that
        a replaced run ends before the one that replaces it.
        """
        ...

    async def waiting_runs(self, thread_id: str, /, *, caller: Caller) -> int:
        """How many runs wait in the thread's queue."""
        ...

    async def unfinished_runs(self, *, caller: Caller) -> Sequence[Run]:
        """Every run that is not final, oldest first: what a start finds after a crash."""
        ...


class InterruptStorage(Protocol):
    async def open_interrupts(
        self, thread_id: str | None = None, /, *, limit: int = 200, caller: Caller
    ) -> Sequence[Interrupt]:
        """The caller's open interrupts, oldest first; of one thread, or of all (the inbox)."""
        ...

    async def interrupt(self, interrupt_id: str, /, *, caller: Caller) -> Interrupt | None:
        """The caller's interrupt. An id is unique in its thread; of several the open one counts, else the newest."""
        ...

    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        """Decide interrupts of one thread and admit the run that goes on, in one transaction that survives power loss.

        All or nothing. Raises `NotFound` `no_such_interrupt` for an id that is not on `resume.thread_id` or not the
        caller's, `Conflict` `already_decided` for one that is decided: `detail` says by whom and when (ISO-8601), for
        a withdrawn one that it was withdrawn (`fields` then have no `decided_by`). A
        known `run_id`, `idempotency_key` or `message_id` with the same fingerprint returns the first admission
        (`created=False`) without deciding again. No decision at all is `no_such_interrupt` too, two for one interrupt
        are `InvalidRequest` `invalid_decision`. `fields` of `already_decided` has `interrupt_id`, `decided_by`,
        `decided_at`. `resume` goes to the front of the queue, behind resumes that wait already; it is not
        refused for the thread's other open interrupts, replaces nothing, and `resume.multitask` is ignored.
        """
        ...

    async def open_intent(
        self, run_id: str, epoch: int, /, *, call_id: str, tool: str, namespace: Namespace, caller: Caller
    ) -> None:
        """Store an intent, so that it survives power loss. Raises `Conflict` `lease_lost` like `append_events`.

        Opening one that is open does nothing; one that was closed is open again, and then the last.
        """
        ...

    async def close_intent(self, run_id: str, epoch: int, call_id: str, /, *, caller: Caller) -> None:
        """Raises like `open_intent`; closing what is not open does nothing."""
        ...

    async def open_intents(self, run_id: str, /, *, caller: Caller) -> Sequence[Intent]:
        """In the order in which they were opened."""
        ...


class EventLog(Protocol):
    async def events(self, thread_id: str, /, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        """Up to `limit` events with `seq > after`, ascending. Empty for a thread that is not the caller's."""
        ...

    async def log_bounds(self, thread_id: str, /, *, caller: Caller) -> LogBounds: ...

    async def mergeable_runs(self, *, ended_before: float, limit: int, caller: Caller) -> Sequence[Run]:
        """Final runs that ended before then and were not merged yet, the one that ended first first.

        Never the newest run of a thread: the one that `log_bounds` names, until a later one has begun in the log.
        """
        ...

    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        """Replace deltas by merged ones and remember that the run is merged, in one transaction; `merged` may be empty.

        The event at `last_seq` keeps its `seq`, method, namespace, node and timestamp. Raises `Conflict` `run_active`
        for a run that is not final, `InvalidRequest` `invalid_range` for a range that is not wholly this run's or
        overlaps another one, `NotFound` `no_such_run`. What an earlier merge took is still this run's, so that a merge
        whose answer was lost can be sent again. Numbers and `log_bounds.latest_run_seq` stay; `events` has gaps then.
        """
        ...


class TranscriptStorage(Protocol):
    """The thread's own facts, and the transcript as rows. Rows can be dropped at any time: the log makes them anew."""

    async def append_facts(self, thread_id: str, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        """Append events that belong to no run, in one transaction that survives power loss; the `seq` of the first.

        The number is taken from the thread's row inside the transaction, so that runs may write at the same time.
        Raises `NotFound` `no_such_thread`.
        """
        ...

    async def latest_fact(self, thread_id: str, names: Collection[str], /, *, caller: Caller) -> StoredEvent | None:
        """The thread's newest event whose `name` is one of `names`; quick also in a log of a million events."""
        ...

    async def transcript_index(self, thread_id: str, /, *, caller: Caller) -> TranscriptIndex:
        """What is kept, every turn without its body, ascending by `seq`. Empty for a thread that is not the caller's.

        One consistent read: cursor, summary and turns are of one moment. 10,000 turns take at most 20 ms.
        """
        ...

    async def transcript_turns(
        self, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller
    ) -> Sequence[TurnRow]:
        """The rows of these turns, ascending by `seq`; ids that are not there are left out. Any number of ids."""
        ...

    async def put_transcript(
        self,
        thread_id: str,
        turns: Sequence[TurnRow],
        /,
        *,
        after: int,
        cursor: int,
        summary: bytes,
        caller: Caller,
    ) -> bool:
        """Insert or replace rows and move the cursor from `after` to `cursor`, in one transaction.

        False, and nothing is written, when the cursor is not `after` (somebody else was quicker) or the thread is gone.
        """
        ...

    async def drop_transcript(self, thread_id: str, /, *, caller: Caller) -> None:
        """Remove the rows and set the cursor to 0. The log stays."""
        ...


class SettingStorage(Protocol):
    async def setting(self, key: str, /, *, caller: Caller) -> JsonValue: ...

    async def put_setting(self, key: str, value: JsonValue, /, *, caller: Caller) -> None:
        """Write a JSON value; None deletes."""
        ...


class GraphStorage(Protocol):
    """What a LangGraph runtime keeps. Opened on first call, so that a host without one never imports LangGraph."""

    async def checkpointer(self) -> BaseCheckpointSaver[Any]: ...

    async def store(self) -> BaseStore: ...


class Storage(
    ThreadStorage,
    RunStorage,
    InterruptStorage,
    EventLog,
    TranscriptStorage,
    SettingStorage,
    FileStorage,
    GraphStorage,
    Protocol,
):
    """Everything. An async context manager opens and closes it; the host does both, and closes it last of all."""

    @property
    def shared(self) -> bool:
        """Whether several servers may use it at once.

        Then lease deadlines count, and a server takes over what another one left past its deadline. Else only a
        changed epoch is loss of ownership: a laptop that slept keeps its runs (durable-runs rule 6).
        """
        ...


@hookspec
def pizzabot_storage_backends() -> list[Offer[Storage]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the backends this plugin has; `[storage] use` picks one by name.

    What `create` returns must be an async context manager: the host enters it before anything else and leaves it last.
    An offer with the name of a built-in (`sqlite`) stands in for it and reaches it by `context.inner()`.
    """
