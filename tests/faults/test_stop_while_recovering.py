"""A stop that comes while a restarted server looks what the crash left open: the run does not go on."""

from __future__ import annotations

import asyncio
import json

import pytest
from engine_rig import log_of, open_storage, rig, run, settled, start

from pizzabot.testing.scripted_runtime import ScriptedMemory, ScriptedRuntime
from pizzabot_hookspecs import LOCAL


class Looking:
    """The storage, whose look at open calls takes until `go`."""

    def __init__(self, path):
        self._storage = open_storage(path)
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name):
        return getattr(self._storage, name)

    async def __aenter__(self):
        await self._storage.__aenter__()
        return self

    async def __aexit__(self, *more):
        await self._storage.__aexit__(*more)

    async def open_intents(self, run_id, /, *, caller):
        self.reached.set()
        await self.go.wait()
        return await self._storage.open_intents(run_id, caller=caller)


@pytest.mark.parametrize(("text", "step"), [("one two three", "word:1"), ("tool mail", "tool:mail")])
def test_a_stop_in_the_middle_of_a_recovery_is_not_lost(tmp_path, text, step):
    async def scene():
        memory = ScriptedMemory()
        async with rig(tmp_path, ScriptedRuntime(gates=[step], memory=memory)) as before:
            run_id = (await start(before, "t", text))["result"]["run_id"]
            await before.runtime.reached(step)
        storage = Looking(tmp_path)
        async with rig(tmp_path, ScriptedRuntime(memory=memory), storage=storage) as after:
            await after.engine.recover()
            await storage.reached.wait()
            await after.runs.stop("t", run_id, caller=LOCAL, wait_seconds=0)
            storage.go.set()
            assert (await settled(after, run_id)).status == "cancelled"
            assert [turn.settle for turn in after.runtime.turns] == [True]
            assert after.runtime.executed == []
            assert await after.storage.open_interrupts("t", caller=LOCAL) == []
            assert json.loads((await log_of(after, "t"))[-1].data)["code"] == "CANCELLED"
            again = await start(after, "t", "hello")
            assert (await settled(after, again["result"]["run_id"])).status == "success"

    run(scene())
