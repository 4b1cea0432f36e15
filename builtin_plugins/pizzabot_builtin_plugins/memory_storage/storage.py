"""`MemoryStorage`: the contract's `Storage` without a disk. `tables` has the rules, here they are awaited."""

from __future__ import annotations

import asyncio
import importlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pizzabot_builtin_plugins.memory_storage.tables import Tables
from pizzabot_hookspecs import Caller, Unavailable
from pizzabot_hookspecs.file_storage import Attachment, FileVersion, FolderGrant, NewFileVersion
from pizzabot_hookspecs.interrupts import Decision, Intent, Interrupt, NewInterrupt
from pizzabot_hookspecs.storage_backends import (
    Admission,
    CancelReason,
    LogBounds,
    MergedEvents,
    NewEvent,
    NewRun,
    Run,
    RunStatus,
    StoredEvent,
    Thread,
    ThreadCopy,
    ThreadStatus,
    TranscriptIndex,
    TurnRow,
)
from pizzabot_hookspecs.wire import JsonValue, Namespace

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore


class MemoryStorage:
    """Open with `async with`; what was stored is gone at the end. `Unavailable` `storage_closed` when not open."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._open: Tables | None = None
        self._checkpointer: BaseCheckpointSaver[Any] | None = None
        self._store: BaseStore | None = None

    async def __aenter__(self) -> Self:
        self._open = Tables()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = self._checkpointer = self._store = None

    @property
    def shared(self) -> bool:
        """False: it lives in one process."""
        return False

    @property
    def _tables(self) -> Tables:
        if self._open is None:
            raise Unavailable("storage_closed", "the storage in memory is not open")
        return self._open

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
        return self._tables.create_thread(
            thread_id, caller=caller, now=self._clock(), title=title, source=source, metadata=metadata
        )

    async def thread(self, thread_id: str, /, *, caller: Caller) -> Thread | None:
        return self._tables.thread(thread_id, caller=caller)

    async def threads(
        self, *, caller: Caller, limit: int = 200, offset: int = 0, status: ThreadStatus | None = None
    ) -> Sequence[Thread]:
        return self._tables.threads(caller=caller, limit=limit, offset=offset, status=status)

    async def pin_model(self, thread_id: str, model_id: str | None, /, *, caller: Caller) -> None:
        self._tables.pin_model(thread_id, model_id, caller=caller)

    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        return self._tables.delete_thread(thread_id, caller=caller)

    async def adopt_thread(self, copy: ThreadCopy, /, *, caller: Caller) -> Thread:
        return self._tables.adopt_thread(copy, caller=caller, now=self._clock())

    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        return self._tables.admit_run(new, caller=caller, now=self._clock())

    async def known_request(self, new: NewRun, /, *, caller: Caller) -> Admission | None:
        return self._tables.known_request(new, caller=caller)

    async def claim_run(
        self, run_id: str, /, *, server_id: str, takeover: bool = False, lease_seconds: float = 30.0, caller: Caller
    ) -> Run | None:
        return self._tables.claim_run(
            run_id,
            server_id=server_id,
            takeover=takeover,
            lease_seconds=lease_seconds,
            caller=caller,
            now=self._clock(),
        )

    async def renew_leases(self, server_id: str, /, *, lease_seconds: float, caller: Caller) -> frozenset[str]:
        return self._tables.renew_leases(server_id, lease_seconds=lease_seconds, caller=caller, now=self._clock())

    async def release_runs(self, server_id: str, /, *, caller: Caller) -> frozenset[str]:
        return self._tables.release_runs(server_id, caller=caller, now=self._clock())

    async def append_events(self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        return self._tables.append(run_id, epoch, events, caller=caller)

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
        return self._tables.finish(
            run_id,
            epoch,
            events,
            status=status,
            error_code=error_code,
            error=error,
            interrupts=interrupts,
            withdraw=withdraw,
            caller=caller,
            now=self._clock(),
        )

    async def request_cancel(self, run_id: str, /, *, reason: CancelReason, caller: Caller) -> Run | None:
        return self._tables.request_cancel(run_id, reason=reason, caller=caller, now=self._clock())

    async def run(self, run_id: str, /, *, caller: Caller) -> Run | None:
        return self._tables.run(run_id, caller=caller)

    async def active_run(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        return self._tables.active_run(thread_id, caller=caller)

    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        return self._tables.next_pending(thread_id, caller=caller)

    async def waiting_runs(self, thread_id: str, /, *, caller: Caller) -> int:
        return self._tables.waiting_runs(thread_id, caller=caller)

    async def unfinished_runs(self, *, caller: Caller) -> Sequence[Run]:
        return self._tables.unfinished_runs(caller=caller)

    async def open_interrupts(
        self, thread_id: str | None = None, /, *, limit: int = 200, caller: Caller
    ) -> Sequence[Interrupt]:
        return self._tables.open_interrupts(thread_id, limit=limit, caller=caller)

    async def interrupt(self, interrupt_id: str, /, *, caller: Caller) -> Interrupt | None:
        return self._tables.interrupt(interrupt_id, caller=caller)

    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        return self._tables.decide(decisions, resume, by=by, caller=caller, now=self._clock())

    async def open_intent(
        self, run_id: str, epoch: int, /, *, call_id: str, tool: str, namespace: Namespace, caller: Caller
    ) -> None:
        self._tables.open_intent(
            run_id, epoch, call_id=call_id, tool=tool, namespace=namespace, caller=caller, now=self._clock()
        )

    async def close_intent(self, run_id: str, epoch: int, call_id: str, /, *, caller: Caller) -> None:
        self._tables.close_intent(run_id, epoch, call_id=call_id, caller=caller)

    async def open_intents(self, run_id: str, /, *, caller: Caller) -> Sequence[Intent]:
        return self._tables.open_intents(run_id, caller=caller)

    async def events(self, thread_id: str, /, *, after: int, limit: int, caller: Caller) -> Sequence[StoredEvent]:
        return self._tables.events(thread_id, after=after, limit=limit, caller=caller)

    async def log_bounds(self, thread_id: str, /, *, caller: Caller) -> LogBounds:
        return self._tables.log_bounds(thread_id, caller=caller)

    async def mergeable_runs(self, *, ended_before: float, limit: int, caller: Caller) -> Sequence[Run]:
        return self._tables.mergeable_runs(ended_before=ended_before, limit=limit, caller=caller)

    async def merge_events(self, run_id: str, merged: Sequence[MergedEvents], /, *, caller: Caller) -> None:
        self._tables.merge_events(run_id, merged, caller=caller)

    async def append_facts(self, thread_id: str, events: Sequence[NewEvent], /, *, caller: Caller) -> int:
        return self._tables.append_facts(thread_id, events, caller=caller)

    async def latest_fact(self, thread_id: str, names: Collection[str], /, *, caller: Caller) -> StoredEvent | None:
        return self._tables.latest_fact(thread_id, names, caller=caller)

    async def transcript_index(self, thread_id: str, /, *, caller: Caller) -> TranscriptIndex:
        return self._tables.transcript_index(thread_id, caller=caller)

    async def transcript_turns(
        self, thread_id: str, turn_ids: Sequence[str], /, *, caller: Caller
    ) -> Sequence[TurnRow]:
        return self._tables.transcript_turns(thread_id, turn_ids, caller=caller)

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
        return self._tables.put_transcript(thread_id, turns, after=after, cursor=cursor, summary=summary, caller=caller)

    async def drop_transcript(self, thread_id: str, /, *, caller: Caller) -> None:
        self._tables.drop_transcript(thread_id, caller=caller)

    async def put_file(
        self, new: NewFileVersion, event: NewEvent, /, *, epoch: int | None = None, caller: Caller
    ) -> FileVersion:
        return self._tables.put_file(new, event, epoch=epoch, caller=caller, now=self._clock())

    async def files(
        self, thread_id: str, /, *, turns: Collection[str] | None, path: str | None = None, caller: Caller
    ) -> Sequence[FileVersion]:
        return self._tables.files(thread_id, turns=turns, path=path, caller=caller)

    async def file_versions(self, thread_id: str, path: str, /, *, limit: int, caller: Caller) -> Sequence[FileVersion]:
        return self._tables.file_versions(thread_id, path, limit=limit, caller=caller)

    async def run_files(self, thread_id: str, run_id: str, /, *, caller: Caller) -> Sequence[FileVersion]:
        return self._tables.run_files(thread_id, run_id, caller=caller)

    async def used_blobs(self, digests: Collection[str], /) -> frozenset[str]:
        return self._tables.used_blobs(digests)

    async def add_attachment(self, attachment: Attachment, /, *, caller: Caller) -> None:
        self._tables.add_attachment(attachment, caller=caller)

    async def attachment(self, attachment_id: str, /, *, caller: Caller) -> Attachment | None:
        return self._tables.attachment(attachment_id, caller=caller)

    async def claim_attachments(self, thread_id: str, attachment_ids: Collection[str], /, *, caller: Caller) -> None:
        self._tables.claim_attachments(thread_id, attachment_ids, caller=caller)

    async def thread_attachments(self, thread_id: str, /, *, caller: Caller) -> Sequence[Attachment]:
        return self._tables.thread_attachments(thread_id, caller=caller)

    async def delete_attachment(self, attachment_id: str, /, *, caller: Caller) -> bool:
        return self._tables.delete_attachment(attachment_id, caller=caller)

    async def folder_grants(self, *, caller: Caller) -> Sequence[FolderGrant]:
        return self._tables.folder_grants(caller=caller)

    async def add_folder_grant(self, grant: FolderGrant, /, *, caller: Caller) -> None:
        self._tables.add_folder_grant(grant, caller=caller)

    async def delete_folder_grant(self, grant_id: str, /, *, caller: Caller) -> bool:
        return self._tables.delete_folder_grant(grant_id, caller=caller)

    async def setting(self, key: str, /, *, caller: Caller) -> JsonValue:
        return self._tables.setting(key, caller=caller)

    async def put_setting(self, key: str, value: JsonValue, /, *, caller: Caller) -> None:
        self._tables.put_setting(key, value, caller=caller)

    async def checkpointer(self) -> BaseCheckpointSaver[Any]:
        """LangGraph's `InMemorySaver` with the strict serializer; imported in a thread on first call."""
        self._tables  # noqa: B018 - raises when closed
        await asyncio.to_thread(importlib.import_module, "langgraph.checkpoint.memory")
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

        if self._checkpointer is None:
            self._checkpointer = InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        return self._checkpointer

    async def store(self) -> BaseStore:
        """LangGraph's `InMemoryStore`; imported in a thread on first call."""
        self._tables  # noqa: B018 - raises when closed
        await asyncio.to_thread(importlib.import_module, "langgraph.store.memory")
        from langgraph.store.memory import InMemoryStore

        if self._store is None:
            self._store = InMemoryStore()
        return self._store
