"""What a watcher of all threads is told: the whole first, then what changed, as it is when it is told."""

import asyncio
from contextlib import aclosing

from engine_rig import rig, run, settled, start
from test_interrupts import APPROVE, asked, respond

from pizzabot.host import activity
from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Caller
from pizzabot_hookspecs.storage_backends import ThreadStatus


def watching(parts, *, caller=LOCAL, idle_seconds=5.0):
    return aclosing(parts.activity.watch(idle_seconds=idle_seconds, caller=caller))


async def until(told, holds):
    """The first activity that `holds`, and those before it."""
    seen = []
    async for one in told:
        seen.append(one)
        if holds(one):
            return seen
    raise AssertionError(seen)


def test_the_first_one_is_complete_and_changes_follow(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:0"])) as parts:
            await parts.threads.create("old", caller=LOCAL)
            async with watching(parts) as told:
                first = await anext(told)
                assert (first.complete, [row.thread_id for row in first.threads], list(first.inbox)) == (
                    True,
                    ["old"],
                    [],
                )
                run_id = (await start(parts, "new", "hello"))["result"]["run_id"]
                (busy,) = (await anext(told)).threads
                assert (busy.thread_id, busy.status) == ("new", ThreadStatus.BUSY)
                await parts.runtime.reached("word:0")
                parts.runtime.release("word:0")
                await settled(parts, run_id)
                (idle,) = (await anext(told)).threads
                assert (idle.thread_id, idle.status) == ("new", ThreadStatus.IDLE)
                await parts.threads.delete("old", caller=LOCAL)
                assert list((await anext(told)).deleted) == ["old"]

    run(scene())


def test_a_question_and_its_answer_change_the_inbox(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts, watching(parts) as told:
            assert (await anext(told)).complete
            (interrupt_id,) = await asked(parts, "t", "approve send")
            *_, last = await until(told, lambda one: one.inbox)
            assert [found.interrupt_id for found in last.inbox] == [interrupt_id]
            assert [row.status for row in last.threads] == [ThreadStatus.INTERRUPTED]
            reply = await respond(parts, "t", (interrupt_id, APPROVE))
            await settled(parts, reply.envelope["result"]["run_id"])
            *_, gone = await until(told, lambda one: one.inbox is not None and not one.inbox)
            assert list(gone.inbox) == []

    run(scene())


def test_nobody_is_told_of_another_owners_threads(tmp_path):
    async def scene():
        bo = Caller(owner="bo")
        async with rig(tmp_path, ScriptedRuntime()) as parts, watching(parts, caller=bo, idle_seconds=0.02) as told:
            assert list((await anext(told)).threads) == []
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            quiet = await anext(told)
            assert (quiet.complete, list(quiet.threads), quiet.inbox) == (False, [], None)

    run(scene())


def test_a_watcher_that_fell_far_behind_is_told_the_whole_again(tmp_path, monkeypatch):
    async def scene():
        monkeypatch.setattr(activity, "MAX_CHANGED", 3)
        async with rig(tmp_path, ScriptedRuntime()) as parts, watching(parts) as told:
            await anext(told)
            for number in range(5):
                await parts.threads.create(f"t{number}", caller=LOCAL)
            again = await anext(told)
            assert again.complete
            assert [row.thread_id for row in again.threads] == ["t4", "t3", "t2"]

    run(scene())


def test_closing_one_ends_its_watch_and_stopping_the_host_ends_all(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            unread = parts.activity.watch(idle_seconds=5, caller=LOCAL)
            assert len(parts.activity) == 1
            await unread.aclose()
            assert len(parts.activity) == 0
            async with watching(parts) as told:
                await anext(told)
                waiting = asyncio.ensure_future(anext(told, None))
                await asyncio.sleep(0)
                parts.activity.close()
                assert await waiting in (None, activity.Activity())
            assert [one async for one in parts.activity.watch(idle_seconds=5, caller=LOCAL)] == []

    run(scene())
