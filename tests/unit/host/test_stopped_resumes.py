"""A stop of a run that goes on with answers ends the whole turn: its calls are settled and its questions withdrawn."""

import asyncio
import json

import pytest
from engine_rig import log_of, rig, run, settled, start
from test_interrupts import APPROVE, asked, respond, roots

from pizzabot.testing.scripted_runtime import ScriptedMemory, ScriptedRuntime
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.host import CommandOutcome, StopOutcome
from pizzabot_hookspecs.interrupts import InterruptState
from pizzabot_hookspecs.storage_backends import CancelReason, RunStatus


async def state_of(parts, interrupt_id):
    return (await parts.storage.interrupt(interrupt_id, caller=LOCAL)).state


def answered_by(events, run_id):
    return [
        json.loads(event.data)["interrupt_ids"]
        for event in events
        if event.method == "input.answered" and event.run_id == run_id
    ]


def test_stopping_it_withdraws_the_questions_that_are_still_open(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["tool:a"])) as parts:
            first, second = await asked(parts, "t", "approve a,b")
            going = (await respond(parts, "t", (first, APPROVE))).envelope["result"]["run_id"]
            await parts.runtime.reached("tool:a")
            assert await parts.runs.stop("t", going, caller=LOCAL) is StopOutcome.CANCELLED
            assert await state_of(parts, second) is InterruptState.WITHDRAWN
            assert answered_by(await log_of(parts, "t"), going) == [[first], [second]]
            late = await respond(parts, "t", (second, APPROVE))
            assert (late.outcome, late.envelope["error"]) == (CommandOutcome.REFUSED, "already_decided")
            assert "withdrawn" in late.envelope["message"]
            assert parts.runtime.executed == []
            row = await settled(parts, (await start(parts, "t", "and now"))["result"]["run_id"])
            assert row.status is RunStatus.SUCCESS

    run(scene())


def test_stopping_one_that_waits_behind_another_settles_its_calls_too(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["tool:a"])) as parts:
            first, second, third = await asked(parts, "t", "approve a,b,c")
            going = (await respond(parts, "t", (first, APPROVE))).envelope["result"]["run_id"]
            await parts.runtime.reached("tool:a")
            waiting = (await respond(parts, "t", (second, APPROVE))).envelope["result"]["run_id"]
            assert await parts.runs.stop("t", waiting, caller=LOCAL, wait_seconds=0) is StopOutcome.PENDING
            parts.runtime.release("tool:a")
            assert (await settled(parts, waiting)).status is RunStatus.CANCELLED
            assert (await settled(parts, going)).status is RunStatus.INTERRUPTED
            assert parts.runtime.turns[-1].settle, "the calls that waited were left without a result"
            assert parts.runtime.executed == ["a"]
            assert await state_of(parts, third) is InterruptState.WITHDRAWN
            row = await settled(parts, (await start(parts, "t", "and now"))["result"]["run_id"])
            assert row.status is RunStatus.SUCCESS

    run(scene())


def test_stopping_the_first_stops_those_that_wait_with_answers_to_the_same_turn(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["tool:a"])) as parts:
            first, second = await asked(parts, "t", "approve a,b")
            going = (await respond(parts, "t", (first, APPROVE))).envelope["result"]["run_id"]
            await parts.runtime.reached("tool:a")
            waiting = (await respond(parts, "t", (second, APPROVE))).envelope["result"]["run_id"]
            await parts.runs.stop("t", going, caller=LOCAL)
            assert (await settled(parts, waiting)).status is RunStatus.CANCELLED
            assert parts.runtime.executed == []

    run(scene())


@pytest.mark.parametrize("stopped_first", [True, False])
def test_stopping_queued_messages_behind_an_open_question_leaves_the_question(tmp_path, stopped_first):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:0"])) as parts:
            asks = (await start(parts, "t", "hold"))["result"]["run_id"]
            await parts.runtime.reached("word:0")
            queued = [
                (await start(parts, "t", text, multitask_strategy="enqueue"))["result"]["run_id"]
                for text in ("approve send", "two", "three")
            ]
            parts.runtime.release("word:0")
            await settled_one(parts, asks)
            await settled_one(parts, queued[0])
            stops = [parts.runs.stop("t", run_id, caller=LOCAL) for run_id in queued[1:]]
            ends = await asyncio.gather(*stops) if stopped_first else [await stop for stop in stops]
            assert ends == [StopOutcome.CANCELLED] * 2
            (question,) = await parts.storage.open_interrupts("t", caller=LOCAL)
            reply = await respond(parts, "t", (question.interrupt_id, APPROVE))
            await settled(parts, reply.envelope["result"]["run_id"])
            assert parts.runtime.executed == ["send"]

    run(scene())


async def settled_one(parts, run_id):
    """Wait for one run while others of its thread wait in the queue."""
    known = parts.engine.drivers.running.get(run_id)
    if known is not None:
        await known.settled.wait()


def test_a_server_that_died_after_two_stops_ends_both_while_the_question_stays(tmp_path):
    memory = ScriptedMemory()

    async def scene():
        async with rig(tmp_path, ScriptedRuntime(memory=memory, gates=["word:0"]), close=False) as parts:
            await start(parts, "t", "hold")
            await parts.runtime.reached("word:0")
            asks = (await start(parts, "t", "approve send", multitask_strategy="enqueue"))["result"]["run_id"]
            queued = [
                (await start(parts, "t", text, multitask_strategy="enqueue"))["result"]["run_id"] for text in "ab"
            ]
            for run_id in queued:
                await parts.storage.request_cancel(run_id, reason=CancelReason.STOPPED, caller=LOCAL)
            await parts.engine.shutdown()
        async with rig(tmp_path, ScriptedRuntime(memory=memory)) as parts:
            await parts.engine.recover()
            await settled_one(parts, asks)
            for run_id in queued:
                await settled_one(parts, run_id)
                assert (await parts.storage.run(run_id, caller=LOCAL)).status is RunStatus.CANCELLED
            assert len(await parts.storage.open_interrupts("t", caller=LOCAL)) == 1
            assert roots(await log_of(parts, "t")).count("interrupted") == 1

    run(scene())


def test_a_stop_of_a_turn_that_waits_ends_it_and_answers_its_questions(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            first, second = await asked(parts, "t", "approve a,b")
            asker = (await parts.storage.interrupt(first, caller=LOCAL)).run_id
            queued = (await start(parts, "other", "one"))["result"]["run_id"]
            assert await parts.runs.stop("t", queued, caller=LOCAL) is StopOutcome.NO_RUN, "another thread's run"
            assert len(await parts.storage.open_interrupts("t", caller=LOCAL)) == 2
            assert await parts.runs.stop("t", asker, caller=LOCAL) is StopOutcome.CANCELLED
            assert await parts.storage.open_interrupts("t", caller=LOCAL) == []
            assert (parts.runtime.executed, parts.runtime.turns[-1].settle) == ([], True)
            events = await log_of(parts, "t")
            last = json.loads(events[-1].data)
            assert (last["event"], last["code"]) == ("completed", "CANCELLED")
            assert answered_by(events, events[-1].run_id) == [[first, second]]
            assert await parts.runs.stop("t", asker, caller=LOCAL) is StopOutcome.NO_RUN
            row = await settled(parts, (await start(parts, "t", "and now"))["result"]["run_id"])
            assert row.status is RunStatus.SUCCESS

    run(scene())


def test_a_stop_without_an_id_behind_a_question_ends_the_turn_and_the_queued_message_follows(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:0"])) as parts:
            await start(parts, "t", "hold")
            await parts.runtime.reached("word:0")
            asks = (await start(parts, "t", "approve send", multitask_strategy="enqueue"))["result"]["run_id"]
            queued = (await start(parts, "t", "after", multitask_strategy="enqueue"))["result"]["run_id"]
            parts.runtime.release("word:0")
            await settled_one(parts, asks)
            assert await parts.runs.stop("t", None, caller=LOCAL) is StopOutcome.CANCELLED
            await settled_one(parts, queued)
            assert (await parts.storage.run(queued, caller=LOCAL)).status is RunStatus.SUCCESS
            assert parts.runtime.executed == []

    run(scene())


def test_a_thread_with_a_message_behind_a_question_is_deleted_whole(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:0"])) as parts:
            await start(parts, "t", "hold")
            await parts.runtime.reached("word:0")
            asks = (await start(parts, "t", "approve send", multitask_strategy="enqueue"))["result"]["run_id"]
            await start(parts, "t", "after", multitask_strategy="enqueue")
            parts.runtime.release("word:0")
            await settled_one(parts, asks)
            assert await parts.threads.delete("t", caller=LOCAL)
            await parts.engine.when_idle()
            assert parts.engine.active == 0

    run(scene())
