"""The run engine on a real SQLite file: admission, order, stop, replacement, failure, recovery (durable-runs)."""

import asyncio
import json
from dataclasses import replace

import pytest
from engine_rig import EVERYTHING, collect_until, is_end, log_of, open_storage, rig, run, settled, start

from pizzabot.host.runs.beginning import told_before
from pizzabot.host.runs.completion import LogCompletion
from pizzabot.host.runs.hub import Tail
from pizzabot.host.runs.requests import parse_run_start
from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, Caller, Conflict, Unavailable
from pizzabot_hookspecs.host import CommandOutcome, StopOutcome
from pizzabot_hookspecs.storage_backends import CancelReason, RunStatus


def text_of(events):
    datas = [json.loads(event.data) for event in events if event.method == "messages"]
    return "".join(data["delta"]["text"] for data in datas if data["event"] == "content-block-delta")


def root_of(events):
    return [json.loads(event.data) for event in events if event.method == "lifecycle" and event.namespace == ()]


def test_a_turn_is_in_the_log_from_running_to_one_terminal_frame_without_gaps(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            answer = await start(parts, "t", "hello big world")
            row = await settled(parts, answer["result"]["run_id"])
            events = await log_of(parts, "t")
            assert row.status is RunStatus.SUCCESS
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert {event.event_id for event in events} == {f"synth:{row.run_id}:{event.seq}" for event in events}
            assert text_of(events) == "hello big world"
            assert [data["event"] for data in root_of(events)] == ["running", "completed"]
            assert (is_end(events[-1]), events[0].method) == (True, "lifecycle")
            assert [done.run_id for done in parts.finished] == [row.run_id] == [began.run_id for began in parts.started]

    run(scene())


def test_the_answer_comes_before_the_run_does_anything_and_says_where_the_log_stood(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:0"])) as parts:
            first = await start(parts, "t", "one")
            assert first["meta"] == {"applied_through_seq": 0}
            assert first["result"]["run_id"].startswith("run_")
            await parts.runtime.reached("word:0")
            parts.runtime.release("word:0")
            await parts.engine.when_idle()
            stored = len(await log_of(parts, "t"))
            second = await start(parts, "t", "two")
            assert second["meta"] == {"applied_through_seq": stored}

    run(scene())


def test_an_observer_that_was_there_first_sees_exactly_the_log_across_runs(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            stream = await parts.runs.observe("t", EVERYTHING, caller=LOCAL)
            ends = 0

            def second_end(event):
                nonlocal ends
                ends += is_end(event)
                return ends == 2

            reading = asyncio.create_task(collect_until(stream, second_end))
            await start(parts, "t", "one")
            await parts.engine.when_idle()
            await start(parts, "t", "two three")
            seen = await reading
            assert seen == await log_of(parts, "t")

    run(scene())


def test_without_since_the_latest_run_is_replayed_and_with_since_everything_after_it(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await start(parts, "t", "one")
            await parts.engine.when_idle()
            boundary = len(await log_of(parts, "t"))
            await start(parts, "t", "two")
            await parts.engine.when_idle()
            log = await log_of(parts, "t")
            latest = await collect_until(await parts.runs.observe("t", EVERYTHING, caller=LOCAL), is_end)
            assert latest == log[boundary:]
            last = log[-1].seq
            for since in (0, 3, boundary):
                stream = await parts.runs.observe("t", EVERYTHING, since=since, caller=LOCAL)
                assert await collect_until(stream, lambda event: event.seq == last) == log[since:]

    run(scene())


def test_a_cursor_beyond_the_end_is_refused_and_a_silent_thread_beats(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            with pytest.raises(Conflict) as refused:
                await parts.runs.observe("t", EVERYTHING, since=5, caller=LOCAL)
            assert refused.value.code == "cursor_ahead"
            assert len(parts.hub) == 0
            stream = await parts.runs.observe("nobody", EVERYTHING, idle_seconds=0.01, caller=LOCAL)
            batch = await anext(stream)
            assert (batch.events, batch.gap) == ((), None)
            await stream.aclose()
            assert len(parts.hub) == 0

    run(scene())


def test_a_stopped_run_completes_with_code_cancelled_and_closes_its_open_message(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"])) as parts:
            run_id = (await start(parts, "t", "one two"))["result"]["run_id"]
            await parts.runtime.reached("word:1")
            assert await parts.runs.stop("t", run_id, caller=LOCAL) is StopOutcome.CANCELLED
            row = await parts.storage.run(run_id, caller=LOCAL)
            events = await log_of(parts, "t")
            assert (row.status, row.cancel_reason) == (RunStatus.CANCELLED, CancelReason.STOPPED)
            assert root_of(events)[-1] == {"event": "completed", "graph_name": "pizza-bot", "code": "CANCELLED"}
            (closing,) = [json.loads(event.data) for event in events if b'"aborted"' in event.data]
            assert (closing["event"], closing["code"], closing["run_id"]) == ("error", "aborted", f"model-{run_id}")
            assert text_of(events) == "one "
            assert await parts.runs.stop("t", run_id, caller=LOCAL) is StopOutcome.NO_RUN

    run(scene())


def test_a_stop_of_another_run_or_thread_touches_nothing(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:0"])) as parts:
            run_id = (await start(parts, "t", "one"))["result"]["run_id"]
            await parts.runtime.reached("word:0")
            for thread_id, other in (("t", "run_other"), ("u", run_id), ("u", None)):
                assert await parts.runs.stop(thread_id, other, caller=LOCAL) is StopOutcome.NO_RUN
            assert await parts.runs.stop("t", run_id, caller=Caller(owner="eve")) is StopOutcome.NO_RUN
            parts.runtime.release("word:0")
            assert (await settled(parts, run_id)).status is RunStatus.SUCCESS

    run(scene())


def test_a_newer_message_replaces_the_older_run_and_starts_only_after_it_settled(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"])) as parts:
            old = (await start(parts, "t", "one two"))["result"]["run_id"]
            await parts.runtime.reached("word:1")
            new = (await start(parts, "t", "three"))["result"]["run_id"]
            row = await settled(parts, new)
            assert row.status is RunStatus.SUCCESS
            replaced = await parts.storage.run(old, caller=LOCAL)
            assert (replaced.status, replaced.cancel_reason) == (RunStatus.CANCELLED, CancelReason.SUPERSEDED)
            events = await log_of(parts, "t")
            runs = [event.run_id for event in events]
            assert runs == sorted(runs, key=[old, new].index)
            last_of_old = [event for event in events if event.run_id == old][-1]
            assert json.loads(last_of_old.data) == {
                "event": "interrupted",
                "graph_name": "pizza-bot",
                "code": "SUPERSEDED",
            }

    run(scene())


def test_replacements_that_are_replaced_at_once_end_before_the_last_and_their_words_are_kept(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"])) as parts:
            await start(parts, "t", "one two")
            await parts.runtime.reached("word:1")
            texts = ["first", "second", "third", "last"]
            asked = [parse_run_start("t", {"input": {"prompt": text}}, idempotency_key=None) for text in texts]
            admitted = [await parts.engine.admit(request, caller=LOCAL) for request in asked]
            runs = [await settled(parts, admission.run.run_id) for admission in admitted]
            assert [run.status for run in runs] == [RunStatus.CANCELLED] * 3 + [RunStatus.SUCCESS]
            assert {run.cancel_reason for run in runs[:3]} == {CancelReason.SUPERSEDED}
            heard = [(turn.messages[0].text, turn.settle) for turn in parts.runtime.turns]
            assert heard == [("one two", False), ("first", True), ("second", True), ("third", True), ("last", False)]
            ends = [data for data in root_of(await log_of(parts, "t")) if data["event"] != "running"]
            assert [end.get("code") for end in ends] == ["SUPERSEDED"] * 4 + [None]

    run(scene())


def test_a_message_that_is_stopped_before_the_runtime_has_it_is_kept(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            ready, cancelled = asyncio.Event(), asyncio.Event()
            resolve, cancel = parts.models.resolve, parts.engine.drivers.cancel

            async def late(model_id):
                await ready.wait()
                return await resolve(model_id)

            def noting(*which):
                known = cancel(*which)
                cancelled.set()
                return known

            parts.models.resolve, parts.engine.drivers.cancel = late, noting
            run_id = (await start(parts, "t", "hello"))["result"]["run_id"]
            stopping = asyncio.create_task(parts.runs.stop("t", run_id, caller=LOCAL))
            await cancelled.wait()
            ready.set()
            assert await stopping is StopOutcome.CANCELLED
            assert [(turn.messages[0].text, turn.settle) for turn in parts.runtime.turns] == [("hello", True)]

    run(scene())


def test_queued_messages_run_in_order_and_a_refused_one_leaves_no_row(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"])) as parts:
            await start(parts, "t", "one two")
            await parts.runtime.reached("word:1")
            second = await start(parts, "t", "second", multitask_strategy="enqueue")
            third = await start(parts, "t", "third", multitask_strategy="enqueue")
            refused = await start(parts, "t", "no", multitask_strategy="reject")
            assert (refused["type"], refused["error"]) == ("error", "run_active")
            parts.runtime.release("word:1")
            for answer in (second, third):
                assert (await settled(parts, answer["result"]["run_id"])).status is RunStatus.SUCCESS
            assert [turn.messages[0].text for turn in parts.runtime.turns] == ["one two", "second", "third"]

    run(scene())


def test_the_same_message_sent_twice_is_one_run(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            by_message = [await start(parts, "t", "hi", message_id="m1") for _ in range(3)]
            by_key = [await start(parts, "u", "hi", key="k1") for _ in range(2)]
            by_run = [await start(parts, "v", "hi", run_id="run_mine") for _ in range(2)]
            await parts.engine.when_idle()
            assert [len({answer["result"]["run_id"] for answer in sent}) for sent in (by_message, by_key, by_run)] == [
                1
            ] * 3
            assert len(parts.runtime.turns) == 3
            mismatch = await start(parts, "t", "other", message_id="m1")
            assert mismatch["error"] == "idempotency_mismatch"

    run(scene())


def test_a_failing_runtime_ends_in_one_failed_frame_with_a_code(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(fail_with=RuntimeError("429 too many requests"))) as parts:
            run_id = (await start(parts, "t", "hi"))["result"]["run_id"]
            row = await settled(parts, run_id)
            assert (row.status, row.error_code, row.error) == (RunStatus.ERROR, "RATE_LIMIT", "429 too many requests")
            ends = root_of(await log_of(parts, "t"))
            assert ends[1:] == [
                {"event": "failed", "graph_name": "pizza-bot", "error": "429 too many requests", "code": "RATE_LIMIT"}
            ]

    run(scene())


def test_a_missing_model_fails_the_run_and_the_next_one_works(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            parts.models.fail_with = Unavailable("no_model", "no model is configured")
            run_id = (await start(parts, "t", "hi"))["result"]["run_id"]
            row = await settled(parts, run_id)
            assert (row.status, row.error_code) == (RunStatus.ERROR, "MODEL_UNAVAILABLE")
            parts.models.fail_with = None
            run_id = (await start(parts, "t", "again"))["result"]["run_id"]
            assert (await settled(parts, run_id)).status is RunStatus.SUCCESS

    run(scene())


def test_a_model_that_was_chosen_for_a_thread_stays_its_model(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await start(parts, "t", "hi", config={"configurable": {"model": "work:big"}})
            await parts.engine.when_idle()
            await start(parts, "t", "again")
            await parts.engine.when_idle()
            await start(parts, "u", "hi")
            await parts.engine.when_idle()
            assert parts.models.asked == ["work:big", "work:big", None]

    run(scene())


def test_what_a_crash_left_running_goes_on_with_every_event_kept(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:2"])) as before:
            run_id = (await start(before, "t", "one two three"))["result"]["run_id"]
            queued = (await start(before, "t", "later", multitask_strategy="enqueue"))["result"]["run_id"]
            await before.runtime.reached("word:2")
            stream = await before.runs.observe("t", EVERYTHING, since=0, caller=LOCAL)
            kept = await collect_until(stream, lambda event: b'"two "' in event.data)
        async with rig(tmp_path, ScriptedRuntime(), storage=open_storage(tmp_path)) as after:
            assert await after.engine.recover() == 2
            assert (await settled(after, run_id)).status is RunStatus.SUCCESS
            assert (await settled(after, queued)).status is RunStatus.SUCCESS
            events = await log_of(after, "t")
            assert events[: len(kept)] == kept
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            own = [event for event in events if event.run_id == run_id]
            assert [data["event"] for data in root_of(own)] == ["running", "completed"]
            starts = [json.loads(event.data)["event"] for event in own if event.method == "messages"]
            assert starts.count("message-start") == starts.count("message-finish") + starts.count("error") == 2
            assert [turn.recover for turn in after.runtime.turns] == [True, False]

    run(scene())


def test_a_runtime_that_goes_on_knows_what_the_log_has_to_its_end_and_no_more(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"]), crash=True) as before:
            run_id = (await start(before, "t", "one two"))["result"]["run_id"]
            await before.runtime.reached("word:1")
        async with rig(tmp_path, ScriptedRuntime(), storage=open_storage(tmp_path)) as after:
            await after.engine.recover()
            whole = await settled(after, run_id)
            later = await settled(after, (await start(after, "t", "three"))["result"]["run_id"])
            assert [(turn.recover, turn.told) for turn in after.runtime.turns] == [(True, frozenset()), (False, None)]
            goes_on = replace(later, run_id="next", input={}, options={"resumes": whole.run_id})
            assert await told_before(after.storage, goes_on, LogCompletion()) == {f"lc_model-{run_id}"}
            unknown = replace(goes_on, options={"resumes": "unknown"})
            assert await told_before(after.storage, unknown, LogCompletion()) is None, "whose is the state?"

    run(scene())


def test_a_run_that_was_being_stopped_when_the_server_died_ends_stopped(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:0"])) as before:
            run_id = (await start(before, "t", "one"))["result"]["run_id"]
            await before.runtime.reached("word:0")
            await before.storage.request_cancel(run_id, reason=CancelReason.STOPPED, caller=LOCAL)
        async with rig(tmp_path, ScriptedRuntime(), storage=open_storage(tmp_path)) as after:
            await after.engine.recover()
            assert (await settled(after, run_id)).status is RunStatus.CANCELLED
            assert [(turn.settle, turn.recover) for turn in after.runtime.turns] == [(True, True)]
            assert root_of(await log_of(after, "t"))[-1]["code"] == "CANCELLED"

    run(scene())


def test_a_run_that_was_let_go_in_order_goes_on_however_often(tmp_path):
    async def scene():
        run_id = None
        for _ in range(6):
            async with rig(tmp_path, ScriptedRuntime(gates=["word:0"]), storage=open_storage(tmp_path)) as parts:
                if run_id is None:
                    run_id = (await start(parts, "t", "one"))["result"]["run_id"]
                else:
                    await parts.engine.recover()
                await parts.runtime.reached("word:0")
        async with rig(tmp_path, ScriptedRuntime(), storage=open_storage(tmp_path)) as parts:
            await parts.engine.recover()
            row = await settled(parts, run_id)
            assert (row.status, row.attempt, row.released) == (RunStatus.SUCCESS, 7, 6)

    run(scene())


def test_a_run_that_keeps_taking_the_server_down_is_a_question_to_the_person(tmp_path):
    async def scene():
        run_id = None
        for _ in range(3):
            storage = open_storage(tmp_path)
            async with rig(tmp_path, ScriptedRuntime(gates=["word:0"]), storage=storage, crash=True) as parts:
                if run_id is None:
                    run_id = (await start(parts, "t", "one"))["result"]["run_id"]
                else:
                    await parts.engine.recover()
                await parts.runtime.reached("word:0")
        async with rig(tmp_path, ScriptedRuntime(), storage=open_storage(tmp_path)) as parts:
            await parts.engine.recover()
            row = await settled(parts, run_id)
            assert (row.status, row.error_code) == (RunStatus.NEEDS_ATTENTION, "NEEDS_ATTENTION")
            assert parts.runtime.turns == []
            (question,) = await parts.storage.open_interrupts("t", caller=LOCAL)
            assert (question.kind, question.payload["actions"]) == ("recovery", [])
            assert "3 times" in question.payload["reason"]
            answer = {"interrupt_id": question.interrupt_id, "response": {"choice": "retry"}}
            body = {"id": 2, "method": "input.respond", "params": answer}
            reply = await parts.runs.command("t", body, caller=LOCAL)
            again = await settled(parts, reply.envelope["result"]["run_id"])
            assert again.status is RunStatus.SUCCESS
            assert [turn.recover for turn in parts.runtime.turns] == [True]

    run(scene())


def test_a_runtime_that_does_not_stop_is_cut_off(tmp_path, monkeypatch):
    monkeypatch.setattr("pizzabot.host.runs.pump.STOP_SECONDS", 0.05)

    class Deaf(ScriptedRuntime):
        def start(self, turn):
            agent_run = super().start(turn)

            async def ignore():
                self.stopped.append(turn.run_id)

            agent_run.stop = ignore
            return agent_run

    async def scene():
        async with rig(tmp_path, Deaf(gates=["word:0"])) as parts:
            run_id = (await start(parts, "t", "one"))["result"]["run_id"]
            await parts.runtime.reached("word:0")
            assert await parts.runs.stop("t", run_id, caller=LOCAL) is StopOutcome.CANCELLED
            assert parts.runtime.stopped == [run_id]

    run(scene())


def test_two_hundred_observers_see_every_byte_and_none_is_left_behind(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(words=300)) as parts:
            readers = [
                asyncio.create_task(collect_until(await parts.runs.observe("t", EVERYTHING, caller=LOCAL), is_end))
                for _ in range(200)
            ]
            await start(parts, "t", "go")
            seen = await asyncio.gather(*readers)
            log = await log_of(parts, "t")
            assert all(events == log for events in seen)
            assert len(parts.hub) == 0

    run(scene())


def test_a_reader_that_falls_behind_goes_back_to_the_log_and_misses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pizzabot.host.runs.hub.MAX_TAIL_EVENTS", 10)

    async def scene():
        async with rig(tmp_path, ScriptedRuntime(words=500)) as parts:
            stream = await parts.runs.observe("t", EVERYTHING, since=0, caller=LOCAL)
            run_id = (await start(parts, "t", "go"))["result"]["run_id"]
            await settled(parts, run_id)
            assert await collect_until(stream, is_end) == await log_of(parts, "t")

    run(scene())


def test_a_tail_of_large_events_is_bounded_by_their_size_and_its_readers_miss_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("pizzabot.host.runs.hub.MAX_TAIL_BYTES", 2000)

    async def scene():
        async with rig(tmp_path, ScriptedRuntime(words=300)) as parts:
            stream = await parts.runs.observe("t", EVERYTHING, caller=LOCAL)
            tail = parts.hub._tails["t"]
            await settled(parts, (await start(parts, "t", "go"))["result"]["run_id"])
            assert 0 < sum(len(event.data) for event in tail._events) <= 2000
            assert await collect_until(stream, is_end) == await log_of(parts, "t")

    run(scene())


def test_observers_that_are_slow_are_woken_rarely_and_hear_all(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(words=2000)) as parts:
            stream = await parts.runs.observe("t", EVERYTHING, caller=LOCAL)
            reading = asyncio.create_task(collect_until(stream, is_end))
            await start(parts, "t", "go")
            assert await reading == await log_of(parts, "t")
            tail = Tail()
            tail._woken(asyncio.get_running_loop().time() - 0.002)
            assert 0.01 < tail._not_before - asyncio.get_running_loop().time() < 0.1

    run(scene())


def test_deleting_a_thread_ends_its_run_and_its_observers_and_leaves_nothing(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:0"])) as parts:
            run_id = (await start(parts, "t", "one"))["result"]["run_id"]
            await parts.runtime.reached("word:0")
            stream = await parts.runs.observe("t", EVERYTHING, since=0, caller=LOCAL)
            reading = asyncio.create_task(collect_until(stream, lambda _: False))
            assert await parts.threads.delete("t", caller=LOCAL)
            await reading
            assert await parts.storage.run(run_id, caller=LOCAL) is None
            assert await log_of(parts, "t") == []
            assert parts.runtime.forgotten == ["t"]
            again = await start(parts, "t", "new life")
            assert again["meta"] == {"applied_through_seq": 0}

    run(scene())


def test_a_server_that_shuts_down_takes_no_more_runs(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await parts.engine.shutdown()
            reply = await parts.runs.command(
                "t", {"id": 1, "method": "run.start", "params": {"prompt": "x"}}, caller=LOCAL
            )
            assert (reply.outcome, reply.envelope["error"]) == (CommandOutcome.UNAVAILABLE, "shutting_down")

    run(scene())


def test_emoji_and_cjk_come_back_as_they_were(tmp_path):
    text = "🍕 披萨 👩‍👩‍👧 \u2028 e\u0301"

    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await start(parts, "t", text)
            await parts.engine.when_idle()
            assert text_of(await log_of(parts, "t")) == text

    run(scene())


def test_the_input_of_a_run_row_is_what_was_asked(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            request = parse_run_start("t", {"prompt": "hi"}, idempotency_key=None)
            admission = await parts.engine.admit(request, caller=LOCAL)
            await parts.engine.when_idle()
            row = await parts.storage.run(admission.run.run_id, caller=LOCAL)
            assert row.input == {"messages": [request.messages[0].to_json()]}

    run(scene())
