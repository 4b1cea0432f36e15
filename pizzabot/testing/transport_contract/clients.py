"""What the suite talks to: a client of the transport under test, and what one may be able to do besides."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

FrameDict = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class ExportedFile:
    """What a client got of an export."""

    body: bytes
    media_type: str
    file_name: str
    as_of_seq: int
    turns: int


class TransportClient(Protocol):
    """A client of the transport under test. What the server refuses is raised as a `PizzabotError` with its code."""

    async def create_thread(
        self,
        thread_id: str | None = None,
        /,
        *,
        metadata: Mapping[str, Any] | None = None,
        if_exists: str = "raise",
    ) -> Mapping[str, Any]:
        """At least `thread_id` and `metadata`."""
        ...

    async def command(self, thread_id: str, body: object, /) -> Mapping[str, Any]:
        """The envelope, `{type: success|error, id, ...}`: an error envelope is returned, not raised."""
        ...

    def events(
        self,
        thread_id: str,
        /,
        *,
        channels: Sequence[str],
        namespaces: Sequence[Sequence[str]] = (),
        depth: int | None = None,
        since: int | None = None,
    ) -> AsyncGenerator[FrameDict, None]:
        """Frames as they come, `{type: event, ...}`; it connects on first use and disconnects on `aclose`."""
        ...

    async def state(self, thread_id: str, /) -> Mapping[str, Any]: ...

    async def stop(self, thread_id: str, run_id: str, /) -> str:
        """Stop and wait: `cancelled`, `no_run` or `cancellation_pending`."""
        ...


class HistoryClient(TransportClient, Protocol):
    """A client that reads earlier states, for a suite with `history = True`."""

    async def history(
        self, thread_id: str, /, *, limit: int = 10, before: str | None = None, namespace: Sequence[str] = ()
    ) -> Sequence[Mapping[str, Any]]:
        """States, newest first, those before the checkpoint `before`; a subagent's own where a `namespace` is given."""
        ...


class TranscriptClient(TransportClient, Protocol):
    """A client of the transcript, for a suite with `transcripts = True`."""

    async def transcript(
        self,
        thread_id: str,
        /,
        *,
        limit: int = 20,
        before_seq: int | None = None,
        around_seq: int | None = None,
        head: str | None = None,
        namespace: Sequence[str] = (),
    ) -> Mapping[str, Any]:
        """A page: `{threadId, head, turns, runs, requests, hasBefore, hasAfter, asOfSeq, …}`."""
        ...

    async def items(
        self, thread_id: str, turn_id: str, /, *, limit: int = 100, before_seq: int | None = None
    ) -> Mapping[str, Any]:
        """`{turnId, items, hasBefore, asOfSeq, …}`."""
        ...

    async def tool_text(self, thread_id: str, call_id: str, part: str, /, *, item_id: str | None = None) -> str: ...

    async def export(self, thread_id: str, /, *, format: str = "md", branches: str = "path") -> ExportedFile:  # noqa: A002 - the query's word
        ...

    def begin_export(self, thread_id: str, /) -> AbstractAsyncContextManager[None]:
        """An export that has begun; leaving the context goes away without having read it."""
        ...

    async def choose_head(self, thread_id: str, turn_id: str, /) -> Mapping[str, Any]: ...

    async def fork(
        self, thread_id: str, turn_id: str | None = None, /, *, new_thread_id: str | None = None
    ) -> Mapping[str, Any]:
        """The new thread's row, at least `threadId`."""
        ...

    async def compact(self, thread_id: str, /, *, idempotency_key: str | None = None) -> Mapping[str, Any]:
        """`{tokensBefore, tokensAfter}`."""
        ...


class ActivityClient(TransportClient, Protocol):
    """A client that follows all threads, for a suite with `activity = True`."""

    def activity(self) -> AsyncGenerator[Mapping[str, Any], None]:
        """`{complete, threads: [{threadId, status, ...}], deleted: [id], inbox?: [{interruptId, ...}]}` as it comes.

        No silence: what says that nothing happened is left out. It connects on first use, disconnects on `aclose`.
        """
        ...
