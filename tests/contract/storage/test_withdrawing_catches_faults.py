"""The interrupt contract notices a turn that is given up in part: one fault each, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing import InterruptContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs import Caller, Conflict
from pizzabot_hookspecs.interrupts import Decision, Interrupt, InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import Admission, CancelReason, NewEvent, NewRun

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


def reopen(storage: MemoryStorage, place: tuple[str, str]) -> None:
    storage._tables._interrupts[place] = replace(storage._tables._interrupts[place], state=InterruptState.OPEN)


class Withdrawing(MemoryStorage):
    """Base of faults around `withdraw`: `before` and `after` are called with the run's thread."""

    async def finish_run(
        self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, withdraw: bool = False, **end: Any
    ) -> int:
        row = self._tables._runs.get(run_id)
        if withdraw and row is not None:
            self.before(row.run.thread_id)
        seq = await super().finish_run(run_id, epoch, events, withdraw=withdraw, **end)
        if withdraw and row is not None:
            self.after(row.run.thread_id)
        return seq

    def before(self, thread_id: str) -> None: ...

    def after(self, thread_id: str) -> None: ...

    def set_state(self, state: InterruptState, of: Callable[[Interrupt], bool]) -> None:
        for place, interrupt in self._tables._interrupts.items():
            if of(interrupt):
                self._tables._interrupts[place] = replace(interrupt, state=state)


class LeavesQuestionsOfATurnThatWasGivenUp(MemoryStorage):
    async def finish_run(
        self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, withdraw: bool = False, **end: Any
    ) -> int:
        return await super().finish_run(run_id, epoch, events, **end)


class WithdrawsWithEveryEnd(MemoryStorage):
    async def finish_run(
        self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, withdraw: bool = False, **end: Any
    ) -> int:
        withdraw = withdraw or not end.get("interrupts")
        return await super().finish_run(run_id, epoch, events, withdraw=withdraw, **end)


class WithdrawsOnEveryThread(Withdrawing):
    def after(self, thread_id: str) -> None:
        self.set_state(InterruptState.WITHDRAWN, lambda interrupt: interrupt.state is InterruptState.OPEN)


class WithdrawsWhatWasDecided(Withdrawing):
    def after(self, thread_id: str) -> None:
        self.set_state(InterruptState.WITHDRAWN, lambda interrupt: interrupt.thread_id == thread_id)


class DecidesInsteadOfWithdrawing(Withdrawing):
    def after(self, thread_id: str) -> None:
        self.set_state(InterruptState.DECIDED, lambda interrupt: interrupt.state is InterruptState.WITHDRAWN)


class DropsWhatIsWithdrawn(Withdrawing):
    """Then a resumed run that reports it again asks it again."""

    def after(self, thread_id: str) -> None:
        kept = {
            place: interrupt
            for place, interrupt in self._tables._interrupts.items()
            if interrupt.state is not InterruptState.WITHDRAWN
        }
        self._tables._interrupts = kept


class LetsResumesOfAStoppedTurnGoOn(Withdrawing):
    def before(self, thread_id: str) -> None:
        self.queue = {name: self._tables._runs[name].run for name in self._tables._threads[thread_id].queue}

    def after(self, thread_id: str) -> None:
        for name, run in self.queue.items():
            if name in self._tables._threads[thread_id].queue:
                self._tables._runs[name].run = run


class StopsMessagesWithTheTurn(Withdrawing):
    def after(self, thread_id: str) -> None:
        for name in self._tables._threads[thread_id].queue:
            self._tables._mark_cancelled(self._tables._runs[name], CancelReason.STOPPED, self._clock())


class OverwritesWhyResumesStop(Withdrawing):
    def after(self, thread_id: str) -> None:
        for name in self._tables._threads[thread_id].queue:
            row = self._tables._runs[name]
            if row.run.cancel_reason is not None:
                row.run = replace(row.run, cancel_reason=CancelReason.STOPPED)


class WithdrawsBeforeItKnowsWhetherTheRunIsHeld(Withdrawing):
    def before(self, thread_id: str) -> None:
        self._tables._withdraw(self._tables._threads[thread_id], self._clock())


class WithdrawsAfterTheEnd(MemoryStorage):
    async def finish_run(
        self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, withdraw: bool = False, **end: Any
    ) -> int:
        seq = await super().finish_run(run_id, epoch, events, **end)
        if withdraw:
            await asyncio.sleep(0)
            thread_id = self._tables._runs[run_id].run.thread_id
            self._tables._withdraw(self._tables._threads[thread_id], self._clock())
        return seq


class WithdrawsWhatItSawOpen(MemoryStorage):
    """The classic race: a look, a wait, a write. What was answered meanwhile is taken back, its run goes on."""

    async def finish_run(
        self, run_id: str, epoch: int, events: Sequence[NewEvent], /, *, withdraw: bool = False, **end: Any
    ) -> int:
        row = self._tables._runs[run_id]
        seen = self._tables._open_of_thread(row.run.thread_id) if withdraw else []
        waiting = list(self._tables._threads[row.run.thread_id].queue)
        await asyncio.sleep(0)
        for interrupt in seen:
            withdrawn = replace(interrupt, state=InterruptState.WITHDRAWN, decided_at=self._clock())
            self._tables._interrupts[interrupt.thread_id, interrupt.interrupt_id] = withdrawn
        for name in waiting if withdraw else ():
            self._tables._mark_cancelled(self._tables._runs[name], CancelReason.STOPPED, self._clock())
        return await super().finish_run(run_id, epoch, events, **end)


class DecidesWhatWasWithdrawn(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        for decision in decisions:
            place = (resume.thread_id, decision.interrupt_id)
            found = self._tables._interrupts.get(place)
            if found is not None and found.state is InterruptState.WITHDRAWN:
                reopen(self, place)
        return await super().decide(decisions, resume, by=by, caller=caller)


class SaysThatAWithdrawnOneWasDecided(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        try:
            return await super().decide(decisions, resume, by=by, caller=caller)
        except Conflict as error:
            fields = {"decided_by": "", **error.fields}
            raise Conflict(error.code, error.detail.replace("withdrawn", "decided"), fields=fields) from error


class AsksAgainWhatWasWithdrawn(MemoryStorage):
    async def finish_run(
        self,
        run_id: str,
        epoch: int,
        events: Sequence[NewEvent],
        /,
        *,
        interrupts: Sequence[NewInterrupt] = (),
        **end: Any,
    ) -> int:
        seq = await super().finish_run(run_id, epoch, events, interrupts=interrupts, **end)
        for new in interrupts:
            place = (self._tables._runs[run_id].run.thread_id, new.interrupt_id)
            if self._tables._interrupts[place].state is InterruptState.WITHDRAWN:
                reopen(self, place)
        return seq


NOTICED_BY: dict[type[MemoryStorage], str] = {
    LeavesQuestionsOfATurnThatWasGivenUp: "test_after_a_turn_was_given_up_messages_are_admitted_again",
    WithdrawsWithEveryEnd: "test_a_turn_that_ends_otherwise_leaves_its_questions_open",
    WithdrawsOnEveryThread: "test_a_turn_that_is_given_up_takes_back_its_open_questions_and_nothing_else",
    WithdrawsWhatWasDecided: "test_a_turn_that_is_given_up_takes_back_its_open_questions_and_nothing_else",
    DecidesInsteadOfWithdrawing: "test_a_turn_that_is_given_up_takes_back_its_open_questions_and_nothing_else",
    DropsWhatIsWithdrawn: "test_a_withdrawn_one_that_is_reported_again_stays_withdrawn",
    LetsResumesOfAStoppedTurnGoOn: "test_every_resume_that_waits_is_asked_to_stop_and_no_message_is",
    StopsMessagesWithTheTurn: "test_every_resume_that_waits_is_asked_to_stop_and_no_message_is",
    OverwritesWhyResumesStop: "test_every_resume_that_waits_is_asked_to_stop_and_no_message_is",
    WithdrawsBeforeItKnowsWhetherTheRunIsHeld: "test_a_refused_end_withdraws_nothing",
    WithdrawsAfterTheEnd: "test_questions_go_together_with_the_final_status",
    WithdrawsWhatItSawOpen: "test_an_answer_that_races_the_stop_is_refused_or_its_run_is_stopped",
    DecidesWhatWasWithdrawn: "test_a_withdrawn_one_cannot_be_decided_and_the_refusal_says_why",
    SaysThatAWithdrawnOneWasDecided: "test_a_withdrawn_one_cannot_be_decided_and_the_refusal_says_why",
    AsksAgainWhatWasWithdrawn: "test_a_withdrawn_one_that_is_reported_again_stays_withdrawn",
}
"""Each faulty storage and a test of the contract that fails on it."""


@pytest.mark.parametrize("kind", NOTICED_BY, ids=lambda kind: kind.__name__)
def test_the_interrupt_contract_fails_on_a_storage_with_one_fault(kind: type[MemoryStorage], fails: Fails) -> None:
    assert fails(InterruptContract, kind, NOTICED_BY[kind])


@pytest.mark.parametrize("name", sorted(set(NOTICED_BY.values())))
def test_what_notices_a_fault_passes_without_it(name: str, fails: Fails) -> None:
    assert not fails(InterruptContract, MemoryStorage, name)
