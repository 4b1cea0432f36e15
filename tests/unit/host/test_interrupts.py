"""Approvals, questions and recoveries: decided once, by anybody, at any time, and never lost (durable-runs)."""

import asyncio
import json

import pytest
from engine_rig import log_of, open_storage, rig, run, settled, start

from pizzabot.testing.scripted_runtime import ScriptedMemory, ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Caller, Conflict, NotPermitted, Unavailable
from pizzabot_hookspecs.host import CommandOutcome, StopOutcome
from pizzabot_hookspecs.storage_backends import RunStatus

APPROVE = {"decisions": [{"type": "approve"}]}
REJECT = {"decisions": [{"type": "reject", "message": "no"}]}


async def respond(parts, thread_id, *pairs, caller=LOCAL, key=None, **params):
    if len(pairs) == 1:
        params |= {"interrupt_id": pairs[0][0], "response": pairs[0][1]}
    else:
        params |= {"responses": [{"interrupt_id": name, "response": answer} for name, answer in pairs]}
    body = {"id": 9, "method": "input.respond", "params": params}
    return await parts.runs.command(thread_id, body, caller=caller, idempotency_key=key)


async def asked(parts, thread_id, text):
    """Start a run that asks, wait until it waits, and give the ids of its questions."""
    answer = await start(parts, thread_id, text)
    row = await settled(parts, answer["result"]["run_id"])
    assert row.status in (RunStatus.INTERRUPTED, RunStatus.NEEDS_ATTENTION)
    return [found.interrupt_id for found in await parts.storage.open_interrupts(thread_id, caller=LOCAL)]


def roots(events):
    return [json.loads(event.data)["event"] for event in events if event.method == "lifecycle" and not event.namespace]


def test_a_run_that_asks_is_interrupted_and_its_question_is_a_row(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            events = await log_of(parts, "t")
            assert [event.name or event.method for event in events] == [
                "lifecycle",
                "pizzabot.turn",
                "pizzabot.run",
                "input.requested",
                "pizzabot.request",
                "pizzabot.run",
                "lifecycle",
            ]
            assert roots(events) == ["running", "interrupted"]
            row = await parts.storage.interrupt(interrupt_id, caller=LOCAL)
            assert (row.thread_id, row.kind, row.payload["action_requests"][0]["name"]) == ("t", "approval", "send")

    run(scene())


def test_an_approval_resumes_the_run_and_the_tool_runs_once(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            reply = await respond(parts, "t", (interrupt_id, APPROVE))
            assert reply.outcome is CommandOutcome.DONE
            row = await settled(parts, reply.envelope["result"]["run_id"])
            assert (row.status, parts.runtime.executed) == (RunStatus.SUCCESS, ["send"])
            own = [event for event in await log_of(parts, "t") if event.run_id == row.run_id]
            assert [event.method for event in own[:2]] == ["lifecycle", "input.answered"]
            assert json.loads(own[1].data) == {"interrupt_ids": [interrupt_id]}
            assert await parts.storage.open_interrupts("t", caller=LOCAL) == []

    run(scene())


def test_a_rejected_call_does_not_run(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            reply = await respond(parts, "t", (interrupt_id, REJECT))
            await settled(parts, reply.envelope["result"]["run_id"])
            assert parts.runtime.executed == []

    run(scene())


def test_several_questions_are_answered_in_any_order_one_by_one(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            first, second, third = await asked(parts, "t", "approve a,b,c")
            for interrupt_id, left in ((third, 2), (first, 1), (second, 0)):
                reply = await respond(parts, "t", (interrupt_id, APPROVE))
                await settled(parts, reply.envelope["result"]["run_id"])
                assert len(await parts.storage.open_interrupts("t", caller=LOCAL)) == left
            assert parts.runtime.executed == ["c", "a", "b"]

    run(scene())


def test_several_questions_are_answered_at_once_or_not_at_all(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            first, second = await asked(parts, "t", "approve a,b")
            half = await respond(parts, "t", (first, APPROVE), (second, {"decisions": []}))
            assert (half.outcome, half.envelope["error"]) == (CommandOutcome.REFUSED, "invalid_decision")
            assert list(half.envelope["fields"]) == ["responses.1.response.decisions"]
            assert len(await parts.storage.open_interrupts("t", caller=LOCAL)) == 2
            both = await respond(parts, "t", (first, APPROVE), (second, REJECT))
            await settled(parts, both.envelope["result"]["run_id"])
            assert parts.runtime.executed == ["a"]

    run(scene())


def test_answers_that_come_while_another_is_being_carried_out_wait_their_turn(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["tool:a"])) as parts:
            first, second = await asked(parts, "t", "approve a,b")
            one = await respond(parts, "t", (first, APPROVE))
            await parts.runtime.reached("tool:a")
            two = await respond(parts, "t", (second, APPROVE))
            parts.runtime.release("tool:a")
            for reply in (one, two):
                await settled(parts, reply.envelope["result"]["run_id"])
            assert parts.runtime.executed == ["a", "b"]
            assert await parts.storage.open_interrupts("t", caller=LOCAL) == []

    run(scene())


@pytest.mark.parametrize("answer", [{"decisions": []}, "yes", {"type": "maybe"}, {"decisions": [{"type": "edit"}]}])
def test_a_wrong_answer_is_refused_and_the_question_stays_open_and_answerable(tmp_path, answer):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            before = len(await log_of(parts, "t"))
            for _ in range(2):
                reply = await respond(parts, "t", (interrupt_id, answer))
                assert (reply.outcome, reply.envelope["error"]) == (CommandOutcome.REFUSED, "invalid_decision")
                assert reply.envelope["fields"]
            assert len(await log_of(parts, "t")) == before
            reply = await respond(parts, "t", (interrupt_id, APPROVE))
            await settled(parts, reply.envelope["result"]["run_id"])
            assert parts.runtime.executed == ["send"]

    run(scene())


def test_a_second_decision_is_told_who_and_when_and_of_many_at_once_one_wins(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            replies = await asyncio.gather(
                *(respond(parts, "t", (interrupt_id, choice)) for choice in (APPROVE, REJECT) * 10)
            )
            won = [reply for reply in replies if reply.outcome is CommandOutcome.DONE]
            lost = [reply for reply in replies if reply.outcome is not CommandOutcome.DONE]
            assert len(won) == 1
            assert {reply.envelope["error"] for reply in lost} == {"already_decided"}
            assert all("local" in reply.envelope["message"] for reply in lost)
            await settled(parts, won[0].envelope["result"]["run_id"])
            assert len(parts.runtime.executed) <= 1

    run(scene())


def test_the_same_answer_sent_again_with_its_run_id_is_one_run(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            first = await respond(parts, "t", (interrupt_id, APPROVE), run_id="run_mine")
            await settled(parts, "run_mine")
            again = await respond(parts, "t", (interrupt_id, APPROVE), run_id="run_mine")
            assert first.envelope["result"] == again.envelope["result"] == {"run_id": "run_mine"}
            assert parts.runtime.executed == ["send"]

    run(scene())


def test_a_message_never_makes_an_approval_disappear(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            for strategy in ("interrupt", "enqueue", "reject"):
                refused = await start(parts, "t", "never mind", multitask_strategy=strategy)
                assert (refused["error"], refused["fields"]) == ("interrupt_pending", {"interrupt_ids": interrupt_id})
            reply = await respond(parts, "t", (interrupt_id, APPROVE))
            await settled(parts, reply.envelope["result"]["run_id"])
            assert parts.runtime.executed == ["send"]
            answer = await start(parts, "t", "hello")
            assert (await settled(parts, answer["result"]["run_id"])).status is RunStatus.SUCCESS

    run(scene())


def test_nothing_pending_foreign_and_unknown_ids_are_no_such_interrupt(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            await start(parts, "u", "hello")
            await parts.engine.when_idle()
            for thread_id, name in (("u", interrupt_id), ("t", "nobody")):
                reply = await respond(parts, thread_id, (name, APPROVE))
                assert (reply.outcome, reply.envelope["error"]) == (CommandOutcome.REFUSED, "no_such_interrupt")
            eve = await respond(parts, "t", (interrupt_id, APPROVE), caller=Caller(owner="eve"))
            assert eve.outcome is CommandOutcome.NOT_FOUND

    run(scene())


@pytest.mark.parametrize(
    "params",
    [
        {}, {"responses": []}, {"responses": [3]}, {"interrupt_id": 3}, {"interrupt_id": "i", "goto": "model"},
        {"responses": [{"interrupt_id": "i", "response": 1}, {"interrupt_id": "i", "response": 1}]},
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused_before_anything_is_looked_up(tmp_path, params):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await asked(parts, "t", "approve send")
            body = {"id": 1, "method": "input.respond", "params": params}
            reply = await parts.runs.command("t", body, caller=LOCAL)
            assert reply.envelope["error"] in ("invalid_argument", "not_supported")

    run(scene())


@pytest.mark.parametrize("beside", [{}, {"answer": "no"}, {"Response": "no"}, {"decisions": []}, {"choice": "stop"}])
@pytest.mark.parametrize("kind", ["question who?", "approve send"])
def test_an_answer_without_a_response_is_refused_and_the_question_stays_open(tmp_path, beside, kind):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", kind)
            entry = {"interrupt_id": interrupt_id} | beside
            for params in (entry, {"responses": [entry]}):
                body = {"id": 1, "method": "input.respond", "params": params}
                reply = await parts.runs.command("t", body, caller=LOCAL)
                assert (reply.outcome, reply.envelope["error"]) == (CommandOutcome.REFUSED, "invalid_decision")
                (field,) = reply.envelope["fields"]
                assert field == "response" or "approve" in kind
            assert len(await parts.storage.open_interrupts("t", caller=LOCAL)) == 1

    run(scene())


def test_of_several_answers_the_one_without_a_response_is_named(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            first, second = await asked(parts, "t", "approve a,b")
            entries = [{"interrupt_id": first, "response": APPROVE}, {"interrupt_id": second}]
            body = {"id": 1, "method": "input.respond", "params": {"responses": entries}}
            reply = await parts.runs.command("t", body, caller=LOCAL)
            assert list(reply.envelope["fields"]) == ["responses.1.response"]

    run(scene())


def test_decisions_may_stand_beside_the_id_of_an_approval(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            params = {"interruptId": interrupt_id, "decisions": [{"decision": "approve"}]}
            body = {"id": 1, "method": "input.respond", "params": params}
            reply = await parts.runs.command("t", body, caller=LOCAL)
            await settled(parts, reply.envelope["result"]["run_id"])
            assert parts.runtime.executed == ["send"]

    run(scene())


@pytest.mark.parametrize("restarted", [False, True])
def test_what_is_decided_while_another_answer_is_carried_out_is_not_asked_again(tmp_path, restarted):
    async def scene():
        memory = ScriptedMemory()
        async with rig(tmp_path, ScriptedRuntime(gates=["tool:a"], memory=memory)) as before:
            first, second, third = await asked(before, "t", "approve a,b,c")
            one = await respond(before, "t", (first, APPROVE))
            await before.runtime.reached("tool:a")
            two = await respond(before, "t", (second, APPROVE))
            if not restarted:
                before.runtime.release("tool:a")
                await check(before, one, two, second, third)
        if restarted:
            memory.asked["t"].pop(first, None)
            memory.results[first] = "ok"
            async with rig(tmp_path, ScriptedRuntime(memory=memory), storage=open_storage(tmp_path)) as after:
                await after.engine.recover()
                await check(after, one, two, second, third)

    async def check(parts, one, two, second, third):
        for reply in (one, two):
            row = await settled(parts, reply.envelope["result"]["run_id"])
            assert row.status is RunStatus.INTERRUPTED
        events = [event for event in await log_of(parts, "t") if event.run_id == one.envelope["result"]["run_id"]]
        again = [json.loads(event.data)["interrupt_id"] for event in events if event.method == "input.requested"]
        assert again == [third]
        assert roots(events)[-1] == "interrupted"
        waiting = await parts.storage.open_interrupts("t", caller=LOCAL)
        assert [found.interrupt_id for found in waiting] == [third]

    run(scene())


def test_a_run_that_leaves_only_what_is_decided_pauses_and_asks_nothing(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["tool:a"])) as parts:
            first, second = await asked(parts, "t", "approve a,b")
            one = await respond(parts, "t", (first, APPROVE))
            await parts.runtime.reached("tool:a")
            two = await respond(parts, "t", (second, APPROVE))
            parts.runtime.release("tool:a")
            paused = await settled(parts, one.envelope["result"]["run_id"])
            done = await settled(parts, two.envelope["result"]["run_id"])
            assert (paused.status, done.status) == (RunStatus.INTERRUPTED, RunStatus.SUCCESS)
            events = await log_of(parts, "t")
            assert [event.method for event in events].count("input.requested") == 2
            assert roots(events) == ["running", "interrupted", "running", "interrupted", "running", "completed"]

    run(scene())


def test_a_plain_message_answers_the_newest_question(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "question who?")
            answer = await start(parts, "t", "Ada")
            await settled(parts, answer["result"]["run_id"])
            row = await parts.storage.interrupt(interrupt_id, caller=LOCAL)
            assert (row.state, row.answer) == ("decided", "Ada")
            assert parts.runtime.turns[-1].answers == {interrupt_id: "Ada"}

    run(scene())


def test_a_file_is_no_answer_and_several_messages_are_one(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "question who?")
            file = {"type": "file", "url": "attachment://a1", "mediaType": "image/png"}
            refused = await start(parts, "t", [{"type": "text", "text": "her"}, file])
            assert (refused["error"], refused["fields"]) == ("interrupt_pending", {"interrupt_ids": interrupt_id})
            said = [{"role": "user", "content": text} for text in ("Ada", "Lovelace")]
            body = {"id": 1, "method": "run.start", "params": {"input": {"messages": said}}}
            answer = (await parts.runs.command("t", body, caller=LOCAL)).envelope
            await settled(parts, answer["result"]["run_id"])
            row = await parts.storage.interrupt(interrupt_id, caller=LOCAL)
            assert (row.state, row.answer) == ("decided", "Ada\n\nLovelace")

    run(scene())


def test_an_approval_outlives_the_server(tmp_path):
    async def scene():
        memory = ScriptedMemory()
        async with rig(tmp_path, ScriptedRuntime(memory=memory)) as before:
            (interrupt_id,) = await asked(before, "t", "approve send")
        async with rig(tmp_path, ScriptedRuntime(memory=memory), storage=open_storage(tmp_path)) as after:
            assert await after.engine.recover() == 0
            reply = await respond(after, "t", (interrupt_id, APPROVE))
            await settled(after, reply.envelope["result"]["run_id"])
            assert after.runtime.executed == ["send"]

    run(scene())


async def crashed_in(tmp_path, step, memory):
    """A run that was killed at a step of the tool `mail`; its run id."""
    async with rig(tmp_path, ScriptedRuntime(gates=[step], memory=memory)) as before:
        run_id = (await start(before, "t", "tool mail"))["result"]["run_id"]
        await before.runtime.reached(step)
        return run_id


@pytest.mark.parametrize("step", ["tool:mail", "ran:mail"])
def test_a_crash_in_a_tool_that_must_not_run_twice_asks_a_person(tmp_path, step):
    async def scene():
        memory = ScriptedMemory()
        run_id = await crashed_in(tmp_path, step, memory)
        async with rig(tmp_path, ScriptedRuntime(memory=memory), storage=open_storage(tmp_path)) as after:
            await after.engine.recover()
            row = await settled(after, run_id)
            assert (row.status, row.error_code) == (RunStatus.NEEDS_ATTENTION, "NEEDS_ATTENTION")
            (question,) = await after.storage.open_interrupts(caller=LOCAL)
            assert (question.kind, question.payload["choices"]) == ("recovery", ["retry", "skip", "stop"])
            assert question.payload["actions"][0]["tool"] == "mail"
            events = await log_of(after, "t")
            assert roots(events) == ["running", "failed"]
            assert json.loads(events[-1].data)["code"] == "NEEDS_ATTENTION"
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            refused = await start(after, "t", "hello")
            assert refused["error"] == "interrupt_pending"
            assert after.runtime.executed == []

    run(scene())


@pytest.mark.parametrize(("choice", "executed"), [("retry", ["mail"]), ("skip", []), ("stop", [])])
def test_the_three_choices_after_a_crash(tmp_path, choice, executed):
    async def scene():
        memory = ScriptedMemory()
        run_id = await crashed_in(tmp_path, "ran:mail", memory)
        async with rig(tmp_path, ScriptedRuntime(memory=memory), storage=open_storage(tmp_path)) as after:
            await after.engine.recover()
            await settled(after, run_id)
            (question,) = await after.storage.open_interrupts("t", caller=LOCAL)
            reply = await respond(after, "t", (question.interrupt_id, {"choice": choice}))
            row = await settled(after, reply.envelope["result"]["run_id"])
            assert (row.status, after.runtime.executed) == (RunStatus.SUCCESS, executed)
            turn = after.runtime.turns[-1]
            assert (turn.recover, turn.settle, "call-mail" in turn.skip) == (True, choice == "stop", choice != "retry")
            answer = await start(after, "t", "hello")
            assert (await settled(after, answer["result"]["run_id"])).status is RunStatus.SUCCESS

    run(scene())


def test_the_same_choice_sent_again_with_its_run_id_is_one_run(tmp_path):
    async def scene():
        memory = ScriptedMemory()
        run_id = await crashed_in(tmp_path, "ran:mail", memory)
        async with rig(tmp_path, ScriptedRuntime(memory=memory), storage=open_storage(tmp_path)) as after:
            await after.engine.recover()
            await settled(after, run_id)
            (question,) = await after.storage.open_interrupts("t", caller=LOCAL)
            for _ in range(2):
                reply = await respond(after, "t", (question.interrupt_id, {"choice": "retry"}), run_id="run_again")
                assert reply.envelope["result"] == {"run_id": "run_again"}
                await after.engine.when_idle()
            assert after.runtime.executed == ["mail"]

    run(scene())


def test_a_crash_after_a_tools_result_was_kept_goes_on_without_asking(tmp_path):
    async def scene():
        memory = ScriptedMemory()
        run_id = await crashed_in(tmp_path, "ran:mail", memory)
        memory.results["call-mail"] = "ok"
        async with rig(tmp_path, ScriptedRuntime(memory=memory), storage=open_storage(tmp_path)) as after:
            await after.engine.recover()
            assert (await settled(after, run_id)).status is RunStatus.SUCCESS
            assert after.runtime.executed == []

    run(scene())


def test_a_stop_in_a_tool_leaves_no_intent_open(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["tool:mail"])) as parts:
            run_id = (await start(parts, "t", "tool mail"))["result"]["run_id"]
            await parts.runtime.reached("tool:mail")
            assert await parts.runs.stop("t", run_id, caller=LOCAL) is StopOutcome.CANCELLED
            assert await parts.storage.open_intents(run_id, caller=LOCAL) == []
            tools = [json.loads(event.data)["event"] for event in await log_of(parts, "t") if event.method == "tools"]
            assert tools == ["tool-started", "tool-error"]

    run(scene())


class Only:
    """A policy that lets short messages in."""

    def __init__(self, error=None):
        self.asked = []
        self.error = error

    async def admit(self, request):
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        if request.characters > 10:
            raise NotPermitted("too_long", "at most 10 characters")


def with_policy(policy):
    from engine_rig import _LOGGER

    from pizzabot.host.runs.policies import Policies

    policies = Policies(_LOGGER)
    policies.add("only", policy)
    return policies


def test_a_policy_refuses_before_anything_is_stored(tmp_path):
    async def scene():
        policy = Only()
        async with rig(tmp_path, ScriptedRuntime(), policies=with_policy(policy)) as parts:
            refused = await start(parts, "t", "much too long a message")
            assert (refused["type"], refused["error"]) == ("error", "too_long")
            assert await parts.storage.thread("t", caller=LOCAL) is None
            allowed = await start(parts, "t", "short")
            assert (await settled(parts, allowed["result"]["run_id"])).status is RunStatus.SUCCESS
            assert [(request.characters, request.waiting) for request in policy.asked] == [(23, 0), (5, 0)]

    run(scene())


def test_a_broken_policy_refuses(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(), policies=with_policy(Only(ZeroDivisionError()))) as parts:
            refused = await start(parts, "t", "short")
            assert refused["error"] == "admission_failed"
            assert await parts.storage.thread("t", caller=LOCAL) is None

    run(scene())


def test_a_run_that_another_server_took_over_writes_nothing_more(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"])) as first:
            run_id = (await start(first, "t", "one two"))["result"]["run_id"]
            await first.runtime.reached("word:1")
            async with rig(tmp_path, ScriptedRuntime(), storage=open_storage(tmp_path)) as second:
                await second.engine.recover()
                await settled(second, run_id)
                log = await log_of(second, "t")
                first.runtime.release("word:1")
                await first.engine.when_idle()
                assert await log_of(second, "t") == log
                assert roots(log) == ["running", "completed"]
                with pytest.raises(Conflict):
                    await first.storage.append_events(run_id, 1, [], caller=LOCAL)

    run(scene())


def test_a_lost_lease_ends_the_work_without_a_write(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"])) as first:
            run_id = (await start(first, "t", "one two"))["result"]["run_id"]
            await first.runtime.reached("word:1")
            taken = await first.storage.claim_run(run_id, server_id="other", takeover=True, caller=LOCAL)
            before = await log_of(first, "t")
            await first.engine._leases.renew()
            await first.engine.when_idle()
            assert await log_of(first, "t") == before
            row = await first.storage.run(run_id, caller=LOCAL)
            assert (row.status, row.epoch) == (RunStatus.RUNNING, taken.epoch)

    run(scene())


def test_old_runs_are_merged_and_a_reader_inside_gets_the_whole_text(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(words=50)) as parts:
            for _ in range(2):
                await start(parts, "t", "go")
                await parts.engine.when_idle()
            merger = parts.engine._merger
            assert await merger.merge_old_runs() == 0
            merger._clock = lambda: __import__("time").time() + 25 * 3600
            assert await merger.merge_old_runs() == 1
            events = await log_of(parts, "t")
            merged = [json.loads(event.data) for event in events if b"from_seq" in event.data]
            assert [len(data["delta"]["text"].split()) for data in merged] == [50]
            assert events[-1].seq > 100
            assert await merger.merge_old_runs() == 0

    run(scene())


class Unkept(ScriptedRuntime):
    """Runs an unrepeatable tool whose result storage then refuses to keep."""

    def start(self, turn, /):
        return super().start(turn) if turn.settle else _Unkept(self, turn)


class _Unkept:
    def __init__(self, runtime, turn):
        self._runtime, self._turn = runtime, turn

    async def stop(self):
        raise AssertionError("nobody stops it")

    async def __aiter__(self):
        await self._turn.intents.open("call-post", tool="post", namespace=())
        self._runtime.executed.append("post")
        if self._runtime.gates:  # never: an asynchronous generator has to have a yield
            yield
        raise Unavailable("storage_failed", "the disk is full")


def test_a_call_whose_result_could_not_be_kept_is_a_question_to_the_person(tmp_path):
    async def scene():
        async with rig(tmp_path, Unkept()) as parts:
            (interrupt_id,) = await asked(parts, "t", "post it")
            row = await parts.storage.interrupt(interrupt_id, caller=LOCAL)
            assert (row.kind, row.payload["actions"][0]["tool"]) == ("recovery", "post")
            assert row.payload["reason"].startswith("no result of post was kept")
            assert "server" not in row.payload["reason"]
            assert roots(await log_of(parts, "t")) == ["running", "failed"]
            reply = await respond(parts, "t", (interrupt_id, {"choice": "stop"}))
            await settled(parts, reply.envelope["result"]["run_id"])
            assert parts.runtime.executed == ["post"]
            assert await parts.storage.open_interrupts("t", caller=LOCAL) == []

    run(scene())


def test_a_question_is_shown_in_the_transaction_that_makes_it_answerable(tmp_path):
    async def scene():
        storage = open_storage(tmp_path)
        appended, append = [], storage.append_events

        async def noting(run_id, epoch, events, /, *, caller):
            appended.extend(event.method for event in events)
            return await append(run_id, epoch, events, caller=caller)

        storage.append_events = noting
        async with rig(tmp_path, ScriptedRuntime(), storage=storage) as parts:
            await asked(parts, "t", "approve a,b")
            assert "input.requested" not in appended
            assert [event.method for event in await log_of(parts, "t")].count("input.requested") == 2

    run(scene())


def test_what_a_stopped_or_failed_run_asked_is_not_shown(tmp_path):
    class Asking(ScriptedRuntime):
        def start(self, turn, /):
            turned = super().start(turn)
            ask = turned._ask

            async def ask_and_go_on(questions):
                async for frame in ask(questions):
                    yield frame
                async for frame in turned._say("and more"):
                    yield frame

            turned._ask = ask_and_go_on
            return turned

    async def scene():
        async with rig(tmp_path, Asking(gates=["word:0"])) as parts:
            run_id = (await start(parts, "t", "approve send"))["result"]["run_id"]
            await parts.runtime.reached("word:0")
            await parts.runs.stop("t", run_id, caller=LOCAL)
            assert "input.requested" not in [event.method for event in await log_of(parts, "t")]
            assert await parts.storage.open_interrupts("t", caller=LOCAL) == []

    run(scene())
