"""Two engines on one store: the first is paused past its lease, the second takes over, the first adds nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from engine_rig import is_end, log_of, open_storage, rig, run, settled

from pizzabot.host.runs.leases import LEASE_SECONDS
from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL

CHILD = Path(__file__).parent / "paused_engine.py"


class Shared:
    """The same file as several servers would share it: deadlines count."""

    def __init__(self, path):
        self._storage = open_storage(path)

    shared = True

    def __getattr__(self, name):
        return getattr(self._storage, name)

    async def __aenter__(self):
        return await self._storage.__aenter__()

    async def __aexit__(self, *more):
        await self._storage.__aexit__(*more)


@pytest.fixture
def paused(tmp_path):
    """A process whose run is in its middle, and the run's id."""
    with subprocess.Popen(
        [sys.executable, str(CHILD), str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_a_server_that_is_paused_past_its_lease_and_continued_writes_nothing_more(tmp_path, paused):
    process, run_id = paused
    process.send_signal(signal.SIGSTOP)

    async def scene():
        async with rig(tmp_path, ScriptedRuntime(), storage=Shared(tmp_path)) as second:
            assert await second.engine.recover() == 0, "the lease still runs"
            before = await log_of(second, "t")
            later = replace(second.engine.drivers.services, clock=lambda: time.time() + LEASE_SECONDS + 1)
            second.engine.drivers.services = later
            assert await second.engine.recover() == 1
            row = await settled(second, run_id)
            assert (row.status, row.attempt, row.epoch) == ("success", 2, 2)
            log = await log_of(second, "t")
            assert log[: len(before)] == before
            process.send_signal(signal.SIGCONT)
            process.stdin.write("go on\n")
            process.stdin.flush()
            told = json.loads(process.stdout.readline())
            assert told == {"finished": [], "late": "success", "active": 0}, "it is not its run that finished"
            assert await log_of(second, "t") == log
            assert [event.seq for event in log] == list(range(1, len(log) + 1))
            assert sum(map(is_end, log)) == 1
            assert (await second.storage.run(run_id, caller=LOCAL)).epoch == 2
            assert sum(map(is_end, await log_of(second, "t2"))) == 1, "the first server still works"

    run(scene())
