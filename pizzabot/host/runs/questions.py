"""What a run asks a person, kept for the transaction of its end: whoever is shown it can answer it, whatever dies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pizzabot.host.runs.completion import LogCompletion
from pizzabot.host.runs.facts import RunFacts
from pizzabot.host.text import to_json
from pizzabot_hookspecs import SYSTEM, Caller
from pizzabot_hookspecs.interrupts import Interrupt, InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import NewEvent, Run, Storage
from pizzabot_hookspecs.wire import Frame


class Questions:
    """The questions of one run. `resumes`: it goes on with answers, and its graph asks again for all that waits."""

    def __init__(
        self,
        storage: Storage,
        run: Run,
        *,
        completion: LogCompletion,
        facts: RunFacts,
        resumes: bool,
        now: Callable[[], int],
    ) -> None:
        self._storage = storage
        self._run = run
        self._completion = completion
        self._facts = facts
        self._resumes = resumes
        self._now = now
        self._frames: list[Frame] = []

    def ask(self, frame: Frame) -> None:
        """Take an `input.requested` frame."""
        self._completion.see(frame.method, frame.namespace, frame.node, frame.data)
        self._frames.append(frame)

    async def asked(self) -> list[NewEvent]:
        """What a person is asked now, each with its fact.

        A graph asks again also for what was decided meanwhile and goes on with a run of its own, behind this one.
        """
        interrupts = {interrupt.interrupt_id: interrupt for interrupt in self._completion.interrupts}
        events: list[NewEvent] = []
        for frame in self._frames:
            interrupt = interrupts.get(str(frame.data.get("interrupt_id")))
            if interrupt is not None and not (self._resumes and await self._is_settled(interrupt)):
                events += [self._event(frame), self._facts.asked(interrupt)]
        return events

    async def withdrawn(self) -> list[NewEvent]:
        """The end of everything that waits on the thread: the turn was given up, and its questions with it."""
        waiting = await self._storage.open_interrupts(self._run.thread_id, caller=SYSTEM)
        if not waiting:
            return []
        ids = [found.interrupt_id for found in waiting]
        told = NewEvent(method="input.answered", data=to_json({"interrupt_ids": ids}), timestamp=self._now())
        return [told, *(self._facts.settled(found, state=InterruptState.WITHDRAWN) for found in waiting)]

    async def decided(self, interrupt_ids: Sequence[str]) -> list[NewEvent]:
        """What a run that goes on with answers tells first."""
        if not interrupt_ids:
            return []
        told = NewEvent(method="input.answered", data=to_json({"interrupt_ids": interrupt_ids}), timestamp=self._now())
        rows = [await self._row(interrupt_id) for interrupt_id in interrupt_ids]
        return [told, *(self._facts.settled(row) for row in rows if row is not None)]

    async def _is_settled(self, interrupt: NewInterrupt) -> bool:
        found = await self._row(interrupt.interrupt_id)
        return found is not None and found.state is not InterruptState.OPEN

    async def _row(self, interrupt_id: str) -> Interrupt | None:
        """None for one that is new, or whose name another thread has, too."""
        found = await self._storage.interrupt(interrupt_id, caller=Caller(owner=self._run.owner))
        return found if found is not None and found.thread_id == self._run.thread_id else None

    def _event(self, frame: Frame) -> NewEvent:
        data = to_json(frame.data)
        return NewEvent(
            method=frame.method, data=data, timestamp=self._now(), namespace=frame.namespace, node=frame.node
        )
