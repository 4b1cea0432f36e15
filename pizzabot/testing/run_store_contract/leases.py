"""The run store contract, part: leases. A deadline moves forward only, and an answer says whose the runs still are."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    SERVER,
    RunStore,
    StoreSuite,
    current,
    enqueued,
    finished,
    new_run,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import CancelReason, Run, RunStatus

SLACK_SECONDS = 60.0
"""What may lie between two readings of the store's clock; the leases compared here differ by far more."""
HOUR = 3600.0


async def claimed(storage: RunStore, run_id: str, *, lease_seconds: float, thread_id: str = "t") -> Run:
    await storage.admit_run(new_run(run_id, thread_id), caller=LOCAL)
    run = await storage.claim_run(run_id, server_id=SERVER, lease_seconds=lease_seconds, caller=LOCAL)
    assert run is not None
    return run


async def deadline(storage: RunStore, run_id: str) -> float:
    until = (await current(storage, run_id)).lease_until
    assert until is not None, f"{run_id} has no deadline"
    return until


class LeaseContract(StoreSuite):
    def test_a_claim_has_a_lease_of_the_length_that_was_asked_for(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            waiting = (await storage.admit_run(new_run("waiting", "w"), caller=LOCAL)).run
            assert waiting.lease_until is None
            for number, seconds in enumerate((1.0, 30.0, HOUR, 24 * HOUR)):
                run = await claimed(storage, f"r{number}", lease_seconds=seconds, thread_id=f"t{number}")
                assert run.started_at is not None
                assert run.lease_until is not None
                assert abs(run.lease_until - run.started_at - seconds) < 1.0
                assert await current(storage, f"r{number}") == run

        self.play(tmp_path, scenario)

    def test_a_claim_that_says_nothing_of_a_lease_has_one(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            assert run.started_at is not None
            assert run.lease_until is not None
            assert abs(run.lease_until - run.started_at - 30.0) < 1.0

        self.play(tmp_path, scenario)

    def test_a_renewal_moves_the_deadline_forward_and_changes_nothing_else(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await claimed(storage, "r", lease_seconds=1.0)
            assert run.lease_until is not None
            assert await storage.renew_leases(SERVER, lease_seconds=HOUR, caller=LOCAL) == {"r"}
            until = await deadline(storage, "r")
            assert HOUR - SLACK_SECONDS < until - run.lease_until < HOUR + SLACK_SECONDS
            assert await current(storage, "r") == replace(run, lease_until=until)

        self.play(tmp_path, scenario)

    def test_a_renewal_never_moves_a_deadline_back(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await claimed(storage, "r", lease_seconds=HOUR)
            for seconds in (30.0, 1.0, 0.0):
                assert await storage.renew_leases(SERVER, lease_seconds=seconds, caller=LOCAL) == {"r"}
                assert await current(storage, "r") == run

        self.play(tmp_path, scenario)

    def test_of_renewals_at_once_the_latest_deadline_stays(self, tmp_path: Path) -> None:
        async def scenario(first: RunStore, second: RunStore) -> None:
            run = await claimed(first, "r", lease_seconds=1.0)
            assert run.lease_until is not None
            hours = [3, 9, 1, 7, 24, 2, 8, 5, 0, 4]
            answers = await asyncio.gather(
                *(
                    engine.renew_leases(SERVER, lease_seconds=number * HOUR, caller=LOCAL)
                    for number in hours
                    for engine in (first, second)
                )
            )
            assert all(answer == {"r"} for answer in answers)
            assert abs(await deadline(first, "r") - run.lease_until - 24 * HOUR) < SLACK_SECONDS

        self.play_two(tmp_path, scenario)

    def test_a_renewal_is_of_this_servers_active_runs_and_names_them(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await claimed(storage, "running", lease_seconds=1.0, thread_id="a")
            await claimed(storage, "cancelling", lease_seconds=1.0, thread_id="b")
            await storage.request_cancel("cancelling", reason=CancelReason.STOPPED, caller=LOCAL)
            await enqueued(storage, "pending", "a")
            ended = await claimed(storage, "ended", lease_seconds=1.0, thread_id="c")
            await finished(storage, ended)
            await storage.admit_run(new_run("others", "d"), caller=LOCAL)
            others = await storage.claim_run("others", server_id="server-2", lease_seconds=1.0, caller=LOCAL)
            before = await current(storage, "ended")
            renewed = await storage.renew_leases(SERVER, lease_seconds=HOUR, caller=LOCAL)
            assert isinstance(renewed, frozenset)
            assert renewed == {"running", "cancelling"}
            assert await current(storage, "ended") == before
            assert await current(storage, "others") == others
            assert (await current(storage, "pending")).lease_until is None
            assert await storage.renew_leases("server-3", lease_seconds=HOUR, caller=LOCAL) == frozenset()

        self.play(tmp_path, scenario)

    def test_after_a_takeover_the_first_server_is_told_that_the_run_is_not_its_own(self, tmp_path: Path) -> None:
        async def scenario(first: RunStore, second: RunStore) -> None:
            await claimed(first, "r", lease_seconds=1.0)
            await claimed(first, "kept", lease_seconds=1.0, thread_id="u")
            taken = await second.claim_run("r", server_id="server-2", takeover=True, lease_seconds=10.0, caller=LOCAL)
            assert taken is not None
            assert await first.renew_leases(SERVER, lease_seconds=HOUR, caller=LOCAL) == {"kept"}
            assert await current(first, "r") == taken, "the deadline of the new owner is not the old one's to move"
            assert await second.renew_leases("server-2", lease_seconds=HOUR, caller=LOCAL) == {"r"}

        self.play_two(tmp_path, scenario)

    def test_a_takeover_has_a_lease_of_its_own(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            old = await claimed(storage, "r", lease_seconds=24 * HOUR)
            taken = await storage.claim_run("r", server_id="server-2", takeover=True, lease_seconds=HOUR, caller=LOCAL)
            assert taken is not None
            assert taken.lease_until is not None
            assert old.started_at is not None
            assert abs(taken.lease_until - old.started_at - HOUR) < SLACK_SECONDS
            assert taken.started_at == old.started_at

        self.play(tmp_path, scenario)

    def test_a_deadline_that_has_passed_takes_no_run_from_the_server_that_holds_it(self, tmp_path: Path) -> None:
        """Who may take over, and when, is the host's to say: only a changed epoch is loss (durable-runs rule 6)."""

        async def scenario(storage: RunStore) -> None:
            run = await claimed(storage, "r", lease_seconds=0.0)
            assert await storage.append_events("r", run.epoch, words("one"), caller=LOCAL) == 1
            assert await storage.renew_leases(SERVER, lease_seconds=HOUR, caller=LOCAL) == {"r"}
            await finished(storage, run, "end")
            assert (await current(storage, "r")).status is RunStatus.SUCCESS

        self.play(tmp_path, scenario)

    def test_a_server_that_goes_in_order_gives_its_active_runs_back(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await claimed(storage, "r", lease_seconds=HOUR)
            ended = await claimed(storage, "ended", lease_seconds=HOUR, thread_id="e")
            await finished(storage, ended)
            waiting = await enqueued(storage, "waiting")
            others = await started(storage, "others", "o")
            ours = await storage.release_runs("somebody else", caller=LOCAL)
            assert ours == frozenset()
            assert await storage.release_runs(SERVER, caller=LOCAL) == {"r"} | (
                {"others"} if others.server_id == SERVER else set()
            )
            row = await current(storage, "r")
            assert (row.status, row.epoch, row.attempt, row.released) == (run.status, run.epoch, run.attempt, 1)
            assert row.lease_until is not None
            assert row.lease_until < (run.lease_until or 0.0) - HOUR / 2, "its lease ends"
            assert (await current(storage, "ended")).released == 0
            assert await current(storage, "waiting") == waiting
            again = await storage.claim_run("r", server_id="next", takeover=True, caller=LOCAL)
            assert again is not None
            assert (again.attempt, again.released) == (2, 1)

        self.play(tmp_path, scenario)
