"""The run store contract, part: what waits while a person is asked, and what may begin all the same (rules 1 and 9).

LangGraph would drop the approval when the message begins (reproduced R3).
"""

from __future__ import annotations

from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    SERVER,
    RunStore,
    StoreSuite,
    current,
    enqueued,
    finished,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.interrupts import InterruptKind, NewInterrupt
from pizzabot_hookspecs.storage_backends import CancelReason, Run, RunStatus, RunStorage


class HoldingContract(StoreSuite):
    def test_a_queued_message_waits_while_a_person_is_asked(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            active = await started(storage, "r")
            queued = [await enqueued(storage, name) for name in ("one", "two")]
            assert await storage.next_pending("t", caller=LOCAL) == queued[0], "nobody is asked yet"
            await asked(storage, active)
            assert await storage.next_pending("t", caller=LOCAL) is None
            for run in queued:
                assert await storage.claim_run(run.run_id, server_id=SERVER, caller=LOCAL) is None
                assert await current(storage, run.run_id) == run, "it keeps its place"
            assert await storage.waiting_runs("t", caller=LOCAL) == 2
            assert await started(storage, "elsewhere", "u"), "other threads are free"

        self.play(tmp_path, scenario)

    def test_what_is_to_be_stopped_may_begin_while_a_person_is_asked(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            active = await started(storage, "r")
            waiting = await enqueued(storage, "waiting")
            for name in ("one", "two"):
                await enqueued(storage, name)
            await asked(storage, active)
            for name in ("one", "two"):
                await storage.request_cancel(name, reason=CancelReason.STOPPED, caller=LOCAL)
            for name in ("one", "two"):
                front = await storage.next_pending("t", caller=LOCAL)
                assert front is not None
                assert front.run_id == name, "the message in front of it is passed over"
                run = await storage.claim_run(name, server_id=SERVER, caller=LOCAL)
                assert run is not None
                await finished(storage, run, "end", status=RunStatus.CANCELLED)
            assert await storage.next_pending("t", caller=LOCAL) is None
            assert await storage.claim_run("waiting", server_id=SERVER, caller=LOCAL) is None
            assert await current(storage, "waiting") == waiting

        self.play(tmp_path, scenario)

    def test_once_nobody_is_asked_any_more_a_queued_message_begins(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            active = await started(storage, "r")
            for name in ("stopped", "queued"):
                await enqueued(storage, name)
            await asked(storage, active)
            await storage.request_cancel("stopped", reason=CancelReason.STOPPED, caller=LOCAL)
            run = await storage.claim_run("stopped", server_id=SERVER, caller=LOCAL)
            assert run is not None
            await storage.finish_run("stopped", run.epoch, [], status=RunStatus.CANCELLED, withdraw=True, caller=LOCAL)
            front = await storage.next_pending("t", caller=LOCAL)
            assert front is not None
            assert front.run_id == "queued"
            assert front.cancel_requested_at is None
            assert await storage.claim_run("queued", server_id=SERVER, caller=LOCAL) is not None

        self.play(tmp_path, scenario)

    def test_a_run_that_a_dead_server_left_is_taken_over_though_a_person_is_asked(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            active = await started(storage, "r")
            await enqueued(storage, "stopped")
            await asked(storage, active)
            await storage.request_cancel("stopped", reason=CancelReason.STOPPED, caller=LOCAL)
            assert await storage.claim_run("stopped", server_id=SERVER, caller=LOCAL) is not None
            taken = await storage.claim_run("stopped", server_id="server-2", takeover=True, caller=LOCAL)
            assert taken is not None
            assert taken.server_id == "server-2"

        self.play(tmp_path, scenario)


async def asked(storage: RunStorage, run: Run, interrupt_id: str = "approval") -> None:
    """End the run with a question."""
    new = NewInterrupt(interrupt_id=interrupt_id, kind=InterruptKind.APPROVAL, payload={"action_requests": []})
    await storage.finish_run(
        run.run_id, run.epoch, words("asks"), status=RunStatus.INTERRUPTED, interrupts=[new], caller=LOCAL
    )
