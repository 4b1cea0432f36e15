"""What the suite talks to: a client of the transport under test, and what one may be able to do besides."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Protocol

FrameDict = Mapping[str, Any]


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


class ActivityClient(TransportClient, Protocol):
    """A client that follows all threads, for a suite with `activity = True`."""

    def activity(self) -> AsyncGenerator[Mapping[str, Any], None]:
        """`{complete, threads: [{threadId, status, ...}], deleted: [id], inbox?: [{interruptId, ...}]}` as it comes.

        No silence: what says that nothing happened is left out. It connects on first use, disconnects on `aclose`.
        """
        ...
