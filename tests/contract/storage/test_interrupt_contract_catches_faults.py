"""The interrupt contract notices lost approvals, double decisions and unfenced intents: one fault each, in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from pizzabot.testing import InterruptContract, StorageContract
from pizzabot_builtin_plugins.memory_storage.storage import MemoryStorage
from pizzabot_hookspecs import SYSTEM, Caller, Conflict, PizzabotError
from pizzabot_hookspecs.interrupts import Decision, Intent, Interrupt, InterruptState, NewInterrupt
from pizzabot_hookspecs.storage_backends import Admission, Multitask, NewEvent, NewRun, Run
from pizzabot_hookspecs.wire import Namespace

Fails = Callable[[type[Any], type[MemoryStorage], str], bool]


def reopen(storage: MemoryStorage, place: tuple[str, str]) -> None:
    storage._tables._interrupts[place] = replace(storage._tables._interrupts[place], state=InterruptState.OPEN)


class TheLastDecisionCounts(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        for decision in decisions:
            if (resume.thread_id, decision.interrupt_id) in self._tables._interrupts:
                reopen(self, (resume.thread_id, decision.interrupt_id))
        return await super().decide(decisions, resume, by=by, caller=caller)


class LooksAndDecidesLater(MemoryStorage):
    """The classic race: a look, a wait, a write."""

    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        places = [(resume.thread_id, decision.interrupt_id) for decision in decisions]
        seen_open = [place for place in places if self._is_open(place)]
        await asyncio.sleep(0)
        for place in seen_open:
            reopen(self, place)
        return await super().decide(decisions, resume, by=by, caller=caller)

    def _is_open(self, place: tuple[str, str]) -> bool:
        found = self._tables._interrupts.get(place)
        return found is not None and found.state is InterruptState.OPEN


class DecidesOneByOne(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        admissions = []
        for place, decision in enumerate(decisions):
            part = resume if place == 0 else replace(resume, run_id=f"{resume.run_id}.{place}", idempotency_key=None)
            admissions.append(await super().decide([decision], part, by=by, caller=caller))
        return admissions[0]


class DecidesBeforeItKnowsWhetherTheRunIsAdmitted(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        try:
            return await super().decide(decisions, resume, by=by, caller=caller)
        except PizzabotError:
            for decision in decisions:
                place = (resume.thread_id, decision.interrupt_id)
                if place in self._tables._interrupts:
                    decided = replace(self._tables._interrupts[place], state=InterruptState.DECIDED)
                    self._tables._interrupts[place] = decided
            raise


class RefusesWhatIsSentAgain(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        admission = await super().decide(decisions, resume, by=by, caller=caller)
        if not admission.created:
            raise Conflict("already_decided", "it was decided already")
        return admission


class SaysNotWhoDecided(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        try:
            return await super().decide(decisions, resume, by=by, caller=caller)
        except Conflict as error:
            raise Conflict(error.code, "somebody else was faster") from error


class DecidesForAnybody(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        return await super().decide(decisions, resume, by=by, caller=SYSTEM)


class QueuesResumesAtTheEnd(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        admission = await super().decide(decisions, resume, by=by, caller=caller)
        if admission.created:
            queue = self._tables._threads[resume.thread_id].queue
            queue.append(queue.pop(queue.index(resume.run_id)))
        return admission


class TheNewestResumeComesFirst(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        admission = await super().decide(decisions, resume, by=by, caller=caller)
        if admission.created:
            queue = self._tables._threads[resume.thread_id].queue
            queue.insert(0, queue.pop(queue.index(resume.run_id)))
        return admission


class AResumeReplacesTheActiveRun(MemoryStorage):
    async def decide(self, decisions: Sequence[Decision], resume: NewRun, /, *, by: str, caller: Caller) -> Admission:
        admission = await super().decide(decisions, resume, by=by, caller=caller)
        row = self._tables._threads[resume.thread_id]
        return replace(admission, replaces=self._tables._supersede(row, self._clock()))


class LetsReplacementsPassTheResumes(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        admission = await super().admit_run(new, caller=caller)
        if admission.created and new.multitask is Multitask.INTERRUPT:
            queue = self._tables._threads[new.thread_id].queue
            queue.insert(0, queue.pop(queue.index(new.run_id)))
        return admission


class AMessageMakesTheApprovalDisappear(MemoryStorage):
    """What LangGraph does by itself (reproduced R3)."""

    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        for place in [place for place in self._tables._interrupts if place[0] == new.thread_id]:
            del self._tables._interrupts[place]
        return await super().admit_run(new, caller=caller)


class EnqueuesThoughTheThreadWaits(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        held = dict(self._tables._interrupts)
        if new.multitask is Multitask.ENQUEUE:
            self._tables._interrupts.clear()
        try:
            return await super().admit_run(new, caller=caller)
        finally:
            self._tables._interrupts.update(held)


class NamesNoInterrupts(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        try:
            return await super().admit_run(new, caller=caller)
        except Conflict as error:
            raise Conflict(error.code, error.detail) from error


class LooksAtTheThreadBeforeTheRequest(MemoryStorage):
    async def admit_run(self, new: NewRun, /, *, caller: Caller) -> Admission:
        self._tables._refuse_while_interrupted(new.thread_id)
        return await super().admit_run(new, caller=caller)


class AsksBeforeTheRunHasEnded(MemoryStorage):
    async def finish_run(
        self,
        run_id: str,
        epoch: int,
        events: Sequence[NewEvent],
        /,
        *,
        interrupts: Sequence[NewInterrupt] = (),
        caller: Caller,
        **end: Any,
    ) -> int:
        seq = await super().finish_run(run_id, epoch, events, caller=caller, **end)
        await asyncio.sleep(0)
        run = self._tables._runs[run_id]
        for new in interrupts:
            opened = Interrupt(
                interrupt_id=new.interrupt_id,
                run_id=run_id,
                thread_id=run.run.thread_id,
                owner=run.run.owner,
                kind=new.kind,
                payload=new.payload,
                namespace=new.namespace,
                state=InterruptState.OPEN,
                created_at=self._clock(),
            )
            self._tables._interrupts.setdefault((opened.thread_id, opened.interrupt_id), opened)
        return seq


class AsksAgainWhatWasDecided(MemoryStorage):
    async def finish_run(
        self,
        run_id: str,
        epoch: int,
        events: Sequence[NewEvent],
        /,
        *,
        interrupts: Sequence[NewInterrupt] = (),
        caller: Caller,
        **end: Any,
    ) -> int:
        seq = await super().finish_run(run_id, epoch, events, interrupts=interrupts, caller=caller, **end)
        for new in interrupts:
            reopen(self, (self._tables._runs[run_id].run.thread_id, new.interrupt_id))
        return seq


class ShowsEverybodysQuestions(MemoryStorage):
    async def open_interrupts(
        self, thread_id: str | None = None, /, *, limit: int = 200, caller: Caller
    ) -> Sequence[Interrupt]:
        return await super().open_interrupts(thread_id, limit=limit, caller=SYSTEM)


class ListsTheNewestFirst(MemoryStorage):
    async def open_interrupts(
        self, thread_id: str | None = None, /, *, limit: int = 200, caller: Caller
    ) -> Sequence[Interrupt]:
        return (await super().open_interrupts(thread_id, limit=limit, caller=caller))[::-1]


class OpensIntentsWithAnyEpoch(MemoryStorage):
    async def open_intent(
        self, run_id: str, epoch: int, /, *, call_id: str, tool: str, namespace: Namespace, caller: Caller
    ) -> None:
        row = self._tables._runs.get(run_id)
        held = row.run.epoch if row else epoch
        await super().open_intent(run_id, held, call_id=call_id, tool=tool, namespace=namespace, caller=caller)


class ClosesIntentsWithAnyEpoch(MemoryStorage):
    async def close_intent(self, run_id: str, epoch: int, call_id: str, /, *, caller: Caller) -> None:
        row = self._tables._runs.get(run_id)
        await super().close_intent(run_id, row.run.epoch if row else epoch, call_id, caller=caller)


class ClosesUnknownIntentsUnfenced(MemoryStorage):
    async def close_intent(self, run_id: str, epoch: int, call_id: str, /, *, caller: Caller) -> None:
        row = self._tables._runs.get(run_id)
        if row is not None and call_id in row.intents:
            await super().close_intent(run_id, epoch, call_id, caller=caller)


class AcknowledgesIntentsBeforeTheyAreStored(MemoryStorage):
    async def open_intent(
        self, run_id: str, epoch: int, /, *, call_id: str, tool: str, namespace: Namespace, caller: Caller
    ) -> None:
        storing = super().open_intent(run_id, epoch, call_id=call_id, tool=tool, namespace=namespace, caller=caller)
        task = asyncio.get_running_loop().create_task(storing)
        task.add_done_callback(lambda done: done.exception())


class OverwritesOpenIntents(MemoryStorage):
    async def open_intent(
        self, run_id: str, epoch: int, /, *, call_id: str, tool: str, namespace: Namespace, caller: Caller
    ) -> None:
        await super().close_intent(run_id, epoch, call_id, caller=caller)
        await super().open_intent(run_id, epoch, call_id=call_id, tool=tool, namespace=namespace, caller=caller)


class ForgetsIntentsAtATakeover(MemoryStorage):
    async def claim_run(self, run_id: str, /, *, takeover: bool = False, caller: Caller, **options: Any) -> Run | None:
        run = await super().claim_run(run_id, takeover=takeover, caller=caller, **options)
        if run is not None and takeover:
            self._tables._runs[run_id].intents.clear()
        return run


class ShowsEverybodysIntents(MemoryStorage):
    async def open_intents(self, run_id: str, /, *, caller: Caller) -> Sequence[Intent]:
        return await super().open_intents(run_id, caller=SYSTEM)


class LeavesQuestionsOfADeletedThread(MemoryStorage):
    async def delete_thread(self, thread_id: str, /, *, caller: Caller) -> bool:
        kept = dict(self._tables._interrupts)
        deleted = await super().delete_thread(thread_id, caller=caller)
        self._tables._interrupts = kept
        return deleted


class BeginsAMessageAfterTheFirstAnswer(MemoryStorage):
    async def next_pending(self, thread_id: str, /, *, caller: Caller) -> Run | None:
        row = self._tables._threads.get(thread_id)
        if row is not None and row.queue and any(place[0] == thread_id for place in self._tables._interrupts):
            answered = any(
                interrupt.state is InterruptState.DECIDED
                for (of_thread, _), interrupt in self._tables._interrupts.items()
                if of_thread == thread_id
            )
            return await self.run(row.queue[0], caller=caller) if answered else None
        return await super().next_pending(thread_id, caller=caller)


NOTICED_BY: dict[type[MemoryStorage], str] = {
    TheLastDecisionCounts: "test_a_second_decision_is_refused_with_who_and_when",
    LooksAndDecidesLater: "test_of_twenty_decisions_at_once_one_wins_and_the_others_learn_who_and_when",
    DecidesOneByOne: "test_one_decision_that_cannot_be_takes_back_all_of_them",
    DecidesBeforeItKnowsWhetherTheRunIsAdmitted: "test_one_decision_that_cannot_be_takes_back_all_of_them",
    RefusesWhatIsSentAgain: "test_a_request_that_is_sent_again_gets_its_first_answer_and_decides_nothing",
    SaysNotWhoDecided: "test_a_second_decision_is_refused_with_who_and_when",
    DecidesForAnybody: "test_what_is_not_on_the_thread_or_not_the_callers_does_not_exist",
    QueuesResumesAtTheEnd: "test_a_resume_waits_in_front_of_what_was_enqueued",
    TheNewestResumeComesFirst: "test_resumes_go_on_in_the_order_of_their_decisions",
    AResumeReplacesTheActiveRun: "test_a_resume_is_admitted_while_a_run_is_active_and_replaces_nothing",
    LetsReplacementsPassTheResumes: "test_a_message_that_replaces_stays_behind_the_resumes_and_takes_none_of_them_back",
    AMessageMakesTheApprovalDisappear: "test_a_message_on_a_thread_that_waits_is_refused_with_the_ids",
    EnqueuesThoughTheThreadWaits: "test_a_message_on_a_thread_that_waits_is_refused_with_the_ids",
    NamesNoInterrupts: "test_a_message_on_a_thread_that_waits_is_refused_with_the_ids",
    LooksAtTheThreadBeforeTheRequest: "test_a_known_request_is_answered_though_the_thread_waits",
    AsksBeforeTheRunHasEnded: "test_interrupts_appear_together_with_the_final_status",
    AsksAgainWhatWasDecided: "test_an_interrupt_that_is_reported_again_stays_as_it_is",
    ShowsEverybodysQuestions: "test_nobody_sees_what_is_asked_of_another_owner",
    ListsTheNewestFirst: "test_open_interrupts_come_oldest_first_of_one_thread_or_of_all",
    OpensIntentsWithAnyEpoch: "test_who_was_replaced_neither_opens_nor_closes_an_intent",
    ClosesIntentsWithAnyEpoch: "test_who_was_replaced_neither_opens_nor_closes_an_intent",
    ClosesUnknownIntentsUnfenced: "test_who_was_replaced_neither_opens_nor_closes_an_intent",
    AcknowledgesIntentsBeforeTheyAreStored: "test_a_closed_intent_is_gone_and_closing_again_does_nothing",
    OverwritesOpenIntents: "test_opening_what_is_open_does_nothing",
    ForgetsIntentsAtATakeover: "test_who_was_replaced_neither_opens_nor_closes_an_intent",
    ShowsEverybodysIntents: "test_intents_belong_to_the_runs_owner",
    BeginsAMessageAfterTheFirstAnswer: "test_a_queued_message_begins_after_the_last_answer_and_its_resume",
    LeavesQuestionsOfADeletedThread: "test_deleting_a_thread_takes_its_interrupts_and_intents_and_no_others",
}
"""Each faulty storage and a test of the contract that fails on it."""


@pytest.mark.parametrize("kind", NOTICED_BY, ids=lambda kind: kind.__name__)
def test_the_interrupt_contract_fails_on_a_storage_with_one_fault(kind: type[MemoryStorage], fails: Fails) -> None:
    assert fails(StorageContract, kind, NOTICED_BY[kind])


def test_every_part_of_the_interrupt_contract_notices_a_fault() -> None:
    parts = {
        part.__name__: {name for name in vars(part) if name.startswith("test_")}
        for part in InterruptContract.__mro__
        if part.__module__.startswith("pizzabot.testing.interrupt_contract.")
    }
    noticing = {name for name, tests in parts.items() if tests & set(NOTICED_BY.values())}
    assert noticing == {
        "OpeningContract",
        "RefusingContract",
        "DecidingContract",
        "RacingContract",
        "ResumingContract",
        "IntentContract",
    }
