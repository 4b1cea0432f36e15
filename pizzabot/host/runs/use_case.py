"""The runs as transports are handed them: `Runs` of the contract, on the engine, the hub and the log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence

from pizzabot.host.ids import checked_id
from pizzabot.host.runs.commands import Commands
from pizzabot.host.runs.engine import RunEngine
from pizzabot.host.runs.hub import Hub
from pizzabot.host.runs.reading import open_observer
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.host import CommandReply, EventBatch, EventFilter, StopOutcome
from pizzabot_hookspecs.interrupts import Interrupt
from pizzabot_hookspecs.storage_backends import Storage


class HostRuns:
    """Implements `pizzabot_hookspecs.host.Runs`; the docstrings are there."""

    def __init__(
        self, *, engine: RunEngine, commands: Commands, storage: Storage, hub: Hub, clock: Callable[[], float]
    ) -> None:
        self._engine = engine
        self._commands = commands
        self._storage = storage
        self._hub = hub
        self._clock = clock

    async def command(
        self, thread_id: str, body: object, /, *, caller: Caller, idempotency_key: str | None = None
    ) -> CommandReply:
        return await self._commands.dispatch(thread_id, body, caller=caller, idempotency_key=idempotency_key)

    async def stop(
        self, thread_id: str, run_id: str | None = None, /, *, caller: Caller, wait_seconds: float = 10.0
    ) -> StopOutcome:
        return await self._engine.stop(thread_id, run_id, caller=caller, wait_seconds=wait_seconds)

    async def interrupts(self, thread_id: str | None = None, /, *, caller: Caller) -> Sequence[Interrupt]:
        return await self._storage.open_interrupts(thread_id, caller=caller)

    async def observe(
        self,
        thread_id: str,
        filter: EventFilter,  # noqa: A002 - the contract's word
        /,
        *,
        since: int | None = None,
        idle_seconds: float = 5.0,
        caller: Caller,
    ) -> AsyncGenerator[EventBatch, None]:
        checked_id(thread_id, what="thread_id")
        return await open_observer(
            self._storage,
            self._hub,
            thread_id,
            filter,
            since=since,
            idle_seconds=idle_seconds,
            clock=self._clock,
            caller=caller,
        )
