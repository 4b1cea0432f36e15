"""The wrapper: four methods are written down, everything else is the wrapped storage's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Self

from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.storage_backends import Admission, NewEvent, NewRun, Run, RunStatus, Storage
from pizzabot_storage_audit.trail import AuditTrail


class AuditedStorage:
    """A `Storage` around another one.

    `__getattr__` hands on whatever is not defined here. So methods that a later host adds as an optional capability
    still reach the wrapped storage, and there is nothing to change here when they come.
    """

    def __init__(self, inner: Storage, trail: AuditTrail) -> None:
        self._inner = inner
        self._trail = trail
        self._stack = AsyncExitStack()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def __aenter__(self) -> Self:
        """Open the trail, then the storage. What was opened is closed again when the other one cannot be."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._trail)
            # The contract: what a storage offer makes is an async context manager, though `Storage` does not say so.
            await stack.enter_async_context(self._inner)  # type: ignore[arg-type]
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, trace)

    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        admission = await self._inner.admit_run(new, caller=caller)
        await self._trail.write(
            "run.admitted",
            caller,
            thread_id=new.thread_id,
            run_id=admission.run.run_id,
            owner=admission.run.owner,
            created=admission.created,
            replaces=admission.replaces.run_id if admission.replaces else None,
        )
        return admission

    async def claim_run(self, run_id: str, /, *, server_id: str, takeover: bool = False, caller: Caller) -> Run | None:
        run = await self._inner.claim_run(run_id, server_id=server_id, takeover=takeover, caller=caller)
        if run is not None:
            await self._trail.write(
                "run.claimed",
                caller,
                thread_id=run.thread_id,
                run_id=run_id,
                owner=run.owner,
                attempt=run.attempt,
                takeover=takeover,
            )
        return run

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
        caller: Caller,
    ) -> int:
        seq = await self._inner.finish_run(
            run_id, epoch, events, status=status, error_code=error_code, error=error, caller=caller
        )
        # Not `error`: it is text, and may quote what somebody said.
        await self._trail.write("run.finished", caller, run_id=run_id, status=status.value, error_code=error_code)
        return seq

    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        deleted = await self._inner.delete_thread(thread_id, caller=caller)
        if deleted:
            await self._trail.write("thread.deleted", caller, thread_id=thread_id)
        return deleted
