"""What the host tells of runs and turns in the log (spec/12 §0): the facts that a transcript is folded from."""

import asyncio
import json

import pytest
from engine_rig import log_of, rig, run, settled, start
from test_interrupts import APPROVE, asked, respond

from pizzabot.host.runs.facts import fact
from pizzabot.testing.scripted_runtime import ScriptedMemory, ScriptedRuntime
from pizzabot_hookspecs import LOCAL
from pizzabot_hookspecs.wire import Frame


def facts_of(events, *names):
    told = [(event.name.removeprefix("pizzabot."), json.loads(event.data)["payload"]) for event in events if event.name]
    return [(name, payload) for name, payload in told if not names or name in names]


def order_of(events):
    return [event.name or f"{event.method} {json.loads(event.data).get('event', '')}".strip() for event in events]


def test_a_run_begins_with_its_turn_and_itself_and_ends_with_itself_before_the_terminal_frame(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            run_id = (await start(parts, "t", "hello", message_id="m1"))["result"]["run_id"]
            await settled(parts, run_id)
            events = await log_of(parts, "t")
            assert order_of(events)[:3] == ["lifecycle running", "pizzabot.turn", "pizzabot.run"]
            assert order_of(events)[-2:] == ["pizzabot.run", "lifecycle completed"]
            (_, turn), (_, began), (_, ended) = facts_of(events, "turn", "run")
            message = {"id": "m1", "role": "user", "content": [{"type": "text", "text": "hello"}], "metadata": {}}
            assert turn == {
                "v": 1,
                "turn_id": "m1",
                "parent_id": None,
                "source": "user",
                "message": message,
                "run_id": run_id,
            }
            assert (began["run_id"], began["turn_id"], began["status"]) == (run_id, "m1", "running")
            assert (ended["run_id"], ended["turn_id"], ended["status"]) == (run_id, "m1", "success")
            assert began["started_at"] == ended["started_at"] <= ended["ended_at"]
            assert ended["model"] == "stub:stub"

    run(scene())


def test_the_first_events_of_a_run_are_stored_together(tmp_path):
    """In one transaction (spec/12 §0): a reader never sees a run without its turn."""

    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            batches = []
            append = parts.storage.append_events

            async def noting(run_id, epoch, events, /, *, caller):
                batches.append([event.name or event.method for event in events])
                return await append(run_id, epoch, events, caller=caller)

            parts.storage.append_events = noting
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            assert batches[0][:3] == ["lifecycle", "pizzabot.turn", "pizzabot.run"]

    run(scene())


def test_each_turn_stands_behind_the_one_before_it(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            for number in (1, 2, 3):
                await settled(parts, (await start(parts, "t", "go", message_id=f"m{number}"))["result"]["run_id"])
            turns = [payload for _, payload in facts_of(await log_of(parts, "t"), "turn")]
            assert [(turn["turn_id"], turn["parent_id"]) for turn in turns] == [
                ("m1", None),
                ("m2", "m1"),
                ("m3", "m2"),
            ]

    run(scene())


def test_several_messages_are_one_turn_and_none_is_lost(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            messages = [{"role": "user", "content": text, "id": text} for text in ("first", "second")]
            body = {"id": 1, "method": "run.start", "params": {"input": {"messages": messages}}}
            reply = await parts.runs.command("t", body, caller=LOCAL)
            await settled(parts, reply.envelope["result"]["run_id"])
            ((_, turn),) = facts_of(await log_of(parts, "t"), "turn")
            assert turn["turn_id"] == turn["message"]["id"] == "second"
            assert [part["text"] for part in turn["message"]["content"]] == ["first", "second"]

    run(scene())


def test_a_question_is_told_when_it_is_asked_and_when_it_is_decided_by_whom_and_how(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            (interrupt_id,) = await asked(parts, "t", "approve send")
            reply = await respond(parts, "t", (interrupt_id, APPROVE))
            await settled(parts, reply.envelope["result"]["run_id"])
            events = await log_of(parts, "t")
            (_, opened), (_, decided) = facts_of(events, "request")
            assert (opened["interrupt_id"], opened["state"], opened["kind"]) == (interrupt_id, "open", "approval")
            assert opened["payload"]["action_requests"][0]["name"] == "send"
            row = await parts.storage.interrupt(interrupt_id, caller=LOCAL)
            assert (decided["state"], decided["by"], decided["answer"]) == ("decided", LOCAL.owner, row.answer)
            assert decided["at"] == int(row.decided_at * 1000)
            order = order_of(events)
            assert order[order.index("input.requested") + 1] == "pizzabot.request"
            assert order[order.index("input.answered") + 1] == "pizzabot.request"
            turns = facts_of(events, "turn")
            assert len(turns) == 1
            assert {payload["turn_id"] for _, payload in facts_of(events, "run")} == {turns[0][1]["turn_id"]}

    run(scene())


def test_what_a_stopped_turn_still_asked_is_told_as_withdrawn(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await asked(parts, "t", "approve a,b")
            await parts.runs.stop("t", caller=LOCAL)
            page = await parts.transcripts.page("t", caller=LOCAL)
            (turn,) = page["turns"]
            assert turn["status"] == "stopped"
            assert {item["state"] for item in turn["items"] if item["kind"] == "request"} <= {"decided", "withdrawn"}
            assert page["requests"] == []

    run(scene())


class Telling(ScriptedRuntime):
    """Yields some frames of its own before what the script says."""

    def __init__(self, *frames):
        super().__init__()
        self.frames = frames

    def start(self, turn, /):
        return _TellingRun(self.frames, super().start(turn))


class _TellingRun:
    def __init__(self, frames, inner):
        self._frames = frames
        self._inner = inner

    async def __aiter__(self):
        for frame in self._frames:
            yield frame
        async for frame in self._inner:
            yield frame

    async def stop(self):
        await self._inner.stop()


def custom(name, **payload):
    return Frame(method="custom", data={"name": name, "payload": {"v": 1, **payload}}, timestamp=1)


@pytest.mark.parametrize("name", ["turn", "run", "head", "message", "request", "usage", "sources", "anything"])
def test_a_runtime_cannot_write_a_fact_of_the_products(tmp_path, name):
    async def scene():
        forged = custom(f"pizzabot.{name}", turn_id="forged", run_id="forged")
        async with rig(tmp_path, Telling(forged, custom("progress", done=1))) as parts:
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            told = [json.loads(event.data) for event in await log_of(parts, "t") if event.name]
            assert not any("forged" in json.dumps(data) for data in told)
            assert {"name": "progress", "payload": {"v": 1, "done": 1}} in told

    run(scene())


def test_a_runtime_tells_that_it_shortened_the_context(tmp_path):
    async def scene():
        told = custom("pizzabot.context", reason="auto", tokens_before=900, tokens_after=100)
        async with rig(tmp_path, Telling(told)) as parts:
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            (turn,) = (await parts.transcripts.page("t", caller=LOCAL))["turns"]
            (notice,) = [item for item in turn["items"] if item["kind"] == "notice"]
            assert (notice["code"], notice["tokensBefore"], notice["tokensAfter"]) == ("context_compacted", 900, 100)

    run(scene())


def finish(namespace, **usage):
    data = {"event": "message-finish", "usage": usage, "metadata": {}, "run_id": "x"}
    return Frame(method="messages", namespace=namespace, data=data, timestamp=1)


def test_usage_is_told_after_each_model_call_and_adds_up_in_the_run(tmp_path):
    async def scene():
        calls = [
            finish(("model:1",), input_tokens=10, output_tokens=5, total_tokens=15),
            finish(("tools:s", "model:2"), input_tokens=3, output_tokens=1, total_tokens=4),
            finish(("model:3",), input_tokens=20, output_tokens=2),
        ]
        async with rig(tmp_path, Telling(*calls)) as parts:
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            told = [payload for _, payload in facts_of(await log_of(parts, "t"), "usage")][:3]
            assert [one["total_tokens"] for one in told] == [15, 19, 41]
            assert told[-1]["namespaces"] == {"": 37, "tools:s": 4}
            assert [one["context"]["tokens"] for one in told] == [15, 15, 22]

    run(scene())


def test_a_result_list_is_told_as_sources_of_its_call(tmp_path):
    async def scene():
        data = {
            "event": "tool-finished",
            "tool_call_id": "c1",
            "output": [{"title": "Dough", "url": "https://e.org/d"}],
        }
        began = {"event": "tool-started", "tool_call_id": "c1", "tool_name": "search", "input": {}}
        frames = [Frame(method="tools", namespace=("tools:1",), data=one, timestamp=1) for one in (began, data)]
        async with rig(tmp_path, Telling(*frames)) as parts:
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            order = order_of(await log_of(parts, "t"))
            assert order[order.index("tools tool-finished") + 1] == "pizzabot.sources"
            (turn,) = (await parts.transcripts.page("t", caller=LOCAL))["turns"]
            (call,) = [item for item in turn["items"] if item["kind"] == "tool"]
            assert [source["title"] for source in call["sources"]] == ["Dough"]

    run(scene())


def test_a_run_that_is_begun_once_more_says_so_in_the_same_turn(tmp_path):
    memory = ScriptedMemory()

    async def before():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"], memory=memory), crash=True) as parts:
            await start(parts, "t", "one two", message_id="m1")
            await parts.runtime.reached("word:1")

    async def after():
        async with rig(tmp_path, ScriptedRuntime(memory=memory)) as parts:
            await parts.engine.recover()
            await parts.engine.when_idle()
            told = facts_of(await log_of(parts, "t"), "turn", "run")
            assert [(name, payload.get("status"), payload["turn_id"]) for name, payload in told] == [
                ("turn", None, "m1"),
                ("run", "running", "m1"),
                ("run", "running", "m1"),
                ("run", "success", "m1"),
            ]
            (turn,) = (await parts.transcripts.page("t", caller=LOCAL))["turns"]
            assert "restarted" in [item.get("code") for item in turn["items"]]

    run(before())
    run(after())


CALL = {"type": "tool_call", "id": "c1", "name": "nothing", "args": {}}


def written(namespace, *, finished=True):
    base = {"run_id": "x"}
    data = [
        {"event": "message-start", "role": "ai", "id": "a1", **base},
        {"event": "content-block-start", "index": 0, "content": {**CALL, "type": "tool_call_chunk"}, **base},
        {"event": "content-block-finish", "index": 0, "content": CALL, **base},
        *([{"event": "message-finish", "usage": None, "metadata": {}, **base}] if finished else []),
    ]
    return [Frame(method="messages", namespace=namespace, data=one, timestamp=1) for one in data]


@pytest.mark.parametrize("namespace", [("model:1",), ("tools:s", "model:1")])
def test_a_call_of_a_finished_message_that_never_ran_gets_exactly_one_end(tmp_path, namespace):
    async def scene():
        async with rig(tmp_path, Telling(*written(namespace))) as parts:
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            ends = [event for event in await log_of(parts, "t") if event.method == "tools"]
            assert [(event.namespace, json.loads(event.data)["event"]) for event in ends] == [
                (namespace[:-1], "tool-error")
            ]
            assert json.loads(ends[0].data)["tool_call_id"] == "c1"

    run(scene())


def test_a_call_of_a_message_that_was_cut_off_has_none(tmp_path):
    async def scene():
        async with rig(tmp_path, Telling(*written(("model:1",), finished=False))) as parts:
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            assert not [event for event in await log_of(parts, "t") if event.method == "tools"]

    run(scene())


def test_equal_call_ids_in_two_subagents_are_each_closed(tmp_path):
    began = {"event": "tool-started", "tool_call_id": "c1", "tool_name": "look", "input": {}}
    frames = [
        Frame(method="tools", namespace=("tools:a", "tools:1"), data=began, timestamp=1),
        Frame(method="tools", namespace=("tools:b", "tools:2"), data=began, timestamp=1),
        Frame(
            method="tools",
            namespace=("tools:a", "tools:1"),
            data={"event": "tool-finished", "tool_call_id": "c1", "output": "seen"},
            timestamp=1,
        ),
    ]

    async def scene():
        async with rig(tmp_path, Telling(*frames)) as parts:
            await settled(parts, (await start(parts, "t", "hello"))["result"]["run_id"])
            ends = [
                (event.namespace[0], json.loads(event.data)["event"])
                for event in await log_of(parts, "t")
                if event.method == "tools" and b"started" not in event.data
            ]
            assert ends == [("tools:a", "tool-finished"), ("tools:b", "tool-error")]

    run(scene())


def test_facts_are_numbered_without_gaps_beside_a_run_that_writes(tmp_path):
    """Statement 6: every writer takes its number from the thread's row."""

    async def scene():
        async with rig(tmp_path, ScriptedRuntime(words=300)) as parts:
            run_id = (await start(parts, "t", "go"))["result"]["run_id"]
            for number in range(50):
                await parts.storage.append_facts("t", [fact("pizzabot.note", {"n": number}, at=1)], caller=LOCAL)
                await asyncio.sleep(0)
            await settled(parts, run_id)
            events = await log_of(parts, "t")
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert sum(event.run_id is None for event in events) == 50

    run(scene())
