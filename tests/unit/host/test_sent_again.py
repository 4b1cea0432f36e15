"""A request whose answer was lost is sent again: it gets its first run, whatever happened since."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from engine_rig import log_of, open_storage, rig, run, settled, start
from test_interrupts import APPROVE, REJECT, asked, respond, roots, with_policy

from pizzabot.testing.scripted_runtime import ScriptedMemory, ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Conflict
from pizzabot_hookspecs.storage_backends import RunStatus

BY = {
    "message id": {"message_id": "m-1"},
    "run id": {"run_id": "run_1"},
    "key": {"key": "k-1"},
    "all of them": {"message_id": "m-1", "run_id": "run_1", "key": "k-1"},
}
EDIT = {"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": {"to": "b", "n": 1}}}]}
SAME_EDIT = [{"decision": "edit", "editedArgs": {"n": 1, "to": "b"}}]


@asynccontextmanager
async def servers(path):
    """`now()` is the server; `again()` puts another one in its place, on the same data."""
    memory, opened = ScriptedMemory(), []

    async def begin():
        scene = rig(path, ScriptedRuntime(memory=memory), storage=open_storage(path))
        opened.append((scene, await scene.__aenter__()))
        return opened[-1][1]

    async def again():
        await opened[-1][0].__aexit__(None, None, None)
        return await begin()

    await begin()
    try:
        yield lambda: opened[-1][1], again
    finally:
        await opened[-1][0].__aexit__(None, None, None)


async def both(now, again):
    """The server, then the one after a restart."""
    yield now()
    yield await again()


@pytest.mark.parametrize("by", BY.values(), ids=BY)
def test_a_message_whose_run_asked_a_question_is_not_the_answer_to_it(tmp_path, by):
    async def scene():
        async with servers(tmp_path) as (now, again):
            first = await start(now(), "t", "question who?", **by)
            await settled(now(), first["result"]["run_id"])
            async for parts in both(now, again):
                resent = await start(parts, "t", "question who?", **by)
                assert resent["result"] == first["result"]
                other = await start(parts, "t", "Ada", **by)
                assert other["error"] == "idempotency_mismatch"
                assert len(await parts.storage.open_interrupts("t", caller=LOCAL)) == 1
                assert roots(await log_of(parts, "t")) == ["running", "interrupted"]

    run(scene())


@pytest.mark.parametrize("by", BY.values(), ids=BY)
def test_a_message_that_answered_a_question_is_known_with_and_without_a_newer_question(tmp_path, by):
    async def scene():
        async with servers(tmp_path) as (now, again):
            older, newer = await asked(now(), "t", "question who?"), None
            first = await start(now(), "t", "Ada", **by)
            await settled(now(), first["result"]["run_id"])
            async for parts in both(now, again):
                for _ in range(2):
                    resent = await start(parts, "t", "Ada", **by)
                    assert resent["result"] == first["result"]
                    assert (await start(parts, "t", "Eve", **by))["error"] == "idempotency_mismatch"
                    if newer is None:
                        newer = await asked(parts, "t", "question and then?")
                assert (await parts.storage.interrupt(older[0], caller=LOCAL)).answer == "Ada"
                waiting = await parts.storage.open_interrupts("t", caller=LOCAL)
                assert [found.interrupt_id for found in waiting] == newer
            answer = await start(now(), "t", "Bob", message_id="m-2")
            await settled(now(), answer["result"]["run_id"])
            assert (await now().storage.interrupt(newer[0], caller=LOCAL)).answer == "Bob"

    run(scene())


def test_one_message_sent_many_times_at_once_answers_once(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await asked(parts, "t", "question who?")
            replies = await asyncio.gather(*(start(parts, "t", "Ada", message_id="m") for _ in range(20)))
            (run_id,) = {reply["result"]["run_id"] for reply in replies}
            await settled(parts, run_id)
            assert len(parts.runtime.turns) == 2

    run(scene())


@pytest.mark.parametrize("by", [{"run_id": "run_1"}, {"key": "k-1"}, {"run_id": "run_1", "key": "k-1"}], ids=str)
def test_an_answer_is_known_by_its_run_id_or_key_in_every_spelling_and_another_is_a_mismatch(tmp_path, by):
    async def scene():
        async with servers(tmp_path) as (now, again):
            (interrupt_id,) = await asked(now(), "t", "approve send")
            first = await respond(now(), "t", (interrupt_id, EDIT), **by)
            await settled(now(), first.envelope["result"]["run_id"])
            async for parts in both(now, again):
                for same in (EDIT, SAME_EDIT):
                    resent = await respond(parts, "t", (interrupt_id, same), **by)
                    assert resent.envelope["result"] == first.envelope["result"]
                for other in (APPROVE, REJECT, {"garbage": 1}, None):
                    reply = await respond(parts, "t", (interrupt_id, other), **by)
                    assert reply.envelope["error"] == "idempotency_mismatch"
            assert now().runtime.executed == []  # by the server after the restart
            assert (await respond(now(), "t", (interrupt_id, EDIT))).envelope["error"] == "already_decided"

    run(scene())


@pytest.mark.parametrize("by", [{"run_id": "run_1"}, {"key": "k-1"}], ids=str)
def test_an_answer_on_another_thread_or_to_another_question_is_a_mismatch(tmp_path, by):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            first, second = await asked(parts, "t", "approve a,b")
            (elsewhere,) = await asked(parts, "u", "approve c")
            reply = await respond(parts, "t", (first, APPROVE), **by)
            await settled(parts, reply.envelope["result"]["run_id"])
            wrong = [("u", [first]), ("u", [elsewhere]), ("t", ["nobody"]), ("t", [second]), ("t", [first, second])]
            for thread_id, ids in wrong:
                reply = await respond(parts, thread_id, *((name, APPROVE) for name in ids), **by)
                assert reply.envelope["error"] == "idempotency_mismatch", (thread_id, ids)
            waiting = await parts.storage.open_interrupts(caller=LOCAL)
            assert {found.interrupt_id for found in waiting} == {second, elsewhere}
            assert parts.runtime.executed == ["a"]

    run(scene())


def test_a_key_or_run_id_of_a_message_is_none_for_an_answer(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            first = await start(parts, "t", "approve send", key="k", run_id="run_1")
            await settled(parts, first["result"]["run_id"])
            (found,) = await parts.storage.open_interrupts("t", caller=LOCAL)
            for by in ({"key": "k"}, {"run_id": "run_1"}):
                reply = await respond(parts, "t", (found.interrupt_id, APPROVE), **by)
                assert reply.envelope["error"] == "idempotency_mismatch"
            assert len(await parts.storage.open_interrupts("t", caller=LOCAL)) == 1

    run(scene())


class Full:
    """A policy that lets the first in, and nobody after it."""

    def __init__(self):
        self.let_in = 0

    async def admit(self, request):
        self.let_in += 1
        if self.let_in > 1:
            raise Conflict("queue_full", f"too many wait on {request.thread_id}")


@pytest.mark.parametrize("by", BY.values(), ids=BY)
def test_a_policy_refuses_what_is_new_and_not_what_is_sent_again(tmp_path, by):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(), policies=with_policy(Full())) as parts:
            first = await start(parts, "t", "hi", **by)
            assert (await settled(parts, first["result"]["run_id"])).status is RunStatus.SUCCESS
            assert (await start(parts, "t", "hi", **by))["result"] == first["result"]
            assert (await start(parts, "t", "something else"))["error"] == "queue_full"
            assert (await start(parts, "t", "something else", **by))["error"] == "idempotency_mismatch"

    run(scene())
