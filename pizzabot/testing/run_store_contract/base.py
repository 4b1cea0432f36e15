"""What the storage suites share: opening a store for a scenario, and what scenarios are made of."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any, Protocol

from pizzabot_hookspecs import LOCAL, Caller, PizzabotError
from pizzabot_hookspecs.storage_backends import (
    EventLog,
    Multitask,
    NewEvent,
    NewRun,
    Run,
    RunStatus,
    RunStorage,
    StoredEvent,
)

ANNA = Caller(owner="anna")
BORIS = Caller(owner="boris")
SERVER = "server-1"
EVERYTHING = 1_000_000


class RunStore(RunStorage, EventLog, Protocol):
    """What the run store suite needs of a storage."""


class StoreSuite(ABC):
    """Base of every part of every storage suite."""

    durable = False
    """Whether opening the same path again finds what was stored there."""

    several_engines = False
    """Whether the same path can be open twice at once, as two servers or two processes would have it."""

    @abstractmethod
    def storage(self, path: Path) -> AbstractAsyncContextManager[Any]:
        """A storage on what belongs to `path`; entered and left by the suite, on a loop of each test's own.

        A storage that has no files takes the path as a name, say for a database or a schema of its own.
        """

    def play(self, path: Path, *scenarios: Callable[[Any], Awaitable[None]]) -> None:
        """Play each scenario on the storage of `path`, opened again for each."""

        async def played(scenario: Callable[[Any], Awaitable[None]]) -> None:
            async with self.storage(path) as storage:
                await scenario(storage)

        for scenario in scenarios:
            asyncio.run(played(scenario))

    def play_two(self, path: Path, scenario: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Play a scenario of two engines on one store; where only one can be, it plays both parts."""

        async def played() -> None:
            async with AsyncExitStack() as stack:
                first = await stack.enter_async_context(self.storage(path))
                second = await stack.enter_async_context(self.storage(path)) if self.several_engines else first
                await scenario(first, second)

        asyncio.run(played())


def new_run(run_id: str, thread_id: str = "t", *, fingerprint: str = "same", **fields: Any) -> NewRun:
    text = {"messages": [{"role": "user", "content": f"for {run_id} · čaj 🫖"}]}
    values: dict[str, Any] = {"input": text, "options": {}} | fields
    return NewRun(run_id=run_id, thread_id=thread_id, fingerprint=fingerprint, **values)


def words(*texts: str) -> list[NewEvent]:
    return [NewEvent(method="messages", data=f'{{"text":"{text}"}}'.encode(), timestamp=1_000) for text in texts]


async def started(
    storage: RunStorage, run_id: str, thread_id: str = "t", *, caller: Caller = LOCAL, **fields: Any
) -> Run:
    """Admit and claim."""
    await storage.admit_run(new_run(run_id, thread_id, **fields), caller=caller)
    run = await storage.claim_run(run_id, server_id=SERVER, caller=caller)
    assert run is not None, f"{run_id} could not be claimed on an idle thread"
    return run


async def enqueued(storage: RunStorage, run_id: str, thread_id: str = "t", *, caller: Caller = LOCAL) -> Run:
    admission = await storage.admit_run(new_run(run_id, thread_id, multitask=Multitask.ENQUEUE), caller=caller)
    return admission.run


async def finished(storage: RunStorage, run: Run, *texts: str, status: RunStatus = RunStatus.SUCCESS) -> int:
    caller = Caller(owner=run.owner)
    return await storage.finish_run(run.run_id, run.epoch, words(*texts), status=status, caller=caller)


async def log(storage: EventLog, thread_id: str = "t", *, caller: Caller = LOCAL) -> Sequence[StoredEvent]:
    return await storage.events(thread_id, after=0, limit=EVERYTHING, caller=caller)


async def log_texts(storage: EventLog, thread_id: str = "t", *, caller: Caller = LOCAL) -> list[bytes]:
    return [event.data for event in await log(storage, thread_id, caller=caller)]


async def current(storage: RunStorage, run_id: str, *, caller: Caller = LOCAL) -> Run:
    run = await storage.run(run_id, caller=caller)
    assert run is not None, f"there is no run {run_id}"
    return run


async def refused(call: Awaitable[object], kind: type[PizzabotError], code: str) -> PizzabotError:
    """Await a call that has to be refused with this class and code; the refusal."""
    try:
        answer = await call
    except PizzabotError as error:
        assert isinstance(error, kind), f"{type(error).__name__} {error.code} instead of {kind.__name__} {code}"
        assert error.code == code, f"code {error.code} instead of {code}: {error.detail}"
        assert error.detail.strip(), "the error says nothing"
        assert "\n" not in error.detail
        return error
    raise AssertionError(f"answered {answer!r} instead of raising {kind.__name__} {code}")
