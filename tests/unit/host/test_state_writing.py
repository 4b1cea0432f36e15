"""A client writes a thread's state: never beside a run, and no run begins meanwhile."""

import asyncio

import pytest
from engine_rig import rig, run, settled, start
from test_interrupts import asked

from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Caller, Conflict, InvalidRequest, NotFound
from pizzabot_hookspecs.storage_backends import RunStatus


class Keeping(ScriptedRuntime):
    """Keeps a history of one state, and writes for as long as the gate is shut."""

    def __init__(self, **more):
        super().__init__(**more)
        self.writing, self.may_end = asyncio.Event(), asyncio.Event()
        self.may_end.set()
        self.written = []

    async def history(self, thread_id, /, *, limit, before, namespace, caller):
        return [await self.state(thread_id, caller=caller)][:limit]

    async def update_state(self, thread_id, values, /, *, as_node, checkpoint_id, caller):
        self.writing.set()
        await self.may_end.wait()
        self.written.append(values)
        return await self.state(thread_id, caller=caller)


def update(parts, thread_id="t", caller=LOCAL):
    return parts.threads.update_state(thread_id, {"messages": []}, caller=caller)


def test_it_is_written_once_the_run_has_ended_and_runs_admitted_meanwhile_begin_behind_it(tmp_path):
    async def scene():
        async with rig(tmp_path, Keeping()) as parts:
            await settled(parts, (await start(parts, "t", "one"))["result"]["run_id"])
            parts.runtime.may_end.clear()
            writing = asyncio.ensure_future(update(parts))
            await parts.runtime.writing.wait()
            run_id = (await start(parts, "t", "two"))["result"]["run_id"]
            assert (await parts.storage.run(run_id, caller=LOCAL)).status is RunStatus.PENDING
            with pytest.raises(Conflict) as second:
                await update(parts)
            assert second.value.code == "thread_busy"
            parts.runtime.may_end.set()
            await writing
            assert (await settled(parts, run_id)).status is RunStatus.SUCCESS
            assert parts.runtime.written == [{"messages": []}]

    run(scene())


def test_it_is_refused_while_a_run_goes_on_or_a_person_is_asked(tmp_path):
    async def scene():
        async with rig(tmp_path, Keeping(gates=["word:0"])) as parts:
            run_id = (await start(parts, "t", "one"))["result"]["run_id"]
            await parts.runtime.reached("word:0")
            with pytest.raises(Conflict) as busy:
                await update(parts)
            assert busy.value.code == "thread_busy"
            parts.runtime.release("word:0")
            await settled(parts, run_id)
            (interrupt_id,) = await asked(parts, "t", "approve send")
            with pytest.raises(Conflict) as waits:
                await update(parts)
            assert (waits.value.code, waits.value.fields) == ("interrupt_pending", {"interrupt_ids": interrupt_id})
            assert parts.runtime.written == []

    run(scene())


def test_a_runtime_without_the_capability_and_a_thread_of_somebody_else_are_told_apart(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await parts.threads.create("t", caller=LOCAL)
            for call in (update(parts), parts.threads.history("t", caller=LOCAL)):
                with pytest.raises(InvalidRequest) as refused:
                    await call
                assert refused.value.code == "not_supported"
            for call in (update(parts, caller=Caller(owner="bo")), parts.threads.history("nowhere", caller=LOCAL)):
                with pytest.raises(NotFound) as unknown:
                    await call
                assert unknown.value.code == "no_such_thread"
            for limit in (0, 1001):
                with pytest.raises(InvalidRequest) as wrong:
                    await parts.threads.history("t", limit=limit, caller=LOCAL)
                assert wrong.value.code == "invalid_argument"

    run(scene())


def test_metadata_of_more_than_sixteen_kilobytes_is_refused_and_makes_no_thread(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            with pytest.raises(InvalidRequest) as refused:
                await parts.threads.create("t", metadata={"k": "x" * 16_400}, caller=LOCAL)
            assert (refused.value.code, list(refused.value.fields)) == ("invalid_argument", ["metadata"])
            with pytest.raises(NotFound):
                await parts.threads.get("t", caller=LOCAL)

    run(scene())
