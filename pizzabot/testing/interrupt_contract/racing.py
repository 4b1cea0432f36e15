"""The interrupt contract, part: many decide at once, from several clients and servers. One wins, all learn who."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pizzabot.testing.interrupt_contract.base import InterruptStore, answer, decided, known, open_ids, waiting
from pizzabot.testing.interrupt_contract.deciding import assert_says_who_and_when
from pizzabot.testing.run_store_contract.base import StoreSuite, new_run
from pizzabot_hookspecs import LOCAL, Conflict
from pizzabot_hookspecs.interrupts import InterruptState
from pizzabot_hookspecs.storage_backends import Admission, Multitask

CALLERS = 20


class RacingContract(StoreSuite):
    def test_of_twenty_decisions_at_once_one_wins_and_the_others_learn_who_and_when(self, tmp_path: Path) -> None:
        async def scenario(first: InterruptStore, second: InterruptStore) -> None:
            await waiting(first, "r", "one", "two")
            answers = await asyncio.gather(
                *(
                    (first, second)[number % 2].decide(
                        answer("one", "two", value=number), new_run(f"resume-{number}"), by=f"c{number}", caller=LOCAL
                    )
                    for number in range(CALLERS)
                ),
                return_exceptions=True,
            )
            won = [place for place, given in enumerate(answers) if isinstance(given, Admission)]
            assert len(won) == 1, f"{len(won)} decisions were accepted"
            for name in ("one", "two"):
                interrupt = await known(first, name)
                assert (interrupt.decided_by, interrupt.answer) == (f"c{won[0]}", won[0])
            lost = [given for given in answers if not isinstance(given, Admission)]
            assert len(lost) == CALLERS - 1
            for refusal in lost:
                assert isinstance(refusal, Conflict), repr(refusal)
                assert refusal.code == "already_decided"
                assert_says_who_and_when(refusal, await known(second, "one"))
            assert [run.run_id for run in await first.unfinished_runs(caller=LOCAL)] == [f"resume-{won[0]}"]

        self.play_two(tmp_path, scenario)

    def test_decisions_that_overlap_never_decide_in_part(self, tmp_path: Path) -> None:
        async def scenario(first: InterruptStore, second: InterruptStore) -> None:
            names = [f"i{number}" for number in range(CALLERS + 1)]
            await waiting(first, "r", *names)
            answers = await asyncio.gather(
                *(
                    decided(
                        (first, second)[number % 2], f"resume-{number}", *names[number : number + 2], by=f"c{number}"
                    )
                    for number in range(CALLERS)
                ),
                return_exceptions=True,
            )
            expected: dict[str, str] = {}
            for number, given in enumerate(answers):
                if isinstance(given, Admission):
                    for name in names[number : number + 2]:
                        assert name not in expected, f"{name} was decided twice"
                        expected[name] = f"c{number}"
            by = {name: (await known(first, name)).decided_by for name in names}
            assert {name: who for name, who in by.items() if who is not None} == expected
            assert await open_ids(second) == [name for name in names if name not in expected]
            waiting_runs = await first.unfinished_runs(caller=LOCAL)
            assert len(waiting_runs) == sum(isinstance(given, Admission) for given in answers) > 0

        self.play_two(tmp_path, scenario)

    def test_one_request_sent_twenty_times_at_once_is_one_decision_and_one_run(self, tmp_path: Path) -> None:
        async def scenario(first: InterruptStore, second: InterruptStore) -> None:
            await waiting(first, "r", "one")
            admissions = await asyncio.gather(
                *(
                    (first, second)[number % 2].decide(
                        answer("one"), new_run(f"resume-{number}", idempotency_key="key"), by="phone", caller=LOCAL
                    )
                    for number in range(CALLERS)
                )
            )
            assert sum(admission.created for admission in admissions) == 1
            assert len({admission.run.run_id for admission in admissions}) == 1
            assert await first.waiting_runs("t", caller=LOCAL) == 1

        self.play_two(tmp_path, scenario)

    def test_a_message_that_races_the_last_decision_is_behind_the_resume_or_refused(self, tmp_path: Path) -> None:
        async def scenario(first: InterruptStore, second: InterruptStore) -> None:
            for number in range(CALLERS):
                thread_id = f"t{number}"
                await waiting(first, f"r{number}", "one", thread_id=thread_id)
                resume, message = new_run(f"resume-{number}", thread_id), new_run(f"message-{number}", thread_id)
                _, given = await asyncio.gather(
                    first.decide(answer("one"), resume, by="phone", caller=LOCAL),
                    second.admit_run(message, caller=LOCAL),
                    return_exceptions=True,
                )
                front = await first.next_pending(thread_id, caller=LOCAL)
                assert front is not None
                assert (front.run_id, front.cancel_requested_at) == (resume.run_id, None)
                if not isinstance(given, Admission):
                    assert isinstance(given, Conflict), repr(given)
                    assert given.code == "interrupt_pending"

        self.play_two(tmp_path, scenario)

    def test_interrupts_of_many_threads_are_decided_at_once(self, tmp_path: Path) -> None:
        async def scenario(first: InterruptStore, second: InterruptStore) -> None:
            threads = [f"t{number}" for number in range(CALLERS)]
            for thread_id in threads:
                await waiting(first, f"r-{thread_id}", "one", thread_id=thread_id)
            resumes = [new_run(f"resume-{name}", name, multitask=Multitask.REJECT) for name in threads]
            admissions = await asyncio.gather(
                *(
                    (first, second)[place % 2].decide(answer("one"), resume, by="phone", caller=LOCAL)
                    for place, resume in enumerate(resumes)
                )
            )
            assert all(admission.created for admission in admissions)
            assert await open_ids(first, None) == []
            assert (await known(second, "one")).state is InterruptState.DECIDED

        self.play_two(tmp_path, scenario)
