"""The storage contract, part: a thread that is a copy is stored whole, and goes on like any other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pizzabot.testing.run_store_contract.base import (
    ANNA,
    BORIS,
    current,
    finished,
    log,
    new_run,
    refused,
    started,
    words,
)
from pizzabot.testing.storage_contract.base import WholeSuite
from pizzabot_hookspecs import LOCAL, Conflict, InvalidRequest
from pizzabot_hookspecs.storage_backends import (
    CancelReason,
    LogBounds,
    MergedEvents,
    Run,
    RunStatus,
    Storage,
    StoredEvent,
    Thread,
    ThreadCopy,
    ThreadStatus,
)

LONG_AGO = 1_700_000_000.25
FAR_AWAY = 100_000_000_000.0


def run_of(run_id: str, *, status: RunStatus = RunStatus.SUCCESS, at: float = 0.0, **fields: Any) -> Run:
    """A run that began and ended, with everything that a copy leaves behind."""
    values: dict[str, Any] = {
        "thread_id": "t",
        "owner": "somebody else",
        "input": {"messages": [f"čaj for {run_id} 🫖"]},
        "options": {"model": "a:b"},
        "created_at": LONG_AGO + at,
        "started_at": LONG_AGO + at + 1,
        "ended_at": LONG_AGO + at + 2,
        "epoch": 3,
        "attempt": 2,
        "released": 1,
        "server_id": "server-9",
        "lease_until": FAR_AWAY,
        "first_seq": 77,
        "idempotency_key": f"key-{run_id}",
        "message_id": f"message-{run_id}",
    }
    return Run(run_id=run_id, status=status, **values | fields)


def log_of(*run_ids: str | None) -> list[StoredEvent]:
    """An event for each of these."""
    return [
        StoredEvent(
            seq=seq,
            thread_id="t",
            run_id=run_id,
            method="custom" if run_id is None else "messages",
            data=b'{"text":"%d"}' % seq,
            timestamp=1_700_000_000_000 + seq,
            namespace=("a:1",) if seq % 2 else (),
            node=run_id,
            name="pizzabot.head" if run_id is None else None,
        )
        for seq, run_id in enumerate(run_ids, start=1)
    ]


def copy_of(runs: Sequence[Run] = (), events: Sequence[StoredEvent] = (), **fields: Any) -> ThreadCopy:
    return ThreadCopy(**{"thread_id": "t", "title": "Pizza", "runs": runs, "events": events} | fields)


async def mergeable(storage: Storage) -> list[str]:
    return [run.run_id for run in await storage.mergeable_runs(ended_before=FAR_AWAY, limit=99, caller=LOCAL)]


async def adopted(storage: Storage, copy: ThreadCopy) -> Thread:
    thread = await storage.adopt_thread(copy, caller=LOCAL)
    assert await storage.thread("t", caller=LOCAL) == thread
    assert list(await storage.threads(caller=LOCAL)) == [thread]
    return thread


class AdoptingContract(WholeSuite):
    def test_a_copy_is_a_thread_of_the_callers_with_its_log(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            before = await storage.create_thread("before", caller=BORIS)
            events = log_of(None, "a", "a", None, "b", *["b"] * 100)
            copy = copy_of(
                [run_of("a"), run_of("b", at=9)], events, source="api", metadata={"of": ["x", 1]}, model_id="work:large"
            )
            thread = await storage.adopt_thread(copy, caller=ANNA)
            assert (thread.thread_id, thread.owner, thread.title, thread.source) == ("t", "anna", "Pizza", "api")
            assert (thread.metadata, thread.model_id, thread.next_seq) == ({"of": ["x", 1]}, "work:large", 106)
            assert thread.created_at == thread.last_activity_at >= before.created_at
            assert await storage.thread("t", caller=ANNA) == thread
            assert list(await storage.events("t", after=0, limit=1_000, caller=ANNA)) == events
            assert await storage.log_bounds("t", caller=ANNA) == LogBounds(first_seq=1, last_seq=105, latest_run_seq=5)
            fact = await storage.latest_fact("t", ["pizzabot.head"], caller=ANNA)
            assert fact == events[3]
            assert (await storage.transcript_index("t", caller=ANNA)).cursor == 0
            assert await storage.thread("t", caller=BORIS) is None
            assert await storage.run("a", caller=BORIS) is None
            assert list(await log(storage, caller=BORIS)) == []

        self.play(tmp_path, scenario)

    def test_an_empty_copy_is_an_empty_thread(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            thread = await adopted(storage, copy_of())
            assert (thread.source, thread.metadata, thread.model_id, thread.next_seq) == ("fork", {}, None, 1)
            assert thread.status is ThreadStatus.IDLE
            assert await storage.log_bounds("t", caller=LOCAL) == LogBounds(
                first_seq=0, last_seq=0, latest_run_seq=None
            )
            assert (await storage.admit_run(new_run("r"), caller=LOCAL)).last_seq == 0

        self.play(tmp_path, scenario)

    def test_copied_runs_keep_what_they_were_and_nothing_to_go_on_or_be_found_by(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            finals = [status for status in RunStatus if status.final]
            runs = [
                run_of(status.value, status=status, at=10.0 * number, error_code="GENERAL", error="čaj is cold")
                for number, status in enumerate(finals)
            ]
            runs[0] = replace(runs[0], error_code=None, error=None)
            runs[1] = replace(
                runs[1], cancel_requested_at=LONG_AGO + 11.5, cancel_reason=CancelReason.STOPPED, options={}
            )
            runs.append(run_of("never began", status=RunStatus.CANCELLED, started_at=None, at=500))
            await adopted(storage, copy_of(runs, log_of(*(run.run_id for run in runs[:3]), runs[0].run_id)))
            for number, run in enumerate(runs):
                assert await current(storage, run.run_id) == replace(
                    run,
                    owner=LOCAL.owner,
                    first_seq=number + 1 if number < 3 else None,
                    epoch=0,
                    attempt=0,
                    released=0,
                    server_id=None,
                    lease_until=None,
                    idempotency_key=None,
                    message_id=None,
                )
            assert list(await storage.unfinished_runs(caller=LOCAL)) == []
            assert await storage.waiting_runs("t", caller=LOCAL) == 0
            assert await storage.active_run("t", caller=LOCAL) is None
            assert list(await storage.open_interrupts("t", caller=LOCAL)) == []

        self.play(tmp_path, scenario)

    def test_requests_of_the_original_are_new_ones_on_the_copy(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            original = await started(storage, "r", "original", message_id="m", idempotency_key="key")
            await finished(storage, original, "end")
            ended = await current(storage, "r")
            await storage.adopt_thread(copy_of([replace(ended, run_id="c", thread_id="t")], log_of("c")), caller=LOCAL)
            again = await storage.admit_run(
                new_run("r", "original", message_id="m", idempotency_key="key"), caller=LOCAL
            )
            assert (again.created, again.run) == (False, ended)
            resent = await storage.admit_run(new_run("c2", message_id="m"), caller=LOCAL)
            assert (resent.created, resent.run.run_id, resent.last_seq) == (True, "c2", 1)
            await refused(storage.admit_run(new_run("c"), caller=LOCAL), Conflict, "idempotency_mismatch")
            await refused(storage.append_events("c", 0, words("late"), caller=LOCAL), Conflict, "lease_lost")
            await refused(storage.finish_run("c", 0, [], status=RunStatus.ERROR, caller=LOCAL), Conflict, "lease_lost")
            assert await storage.claim_run("c", server_id="s", takeover=True, caller=LOCAL) is None
            assert await storage.request_cancel("c", reason=CancelReason.STOPPED, caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_the_copy_goes_on_where_its_log_ends(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await adopted(storage, copy_of([run_of("a")], log_of("a", "a", None)))
            admission = await storage.admit_run(new_run("r"), caller=LOCAL)
            assert (admission.created, admission.replaces, admission.last_seq) == (True, None, 3)
            run = await storage.claim_run("r", server_id="s", caller=LOCAL)
            assert run is not None
            assert (run.epoch, run.attempt) == (1, 1)
            assert await storage.append_events("r", run.epoch, words("x"), caller=LOCAL) == 4
            assert await storage.append_facts("t", words("y"), caller=LOCAL) == 5
            assert (await storage.log_bounds("t", caller=LOCAL)).latest_run_seq == 4
            assert await mergeable(storage) == ["a"]
            await finished(storage, run, status=RunStatus.ERROR)
            thread = await storage.thread("t", caller=LOCAL)
            assert thread is not None
            assert thread.status is ThreadStatus.ERROR

        self.play(tmp_path, scenario)

    def test_the_latest_run_is_the_one_that_began_last_whatever_the_order_and_the_clock(self, tmp_path: Path) -> None:
        """A run that waits may write before it begins, and a clock may go back: what ends last began last."""

        async def scenario(storage: Storage) -> None:
            runs = [run_of("waited", at=5), run_of("first", at=900), run_of("last", at=5), run_of("between", at=1)]
            runs.append(run_of("stopped", status=RunStatus.CANCELLED, started_at=None, at=5))
            events = log_of("first", "waited", "last", "first", "between", "stopped", "last", "between", "waited")
            thread = await adopted(storage, copy_of(runs, [*events, *log_of(*[None] * 10)[9:]]))
            assert thread.status is ThreadStatus.IDLE
            assert [(await current(storage, run.run_id)).first_seq for run in runs] == [2, 1, 3, 5, 6]
            assert await storage.log_bounds("t", caller=LOCAL) == LogBounds(first_seq=1, last_seq=10, latest_run_seq=2)
            assert sorted(await mergeable(storage)) == ["between", "first", "last", "stopped"]
            merged = [MergedEvents(first_seq=5, last_seq=5, data=b"five")]
            await storage.merge_events("between", merged, caller=LOCAL)
            assert (await log(storage))[4].data == b"five"
            assert sorted(await mergeable(storage)) == ["first", "last", "stopped"]

        self.play(tmp_path, scenario)

    def test_runs_of_a_copy_are_merged_oldest_end_first_and_a_single_one_is_not(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            await adopted(storage, copy_of([run_of("only")], log_of("only", None)))
            assert await mergeable(storage) == []
            runs = [run_of(name, at=at, thread_id="u") for name, at in (("a", 30), ("b", 20), ("c", 40))]
            events = [replace(event, thread_id="u") for event in log_of(*"aabbc")]
            await storage.adopt_thread(copy_of(runs, events, thread_id="u"), caller=LOCAL)
            assert await mergeable(storage) == ["b", "a"]
            before = await storage.mergeable_runs(ended_before=LONG_AGO + 25, limit=9, caller=LOCAL)
            assert [run.run_id for run in before] == ["b"]

        self.play(tmp_path, scenario)

    def test_a_copy_is_in_error_when_its_latest_run_failed_and_is_never_busy_or_waiting(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            for status in (status for status in RunStatus if status.final):
                thread_id, (first, last) = f"t-{status}", (f"first-{status}", f"last-{status}")
                runs = [
                    run_of(last, status=status, thread_id=thread_id),
                    run_of(first, status=RunStatus.TIMEOUT, thread_id=thread_id, at=100),
                ]
                events = [replace(event, thread_id=thread_id) for event in log_of(first, last)]
                thread = await storage.adopt_thread(copy_of(runs, events, thread_id=thread_id), caller=LOCAL)
                failed = status in (RunStatus.ERROR, RunStatus.TIMEOUT)
                assert thread.status is (ThreadStatus.ERROR if failed else ThreadStatus.IDLE), status
                assert await storage.thread(thread_id, caller=LOCAL) == thread
                listed = await storage.threads(caller=LOCAL, status=thread.status)
                assert thread in listed

        self.play(tmp_path, scenario)

    def test_a_copy_never_replaces_a_thread_or_a_run(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            run = await started(storage, "r", caller=ANNA)
            await storage.append_events("r", run.epoch, words("hers"), caller=ANNA)
            for caller in (ANNA, BORIS):
                copy = copy_of([run_of("c")], log_of("c"))
                await refused(storage.adopt_thread(copy, caller=caller), Conflict, "thread_exists")
            u = [replace(event, thread_id="u") for event in log_of("r", "c")]
            copy = copy_of([run_of("c", thread_id="u"), run_of("r", thread_id="u")], u, thread_id="u")
            await refused(storage.adopt_thread(copy, caller=BORIS), Conflict, "run_exists")
            assert await storage.thread("u", caller=BORIS) is None
            assert await storage.run("c", caller=BORIS) is None
            assert await current(storage, "r", caller=ANNA) == replace(run, first_seq=1)
            assert len(await log(storage, caller=ANNA)) == 1

        self.play(tmp_path, scenario)

    def test_what_is_no_copy_is_refused_and_nothing_is_stored(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            gap = [event for event in log_of("a", "a", "a") if event.seq != 2]
            wrong = {
                "a run that goes on": copy_of([run_of("a", status=RunStatus.RUNNING)], log_of("a")),
                "a run that waits": copy_of([run_of("a", status=RunStatus.PENDING)]),
                "a run of another thread": copy_of([run_of("a", thread_id="u")]),
                "an event of no run of it": copy_of([run_of("a")], log_of("a", "b")),
                "an event of another thread": copy_of([], [replace(log_of(None)[0], thread_id="u")]),
                "a gap": copy_of([run_of("a")], gap),
                "a log that begins later": copy_of([run_of("a")], log_of("a", "a")[1:]),
                "a log in disorder": copy_of([run_of("a")], log_of("a", "a")[::-1]),
            }
            for what, copy in wrong.items():
                refusal = await refused(storage.adopt_thread(copy, caller=LOCAL), InvalidRequest, "invalid_copy")
                assert "'t'" in refusal.detail, what
            not_json = copy_of([run_of("a", input={"x": object()})], log_of("a"))
            await refused(storage.adopt_thread(not_json, caller=LOCAL), InvalidRequest, "not_json")
            assert await storage.thread("t", caller=LOCAL) is None
            assert await storage.run("a", caller=LOCAL) is None
            await adopted(storage, copy_of([run_of("a")], log_of("a")))

        self.play(tmp_path, scenario)

    def test_of_copies_of_one_id_at_once_one_is_stored_wholly(self, tmp_path: Path) -> None:
        async def scenario(first: Storage, second: Storage) -> None:
            copies = [copy_of([run_of(f"r{n}")], log_of(*[f"r{n}"] * (n + 40)), title=f"copy {n}") for n in range(8)]
            answers = await asyncio.gather(
                *(
                    storage.adopt_thread(copy, caller=LOCAL)
                    for storage, copy in zip([first, second] * 4, copies, strict=True)
                ),
                return_exceptions=True,
            )
            (winner,) = [number for number, answer in enumerate(answers) if isinstance(answer, Thread)]
            refusals = [answer for answer in answers if isinstance(answer, Conflict)]
            assert [refusal.code for refusal in refusals] == ["thread_exists"] * 7
            assert list(await log(first)) == copies[winner].events
            for number in range(8):
                assert (await first.run(f"r{number}", caller=LOCAL) is None) is (number != winner)

        self.play_two(tmp_path, scenario)

    def test_a_copy_whose_awaiter_was_cancelled_is_whole_or_absent(self, tmp_path: Path) -> None:
        async def scenario(storage: Storage) -> None:
            task = asyncio.create_task(storage.adopt_thread(copy_of([run_of("a")], log_of(*["a"] * 500)), caller=LOCAL))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await storage.create_thread("later", caller=LOCAL)
            there = await storage.thread("t", caller=LOCAL) is not None
            assert len(await log(storage)) == (500 if there else 0)
            assert (await storage.run("a", caller=LOCAL) is not None) is there

        self.play(tmp_path, scenario)

    def test_a_copy_is_deleted_like_any_thread_and_found_when_opened_again(self, tmp_path: Path) -> None:
        kept: list[object] = []

        async def first(storage: Storage) -> None:
            gone = copy_of(
                [run_of("gone", thread_id="u")],
                [replace(event, thread_id="u") for event in log_of("gone")],
                thread_id="u",
            )
            await storage.adopt_thread(gone, caller=LOCAL)
            assert await storage.delete_thread("u", caller=LOCAL)
            assert await storage.run("gone", caller=LOCAL) is None
            kept.append(await adopted(storage, copy_of([run_of("a")], log_of("a", None, "a"))))
            kept.append(await current(storage, "a"))

        async def second(storage: Storage) -> None:
            found = [await storage.thread("t", caller=LOCAL), await storage.run("a", caller=LOCAL)]
            assert found == (kept if self.durable else [None, None])
            assert list(await log(storage)) == (log_of("a", None, "a") if self.durable else [])

        self.play(tmp_path, first, second)
