"""The wrapper: five methods are written down, everything else is the wrapped storage's own."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.interrupts import Decision, NewInterrupt
from pizzabot_hookspecs.storage_backends import Admission, NewEvent, NewRun, Run, RunStatus, Storage
from pizzabot_storage_audit.trail import AuditTrail
from pizzabot_storage_audit.verdicts import verdict_of

if TYPE_CHECKING:
    Wrapper = Storage
else:
    # Not at run time: the empty methods of a Protocol would be found before `__getattr__` is asked.
    Wrapper = object


class AuditedStorage(Wrapper):
    """A `Storage` around another one.

    `__getattr__` hands on whatever is not defined here, and `**more` what a method here does not look at. So neither
    methods nor parameters that a later host adds need a new version of this.
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

    async def admit_run(self, new: NewRun, /, *, caller: Caller, **more: Any) -> Admission:
        admission = await self._inner.admit_run(new, caller=caller, **more)
        await self._write_admission(admission, caller)
        return admission

    async def claim_run(self, run_id: str, /, *, takeover: bool = False, caller: Caller, **more: Any) -> Run | None:
        run = await self._inner.claim_run(run_id, takeover=takeover, caller=caller, **more)
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
        interrupts: Sequence[NewInterrupt] = (),
        withdraw: bool = False,
        caller: Caller,
        **more: Any,
    ) -> int:
        seq = await self._inner.finish_run(
            run_id,
            epoch,
            events,
            status=status,
            error_code=error_code,
            interrupts=interrupts,
            withdraw=withdraw,
            caller=caller,
            **more,
        )
        # Not `error`: it is text, and may quote what somebody said.
        await self._trail.write(
            "run.finished",
            caller,
            run_id=run_id,
            status=status.value,
            error_code=error_code,
            interrupts=len(interrupts),
            withdrew=withdraw,
        )
        return seq

    async def decide(
        self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller, **more: Any
    ) -> Admission:
        # Looked up by thread: the id of an interrupt is unique in its thread only.
        waiting = await self._inner.open_interrupts(resume.thread_id, caller=caller)
        kinds = {interrupt.interrupt_id: interrupt.kind for interrupt in waiting}
        admission = await self._inner.decide(decisions, resume, by=by, caller=caller, **more)
        for decision in decisions if admission.created else ():
            kind = kinds.get(decision.interrupt_id)
            await self._trail.write(
                "interrupt.decided",
                caller,
                thread_id=resume.thread_id,
                interrupt_id=decision.interrupt_id,
                decided_by=by,
                kind=kind.value if kind else None,
                verdict=verdict_of(kind, decision.answer),
            )
        await self._write_admission(admission, caller)
        return admission

    async def delete_thread(self, thread_id: str, /, *, caller: Caller, **more: Any) -> bool:
        deleted = await self._inner.delete_thread(thread_id, caller=caller, **more)
        if deleted:
            await self._trail.write("thread.deleted", caller, thread_id=thread_id)
        return deleted

    async def _write_admission(self, admission: Admission, caller: Caller) -> None:
        await self._trail.write(
            "run.admitted",
            caller,
            thread_id=admission.run.thread_id,
            run_id=admission.run.run_id,
            owner=admission.run.owner,
            created=admission.created,
            replaces=admission.replaces.run_id if admission.replaces else None,
        )
