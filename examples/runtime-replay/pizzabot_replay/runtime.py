"""`ReplayRuntime`: the object behind the offer. It opens the archive, starts turns, reads and forgets threads."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from pizzabot_hookspecs import Caller, Context
from pizzabot_hookspecs.agent_runtimes import RuntimeServices, Turn
from pizzabot_hookspecs.wire import ThreadState
from pizzabot_replay.archive import Archive
from pizzabot_replay.run import ReplayRun
from pizzabot_replay.settings import ReplaySettings
from pizzabot_replay.states import checkpoint_length, state_of


class ReplayRuntime:
    """An `AgentRuntime`. The host enters it as a context manager, calls `prepare`, and closes it when it stops."""

    def __init__(self, context: Context, settings: ReplaySettings) -> None:
        self._clock = context.clock
        self._settings = settings
        path = context.data_root / "replay" / "replay.sqlite3"
        self._archive = Archive(path, clock=context.clock, max_recordings=settings.max_recordings)

    async def __aenter__(self) -> Self:
        await self._archive.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._archive.__aexit__(kind, error, trace)

    async def prepare(self, services: RuntimeServices, /) -> None:
        """Import what a turn needs, beside the event loop. The host's graph storage is not used: there is no graph."""
        del services
        await asyncio.to_thread(_import_messages)

    def start(self, turn: Turn, /) -> ReplayRun:
        return ReplayRun(turn, self._archive, self._settings, self._clock)

    async def state(self, thread_id: str, /, *, caller: Caller, checkpoint_id: str | None = None) -> ThreadState | None:
        del caller  # the host has checked whose thread it is
        conversation = await self._archive.conversation(thread_id)
        if checkpoint_id is None:
            return state_of(thread_id, conversation)
        length = checkpoint_length(checkpoint_id, conversation)
        return None if length is None else state_of(thread_id, conversation, length=length)

    async def forget(self, thread_id: str, /, *, caller: Caller) -> None:
        """Removes the conversation. Recordings stay: they belong to what was said, not to a thread."""
        del caller
        await self._archive.forget(thread_id)


def create(context: Context, settings: ReplaySettings) -> ReplayRuntime:
    return ReplayRuntime(context, settings)


def _import_messages() -> None:
    import langchain_core.messages  # noqa: F401
