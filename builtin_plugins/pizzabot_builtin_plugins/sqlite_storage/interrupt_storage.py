"""`SqliteInterrupts`: the contract's `InterruptStorage`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pizzabot_builtin_plugins.sqlite_storage import decisions, intents, interrupts
from pizzabot_builtin_plugins.sqlite_storage.connected import Connected
from pizzabot_hookspecs import Caller
from pizzabot_hookspecs.interrupts import Decision, Intent, Interrupt
from pizzabot_hookspecs.storage_backends import Admission, NewRun
from pizzabot_hookspecs.wire import Namespace


class SqliteInterrupts(Connected):
    async def open_interrupts(
        self, thread_id: str | None = None, /, *, limit: int = 200, caller: Caller
    ) -> Sequence[Interrupt]:
        return await self._read(partial(interrupts.open_interrupts, thread_id=thread_id, limit=limit, caller=caller))

    async def interrupt(self, interrupt_id: str, /, *, caller: Caller) -> Interrupt | None:
        return await self._read(partial(interrupts.interrupt, interrupt_id=interrupt_id, caller=caller))

    async def decide(self, decided: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        work = partial(
            decisions.decide, decisions=tuple(decided), resume=resume, by=by, caller=caller, now=self._clock()
        )
        return await self._write(work, durable=True)

    async def open_intent(
        self, run_id: str, epoch: int, /, *, call_id: str, tool: str, namespace: Namespace, caller: Caller
    ) -> None:
        """Survives power loss: the tool runs next, and a checkpoint that was lost with the power would run it again."""
        work = partial(
            intents.open_intent,
            run_id=run_id,
            epoch=epoch,
            call_id=call_id,
            tool=tool,
            namespace=tuple(namespace),
            caller=caller,
            now=self._clock(),
        )
        await self._write(work, durable=True)

    async def close_intent(self, run_id: str, epoch: int, call_id: str, /, *, caller: Caller) -> None:
        work = partial(
            intents.close_intent, run_id=run_id, epoch=epoch, call_id=call_id, caller=caller, now=self._clock()
        )
        await self._write(work)

    async def open_intents(self, run_id: str, /, *, caller: Caller) -> Sequence[Intent]:
        return await self._read(partial(intents.open_intents, run_id=run_id, caller=caller))
