"""The run store contract, part: claims. One run holds a thread; a takeover raises the epoch (durable-runs rule 6)."""

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
)
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.storage_backends import (
    CancelReason,
    RunStatus,
)


class ClaimContract(StoreSuite):
    def test_a_claim_makes_a_pending_run_running_with_the_next_epoch_and_attempt(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            pending = (await storage.admit_run(new_run("r"), caller=LOCAL)).run
            run = await storage.claim_run("r", server_id=SERVER, caller=LOCAL)
            assert run is not None
            assert (run.status, run.server_id) == (RunStatus.RUNNING, SERVER)
            assert (run.epoch, run.attempt) == (pending.epoch + 1, pending.attempt + 1)
            assert run.started_at is not None
            assert await current(storage, "r") == run
            assert await storage.active_run("t", caller=LOCAL) == run
            assert await storage.next_pending("t", caller=LOCAL) is None

        self.play(tmp_path, scenario)

    def test_only_a_pending_run_can_be_claimed(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            assert await storage.claim_run("r", server_id="other", caller=LOCAL) is None
            assert await storage.claim_run("unknown", server_id="other", caller=LOCAL) is None
            await finished(storage, run)
            ended = await current(storage, "r")
            for takeover in (False, True):
                claim = await storage.claim_run("r", server_id="other", takeover=takeover, caller=LOCAL)
                assert claim is None
            assert await current(storage, "r") == ended

        self.play(tmp_path, scenario)

    def test_a_thread_is_held_by_one_run_until_that_has_ended(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            await enqueued(storage, "next")
            assert await storage.claim_run("next", server_id=SERVER, caller=LOCAL) is None
            await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            assert await storage.claim_run("next", server_id=SERVER, caller=LOCAL) is None
            await finished(storage, run, status=RunStatus.CANCELLED)
            assert await storage.active_run("t", caller=LOCAL) is None
            assert await storage.claim_run("next", server_id=SERVER, caller=LOCAL) is not None

        self.play(tmp_path, scenario)

    def test_of_fifty_claims_at_once_on_one_thread_one_succeeds(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            names = [f"r{number}" for number in range(50)]
            for name in names:
                await enqueued(storage, name)
            claims = await asyncio.gather(
                *(storage.claim_run(name, server_id=f"server-{name}", caller=LOCAL) for name in names)
            )
            claimed = [run for run in claims if run is not None]
            assert len(claimed) == 1
            assert await storage.active_run("t", caller=LOCAL) == claimed[0]
            active = [run for run in await storage.unfinished_runs(caller=LOCAL) if run.status.active]
            assert active == claimed

        self.play(tmp_path, scenario)

    def test_of_fifty_claims_at_once_of_one_run_one_succeeds(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            await enqueued(storage, "r")
            claims = await asyncio.gather(
                *(storage.claim_run("r", server_id=f"server-{number}", caller=LOCAL) for number in range(50))
            )
            claimed = [run for run in claims if run is not None]
            assert [run.epoch for run in claimed] == [1]
            assert await current(storage, "r") == claimed[0]

        self.play(tmp_path, scenario)

    def test_a_takeover_claims_an_active_run_and_leaves_its_status(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            taken = await storage.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert taken is not None
            assert taken == replace(
                run, epoch=run.epoch + 1, attempt=run.attempt + 1, server_id="server-2", lease_until=taken.lease_until
            )
            cancelling = await storage.request_cancel("r", reason=CancelReason.STOPPED, caller=LOCAL)
            assert cancelling is not None
            again = await storage.claim_run("r", server_id="server-3", takeover=True, caller=LOCAL)
            assert again is not None
            assert again == replace(
                cancelling,
                epoch=cancelling.epoch + 1,
                attempt=cancelling.attempt + 1,
                server_id="server-3",
                lease_until=again.lease_until,
            )

        self.play(tmp_path, scenario)

    def test_a_takeover_is_no_way_to_start_a_pending_run(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            pending = await enqueued(storage, "r")
            assert await storage.claim_run("r", server_id=SERVER, takeover=True, caller=LOCAL) is None
            assert await current(storage, "r") == pending

        self.play(tmp_path, scenario)

    def test_of_claims_by_two_engines_one_succeeds(self, tmp_path: Path) -> None:
        async def scenario(first: RunStore, second: RunStore) -> None:
            names = [f"r{number}" for number in range(10)]
            for name in names:
                await enqueued(first, name)
            claims = await asyncio.gather(
                *(
                    storage.claim_run(name, server_id=server, caller=LOCAL)
                    for name in names
                    for storage, server in ((first, "first"), (second, "second"))
                )
            )
            claimed = [run for run in claims if run is not None]
            assert len(claimed) == 1
            assert await first.active_run("t", caller=LOCAL) == await second.active_run("t", caller=LOCAL) == claimed[0]

        self.play_two(tmp_path, scenario)
