"""The run store contract, part: epochs. Who was replaced writes nothing more, whatever it believes (rule 6)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pizzabot.testing.run_store_contract.base import (
    RunStore,
    StoreSuite,
    current,
    finished,
    log,
    log_texts,
    refused,
    started,
    words,
)
from pizzabot_hookspecs import LOCAL, Conflict


class FencingContract(StoreSuite):
    def test_after_a_takeover_the_first_server_writes_nothing_more(self, tmp_path: Path) -> None:
        async def scenario(first: RunStore, second: RunStore) -> None:
            old = await started(first, "r")
            await first.append_events("r", old.epoch, words("old"), caller=LOCAL)
            new = await second.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert new is not None
            await refused(first.append_events("r", old.epoch, words("no"), caller=LOCAL), Conflict, "lease_lost")
            await refused(finished(first, old, "no"), Conflict, "lease_lost")
            await refused(first.append_events("r", old.epoch, [], caller=LOCAL), Conflict, "lease_lost")
            assert await current(first, "r") == new
            assert await second.append_events("r", new.epoch, words("new"), caller=LOCAL) == 2
            for storage in (first, second):
                assert await log_texts(storage) == [b'{"text":"old"}', b'{"text":"new"}']

        self.play_two(tmp_path, scenario)

    def test_writes_that_race_a_takeover_are_before_it_or_refused(self, tmp_path: Path) -> None:
        async def scenario(first: RunStore, second: RunStore) -> None:
            old = await started(first, "r")
            tasks = [
                asyncio.create_task(first.append_events("r", old.epoch, words(str(number)), caller=LOCAL))
                for number in range(20)
            ]
            new = await second.claim_run("r", server_id="server-2", takeover=True, caller=LOCAL)
            assert new is not None
            mine = await second.append_events("r", new.epoch, words("new"), caller=LOCAL)
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            stored = [answer for answer in answers if isinstance(answer, int)]
            lost = [answer for answer in answers if isinstance(answer, Conflict)]
            assert len(stored) + len(lost) == len(tasks)
            assert {error.code for error in lost} <= {"lease_lost"}
            assert all(seq < mine for seq in stored), "something of the old epoch lies behind the new one"
            assert [event.seq for event in await log(first)] == list(range(1, mine + 1))

        self.play_two(tmp_path, scenario)

    def test_an_epoch_of_the_future_or_an_unknown_run_is_refused_too(self, tmp_path: Path) -> None:
        async def scenario(storage: RunStore) -> None:
            run = await started(storage, "r")
            for run_id, epoch in (("r", run.epoch + 1), ("r", 0), ("unknown", 1)):
                write = storage.append_events(run_id, epoch, words("no"), caller=LOCAL)
                await refused(write, Conflict, "lease_lost")
            assert await log_texts(storage) == []

        self.play(tmp_path, scenario)
