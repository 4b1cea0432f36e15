"""The transcript as the host serves it: pages, items, tool texts, branches, forks, exports, rows (spec/12 §1.1)."""

import asyncio
import json
import re
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import structlog
from engine_rig import EVERYTHING, collect_until, log_of, rig, run, settled, start
from test_interrupts import APPROVE, asked, respond

from pizzabot.host.transcript import entry_of_event, fold, from_page, initial, page
from pizzabot.host.transcripts.checking import fault_of_rows
from pizzabot.host.transcripts.keeping import TranscriptKeeper
from pizzabot.host.transcripts.reading import TranscriptReader
from pizzabot.testing.hosts import host
from pizzabot.testing.scripted_runtime import ScriptedRuntime
from pizzabot_hookspecs import LOCAL, SYSTEM, Caller, Conflict, InvalidRequest, NotFound, TooLarge, Unavailable
from pizzabot_hookspecs.host import ExportBranches, ExportFormat
from pizzabot_hookspecs.storage_backends import StoredEvent, ThreadCopy

STRANGER = Caller(owner="somebody else")
LOGGER = structlog.get_logger()


def id_of(text):
    return "m-" + re.sub(r"[^a-z]+", "-", text).strip("-")


async def logged(parts, text):
    """Until `text` is in the thread's log."""
    stream = await parts.runs.observe("t", EVERYTHING, since=0, caller=LOCAL)
    await collect_until(stream, lambda event: text in event.data)


async def say(parts, text=None, thread_id="t", message_id=None, **params):
    """A run to its end. Without text, `run.start` brings no input."""
    message = {"role": "user", "content": text, "id": message_id or (text and id_of(text))}
    given = {} if text is None else {"input": {"messages": [message]}}
    body = {"id": 1, "method": "run.start", "params": {**given, **params}}
    reply = await parts.runs.command(thread_id, body, caller=LOCAL)
    await parts.engine.when_idle()
    return reply.envelope


async def folded(parts, thread_id="t"):
    return fold(initial(), [entry_of_event(event) for event in await log_of(parts, thread_id)])


def texts(shown):
    return [(turn["message"] or {"content": [{"text": None}]})["content"][0]["text"] for turn in shown["turns"]]


async def told_to_model(parts, thread_id="t"):
    state = await parts.threads.state(thread_id, caller=LOCAL)
    contents = [message["content"] for message in state["values"]["messages"] if message["type"] == "human"]
    return [text if isinstance(text, str) else text[0]["text"] for text in contents]


@asynccontextmanager
async def talk(data_root=None, storage="sqlite"):
    async with host(settings={"storage": {"use": storage}}, data_root=data_root) as parts:
        await parts.threads.create("t", caller=LOCAL)
        yield parts


# -- pages ----------------------------------------------------------------------------------------------------------


def test_a_page_is_the_fold_of_the_log_whatever_is_kept_as_rows(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            for number in range(7):
                await settled(parts, (await start(parts, "t", f"turn {number}"))["result"]["run_id"])
            whole = await folded(parts)
            keeper = TranscriptKeeper(parts.storage, logger=LOGGER)
            wanted = [
                {},
                {"limit": 2},
                {"limit": 2, "before_seq": 30},
                {"limit": 3, "around_seq": 20},
                {"head": "m-none"},
            ]
            for kept in (False, True):
                if kept:
                    assert await keeper.keep("t", least=1) > 0
                for args in wanted[:-1]:
                    shown = await TranscriptReader(parts.storage).page("t", **args, caller=LOCAL)
                    assert json.loads(json.dumps(shown)) == json.loads(json.dumps(page(whole, thread_id="t", **args)))
                with pytest.raises(NotFound, match="no turn"):
                    await TranscriptReader(parts.storage).page("t", head="m-none", caller=LOCAL)
            assert await fault_of_rows(parts.storage, "t") is None

    run(scene())


def test_rows_at_every_cut_of_a_log_with_a_question_give_the_same_pages(tmp_path):
    """Statements 1 and 4, over rows: whatever was kept, the newest page and what comes behind it are the fold."""

    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await settled(parts, (await start(parts, "t", "before"))["result"]["run_id"])
            (interrupt_id,) = await asked(parts, "t", "approve send")
            reply = await respond(parts, "t", (interrupt_id, APPROVE))
            await settled(parts, reply.envelope["result"]["run_id"])
            events = await log_of(parts, "t")
            whole = await folded(parts)
            real = parts.storage.events
            for cut in range(1, len(events) + 1):
                await parts.storage.drop_transcript("t", caller=SYSTEM)

                async def upto(thread_id, /, *, after, limit, caller, cut=cut):
                    found = await real(thread_id, after=after, limit=limit, caller=caller)
                    return [event for event in found if event.seq <= cut]

                parts.storage.events = upto
                await TranscriptKeeper(parts.storage, logger=LOGGER).keep("t", least=1)
                parts.storage.events = real
                assert (await parts.storage.transcript_index("t", caller=LOCAL)).cursor == cut
                shown = await TranscriptReader(parts.storage).page("t", caller=LOCAL)
                assert json.loads(json.dumps(shown)) == json.loads(json.dumps(page(whole, thread_id="t")))

    run(scene())


def test_what_is_being_written_is_in_the_page_and_events_go_on_from_it(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:2"])) as parts:
            run_id = (await start(parts, "t", "one two three four"))["result"]["run_id"]
            await parts.runtime.reached("word:2")
            reader = TranscriptReader(parts.storage)
            await logged(parts, b"content-block-delta")
            shown = await reader.page("t", caller=LOCAL)
            (turn,) = shown["turns"]
            assert (turn["status"], turn["items"][0]["state"]) == ("running", "open")
            parts.runtime.release("word:2")
            await settled(parts, run_id)
            newer = [entry_of_event(event) for event in await log_of(parts, "t")]
            ended = fold(from_page(json.loads(json.dumps(shown))), newer)
            assert page(ended, thread_id="t")["turns"] == (await reader.page("t", caller=LOCAL))["turns"]

    run(scene())


def test_all_older_pages_show_each_turn_once_ascending(tmp_path):
    """Statement 15."""

    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            for number in range(25):
                await settled(parts, (await start(parts, "t", f"turn {number}"))["result"]["run_id"])
                if number == 12:
                    await TranscriptKeeper(parts.storage, logger=LOGGER).keep("t", least=1)
            shown = await parts.transcripts.page("t", limit=4, caller=LOCAL)
            seen = texts(shown)
            while shown["hasBefore"]:
                shown = await parts.transcripts.page("t", limit=4, before_seq=shown["turns"][0]["seq"], caller=LOCAL)
                seen = texts(shown) + seen
            assert seen == [f"turn {number}" for number in range(25)]

    run(scene())


def test_a_thread_that_gets_the_id_of_a_deleted_one_shows_nothing_of_it(tmp_path):
    """Statement 14, also for a read that was under way when it was deleted."""

    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await settled(parts, (await start(parts, "t", "old"))["result"]["run_id"])
            await parts.transcripts.page("t", caller=LOCAL)
            await parts.storage.delete_thread("t", caller=LOCAL)  # as another server does it
            await parts.threads.create("t", caller=LOCAL)
            assert (await parts.transcripts.page("t", caller=LOCAL))["turns"] == []
            await settled(parts, (await start(parts, "t", "new"))["result"]["run_id"])
            assert texts(await parts.transcripts.page("t", caller=LOCAL)) == ["new"]

    run(scene())


@pytest.mark.parametrize("args", [{"limit": 0}, {"limit": 101}, {"before_seq": 1, "around_seq": 1}])
def test_a_page_that_cannot_be_is_refused_by_its_field(tmp_path, args):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await parts.threads.create("t", caller=LOCAL)
            with pytest.raises(InvalidRequest) as refused:
                await parts.transcripts.page("t", **args, caller=LOCAL)
            assert refused.value.code == "invalid_argument"
            assert refused.value.fields

    run(scene())


def test_a_stranger_sees_no_transcript(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await settled(parts, (await start(parts, "t", "mine"))["result"]["run_id"])
            turn_id = (await parts.transcripts.page("t", caller=LOCAL))["turns"][0]["id"]
            served = parts.transcripts
            calls = [
                lambda: served.page("t", caller=STRANGER),
                lambda: served.items("t", turn_id, caller=STRANGER),
                lambda: served.tool_text("t", "c1", "input", caller=STRANGER),
                lambda: served.export("t", caller=STRANGER),
                lambda: served.choose_head("t", turn_id, caller=STRANGER),
                lambda: served.fork("t", caller=STRANGER),
                lambda: served.compact("t", caller=STRANGER),
            ]
            for call in calls:
                with pytest.raises(NotFound) as refused:
                    await call()
                assert refused.value.code == "no_such_thread"

    run(scene())


def test_a_keeper_goes_on_after_a_storage_that_raised_something_odd(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await settled(parts, (await start(parts, "t", "go"))["result"]["run_id"])
            real, failed = parts.storage.log_bounds, asyncio.Event()

            async def odd(thread_id, /, *, caller):
                if not failed.is_set():
                    failed.set()
                    raise RuntimeError("odd")
                looked.set()
                return await real(thread_id, caller=caller)

            looked = asyncio.Event()
            parts.storage.log_bounds = odd
            keeper = TranscriptKeeper(parts.storage, logger=LOGGER)
            keeper.start()
            keeper.behind("t")
            await failed.wait()
            keeper.behind("t")
            await looked.wait()
            await keeper.stop()

    run(scene())


# -- tools ----------------------------------------------------------------------------------------------------------


def test_a_long_result_is_a_preview_in_the_page_and_whole_by_its_call(tmp_path):
    """Statements 47 and 48: digits, key order and doubles as they were written."""
    long = '{"id": 12345678901234567890, "b": 1, "a": 2, "a": 3, "rows": [' + '"x",' * 60_000 + '"y"]}'

    async def scene():
        async with talk(tmp_path / "data") as parts:
            await say(parts, "go")
            events = [
                {"event": "tool-started", "tool_call_id": "c/1", "tool_name": "look", "input": {}},
                {"event": "tool-finished", "tool_call_id": "c/1", "output": long},
            ]
            run_row = (await parts.storage.events("t", after=0, limit=1, caller=LOCAL))[0]
            made = await parts.storage.adopt_thread(
                await copy_of(parts, "t", "copy", run_row.run_id, events), caller=LOCAL
            )
            shown = await parts.transcripts.page(made.thread_id, caller=LOCAL)
            (call,) = [item for item in shown["turns"][0]["items"] if item["kind"] == "tool"]
            assert call["output"]["truncated"] is True
            assert call["output"]["chars"] == len(long)
            assert call["output"]["ref"]["callId"] == "c/1"
            assert len(call["output"]["preview"]) <= 12_000
            assert await parts.transcripts.tool_text("copy", "c/1", "output", caller=LOCAL) == long
            assert await parts.transcripts.tool_text("copy", "c/1", "output", item_id=call["id"], caller=LOCAL) == long
            for call_id, part in (("c/2", "output"), ("c/1", "sideways")):
                with pytest.raises((NotFound, InvalidRequest)):
                    await parts.transcripts.tool_text("copy", call_id, part, caller=LOCAL)
            exported = await parts.transcripts.export("copy", format=ExportFormat.MARKDOWN, caller=LOCAL)
            assert long in (await content_of(exported)).decode()

    run(scene())


async def copy_of(parts, thread_id, target, run_id, more):
    """A copy of the thread whose run has some more events before its last two."""
    events = list(await parts.storage.events(thread_id, after=0, limit=1_000, caller=LOCAL))
    added = [
        StoredEvent(
            seq=0,
            thread_id=target,
            run_id=run_id,
            method="tools",
            namespace=("tools:1",),
            timestamp=1,
            data=json.dumps(data).encode(),
        )
        for data in more
    ]
    ordered = [*events[:-2], *added, *events[-2:]]
    numbered = [replace(event, seq=seq, thread_id=target) for seq, event in enumerate(ordered, start=1)]
    row = await parts.storage.run(run_id, caller=LOCAL)
    numbered = [replace(event, run_id="run_copy") for event in numbered]
    return ThreadCopy(
        thread_id=target,
        title="copy",
        runs=[replace(row, run_id="run_copy", thread_id=target)],
        events=[replace(event, data=event.data.replace(run_id.encode(), b"run_copy")) for event in numbered],
    )


# -- branches -------------------------------------------------------------------------------------------------------


def test_an_edit_is_a_sibling_and_the_model_knows_nothing_of_what_it_replaces(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            for text in ("one", "two", "three"):
                await say(parts, text)
            assert (await say(parts, "two, better", branch_from="m-two"))["type"] == "success"
            shown = await parts.transcripts.page("t", caller=LOCAL)
            assert texts(shown) == ["one", "two, better"]
            assert shown["turns"][1]["siblings"] == {"index": 1, "count": 2, "ids": ["m-two", "m-two-better"]}
            assert await told_to_model(parts) == ["one", "two, better"]
            old = await parts.transcripts.page("t", head="m-three", caller=LOCAL)
            assert texts(old) == ["one", "two", "three"]

    run(scene())


def test_the_only_turn_of_a_thread_can_be_edited(tmp_path):
    """Statement 22."""

    async def scene():
        async with talk(tmp_path / "data") as parts:
            await say(parts, "one")
            assert (await say(parts, "uno", branch_from="m-one"))["type"] == "success"
            assert await told_to_model(parts) == ["uno"]
            assert texts(await parts.transcripts.page("t", caller=LOCAL)) == ["uno"]

    run(scene())


def test_a_new_answer_has_the_same_words_and_the_old_one_can_be_continued(tmp_path):
    """Statements 24 and 26."""

    async def scene():
        async with talk(tmp_path / "data") as parts:
            await say(parts, "one")
            await say(parts, "two")
            assert (await say(parts, branch_from="m-two"))["type"] == "success"
            shown = await parts.transcripts.page("t", caller=LOCAL)
            assert texts(shown) == ["one", "two"]
            assert (shown["turns"][1]["siblings"]["index"], shown["turns"][1]["siblings"]["count"]) == (1, 2)
            assert shown["turns"][1]["id"] != "m-two"
            assert await parts.transcripts.choose_head("t", "m-two", caller=LOCAL) == {"turnId": "m-two"}
            assert (await parts.transcripts.page("t", caller=LOCAL))["turns"][1]["id"] == "m-two"
            await say(parts, "three")
            assert texts(await parts.transcripts.page("t", caller=LOCAL)) == ["one", "two", "three"]
            assert await told_to_model(parts) == ["one", "two", "three"]

    run(scene())


def test_going_to_a_turn_goes_to_the_end_of_its_branch(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            for text in ("one", "two", "three"):
                await say(parts, text)
            await say(parts, "other", branch_from="m-two")
            assert await parts.transcripts.choose_head("t", "m-two", caller=LOCAL) == {"turnId": "m-three"}
            assert await told_to_model(parts) == ["one", "two", "three"]
            before = len(await log_of(parts, "t"))
            assert await parts.transcripts.choose_head("t", "m-three", caller=LOCAL) == {"turnId": "m-three"}
            assert len(await log_of(parts, "t")) == before

    run(scene())


def test_branches_survive_a_restart(tmp_path):
    async def before():
        async with talk(tmp_path / "data") as parts:
            for text in ("one", "two", "three"):
                await say(parts, text)

    async def after():
        async with host(data_root=tmp_path / "data") as parts:
            await say(parts, "two, better", branch_from="m-two")
            assert await told_to_model(parts) == ["one", "two, better"]
            await parts.transcripts.choose_head("t", "m-three", caller=LOCAL)
            assert await told_to_model(parts) == ["one", "two", "three"]

    (tmp_path / "data").mkdir()
    run(before())
    run(after())


def test_a_turn_that_goes_on_cannot_be_branched_from_and_nothing_is_stored(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"])) as parts:
            await start(parts, "t", "one two", message_id="m1")
            await parts.runtime.reached("word:1")
            await logged(parts, b"pizzabot.run")
            refused = await start(parts, "t", "other", branch_from="m1")
            assert refused["error"] == "turn_not_settled"
            unknown = await start(parts, "t", "other", branch_from="m9")
            assert unknown["error"] == "no_such_turn"
            with pytest.raises(Conflict) as busy:
                await parts.transcripts.choose_head("t", "m1", caller=LOCAL)
            assert busy.value.code == "thread_busy"
            parts.runtime.release("word:1")
            await parts.engine.when_idle()
            assert len((await parts.transcripts.page("t", caller=LOCAL))["turns"]) == 1

    run(scene())


def test_a_runtime_without_branches_is_told_so(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await settled(parts, (await start(parts, "t", "one", message_id="m1"))["result"]["run_id"])
            assert (await start(parts, "t", "other", branch_from="m1"))["error"] == "not_supported"
            for call in (parts.transcripts.fork("t", caller=LOCAL), parts.transcripts.compact("t", caller=LOCAL)):
                with pytest.raises(InvalidRequest) as refused:
                    await call
                assert refused.value.code == "not_supported"

    run(scene())


def test_a_turn_whose_checkpoint_is_gone_says_so_and_a_later_one_can_be_forked(tmp_path):
    """Statement 29."""

    async def scene():
        async with talk(tmp_path / "data") as parts:
            for text in ("one", "two", "three"):
                await say(parts, text)
            runtime = await parts.runtime()
            real = type(runtime).has_checkpoint
            turn = (await TranscriptReader(parts.storage).known("t", ["m-two"], caller=LOCAL))["m-two"]

            async def pruned(self, thread_id, checkpoint_id, /, *, caller):
                return checkpoint_id != turn.base and await real(self, thread_id, checkpoint_id, caller=caller)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(runtime), "has_checkpoint", pruned)
                assert (await say(parts, "other", branch_from="m-two"))["error"] == "checkpoint_gone"
                forked = await parts.transcripts.fork("t", "m-three", caller=LOCAL)
            assert texts(await parts.transcripts.page(forked.thread_id, caller=LOCAL)) == ["one", "two", "three"]

    run(scene())


# -- forks ----------------------------------------------------------------------------------------------------------


def test_a_fork_has_the_conversation_up_to_its_turn_and_both_go_on_alone(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            for text in ("one", "two", "three"):
                await say(parts, text)
            await say(parts, "other", branch_from="m-two")
            forked = await parts.transcripts.fork("t", "m-two", new_thread_id="f", caller=LOCAL)
            assert (forked.thread_id, forked.source, forked.status.value) == ("f", "fork", "idle")
            assert texts(await parts.transcripts.page("f", caller=LOCAL)) == ["one", "two"]
            await say(parts, "on here", "f")
            assert await told_to_model(parts, "f") == ["one", "two", "on here"]
            assert await told_to_model(parts) == ["one", "other"]
            assert (await say(parts, "one, better", "f", branch_from="m-one"))["type"] == "success"
            assert await told_to_model(parts, "f") == ["one, better"]
            assert await fault_of_rows(parts.storage, "f") is None
            numbers = [event.seq for event in await log_of(parts, "f")]
            assert numbers == list(range(1, len(numbers) + 1))

    run(scene())


def test_a_fork_has_the_attachments_of_its_path_also_when_the_first_thread_is_deleted(tmp_path):
    async def one(content):
        yield content

    async def attached(parts, text, **params):
        row = await parts.files.attachments.add(one(text.encode()), filename=f"{text}.txt", caller=LOCAL)
        content = [{"type": "text", "text": text}, {"type": "file", "url": row["url"]}]
        message = {"role": "user", "id": id_of(text), "content": content}
        body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [message]}, **params}}
        await parts.runs.command("t", body, caller=LOCAL)
        await parts.engine.when_idle()
        return row["id"]

    async def scene():
        async with talk(tmp_path / "data") as parts:
            first, later = await attached(parts, "one"), await attached(parts, "two")
            await parts.transcripts.fork("t", "m-one", new_thread_id="f", caller=LOCAL)
            await parts.threads.delete("t", caller=LOCAL)
            assert (await parts.files.attachments.get(first, caller=LOCAL)).size == 3
            with pytest.raises(NotFound):
                await parts.files.attachments.get(later, caller=LOCAL)
            (shown,) = (await parts.transcripts.page("f", caller=LOCAL))["turns"]
            assert shown["message"]["content"][1]["attachmentId"] == first
            await parts.threads.delete("f", caller=LOCAL)
            with pytest.raises(NotFound):
                await parts.files.attachments.get(first, caller=LOCAL)

    run(scene())


def test_a_fork_onto_a_thread_that_is_there_is_refused_and_leaves_it_alone(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            await say(parts, "one")
            await parts.threads.create("other", caller=LOCAL)
            for target in ("other", "t"):
                with pytest.raises(Conflict) as refused:
                    await parts.transcripts.fork("t", new_thread_id=target, caller=LOCAL)
                assert refused.value.code == "thread_exists"
            assert texts(await parts.transcripts.page("t", caller=LOCAL)) == ["one"]

    run(scene())


def test_of_two_forks_onto_one_id_one_is_made_and_keeps_its_memory(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            await say(parts, "one")
            forks = [parts.transcripts.fork("t", new_thread_id="f", caller=LOCAL) for _ in range(2)]
            ended = await asyncio.gather(*forks, return_exceptions=True)
            refused, made = sorted(ended, key=lambda one: not isinstance(one, Conflict))
            assert (made.thread_id, refused.code) == ("f", "thread_busy")
            await say(parts, "two", "f")
            assert await told_to_model(parts, "f") == ["one", "two"]

    run(scene())


def test_a_fork_that_cannot_be_stored_leaves_nothing(tmp_path, monkeypatch):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            await say(parts, "one")

            async def full(_copy, /, *, caller):
                raise OSError("no space")

            monkeypatch.setattr(parts.storage, "adopt_thread", full, raising=False)
            with pytest.raises(OSError, match="no space"):
                await parts.transcripts.fork("t", new_thread_id="f", caller=LOCAL)
            runtime = await parts.runtime()
            assert await runtime.tip("f", caller=LOCAL) is None
            assert await parts.storage.thread("f", caller=LOCAL) is None

    run(scene())


def test_a_conversation_that_is_too_long_is_not_copied(tmp_path, monkeypatch):
    monkeypatch.setattr("pizzabot.host.transcripts.branches.MAX_FORK_EVENTS", 5)

    async def scene():
        async with talk(tmp_path / "data") as parts:
            await say(parts, "one")
            with pytest.raises(TooLarge) as refused:
                await parts.transcripts.fork("t", caller=LOCAL)
            assert refused.value.code == "thread_too_large"

    run(scene())


# -- what clients write ---------------------------------------------------------------------------------------------


def test_a_message_that_was_written_into_the_state_is_in_the_transcript(tmp_path):
    """Statement 9."""

    async def scene():
        async with talk(tmp_path / "data") as parts:
            await parts.threads.update_state("t", {"messages": [{"role": "user", "content": "first"}]}, caller=LOCAL)
            assert texts(await parts.transcripts.page("t", caller=LOCAL)) == ["first"]
            await say(parts, "two")
            await parts.threads.update_state("t", {"messages": [{"role": "ai", "content": "by hand"}]}, caller=LOCAL)
            shown = await parts.transcripts.page("t", caller=LOCAL)
            assert texts(shown) == ["first", "two"]
            assert [item["text"] for item in shown["turns"][1]["items"]][-1] == "by hand"
            assert shown["turns"][0]["status"] == "done"
            await say(parts, "three")
            assert texts(await parts.transcripts.page("t", caller=LOCAL)) == ["first", "two", "three"]

    run(scene())


def test_a_stock_clients_fork_stands_where_its_checkpoint_does(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            for text in ("one", "two"):
                await say(parts, text)
            turns = await TranscriptReader(parts.storage).known("t", ["m-one", "m-two"], caller=LOCAL)
            config = {"configurable": {"checkpoint_id": turns["m-one"].end}}
            await say(parts, "two, again", config=config)
            shown = await parts.transcripts.page("t", caller=LOCAL)
            assert texts(shown) == ["one", "two, again"]
            assert shown["turns"][1]["siblings"]["count"] == 2
            history = await parts.threads.history("t", limit=50, caller=LOCAL)
            said = next(
                state["checkpoint"]["checkpoint_id"]
                for state in history
                if state["metadata"]["source"] == "loop"
                and [message["content"] for message in state["values"]["messages"]][-1] == "two, again"
            )
            await say(parts, None, input=None, config={"configurable": {"checkpoint_id": said}})
            again = await parts.transcripts.page("t", caller=LOCAL)
            assert texts(again) == ["one", "two, again"]
            assert again["turns"][1]["siblings"]["count"] == 3

    run(scene())


# -- exports --------------------------------------------------------------------------------------------------------


async def content_of(exported):
    content = b"".join([chunk async for chunk in exported.chunks])
    assert len(content) == exported.size
    return content


def test_an_export_has_every_turn_of_the_branch_or_of_all(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            for text in ("one", "two"):
                await say(parts, text)
            await say(parts, "```js\nbetter\n````", branch_from="m-two")
            path = await parts.transcripts.export("t", format=ExportFormat.JSON, caller=LOCAL)
            whole = await parts.transcripts.export(
                "t", format=ExportFormat.JSON, branches=ExportBranches.ALL, caller=LOCAL
            )
            made, every = json.loads(await content_of(path)), json.loads(await content_of(whole))
            assert [turn["id"] for turn in made["turns"]] == ["m-one", "m-js-better"]
            assert (path.turns, whole.turns, made["turnCount"], len(every["turns"])) == (2, 3, 2, 3)
            assert made["asOfSeq"] == path.as_of_seq == len(await log_of(parts, "t"))
            assert made["turns"][0]["items"][0]["text"] == "one"
            text = (await content_of(await parts.transcripts.export("t", caller=LOCAL))).decode()
            assert text.startswith("# New conversation\n\n2 turns, one branch, as of event ")
            assert "> ```js\n> better\n> ````" in text

    run(scene())


def test_an_export_during_a_run_says_what_it_is_and_marks_the_open_turn(tmp_path):
    """Statement 31."""

    async def scene():
        async with rig(tmp_path, ScriptedRuntime(gates=["word:1"])) as parts:
            await start(parts, "t", "one two", message_id="m1")
            await parts.runtime.reached("word:1")
            await logged(parts, b"pizzabot.run")
            text = (await content_of(await parts.transcripts.export("t", caller=LOCAL))).decode()
            assert "*This turn is still being written.*" in text
            parts.runtime.release("word:1")
            await parts.engine.when_idle()
            assert "still being" not in (await content_of(await parts.transcripts.export("t", caller=LOCAL))).decode()

    run(scene())


@pytest.mark.parametrize("fault", ["turns missing", "storage fails"])
def test_an_export_with_a_fault_in_a_later_page_is_an_error_and_no_part(tmp_path, monkeypatch, fault):
    """Statement 30."""
    monkeypatch.setattr("pizzabot.host.transcripts.export.TURNS_AT_ONCE", 2)

    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            for number in range(9):
                await settled(parts, (await start(parts, "t", f"turn {number}"))["result"]["run_id"])
            await TranscriptKeeper(parts.storage, logger=LOGGER).keep("t", least=1)
            real, calls = parts.storage.transcript_turns, []

            async def broken(thread_id, turn_ids, /, *, caller):
                calls.append(turn_ids)
                if len(turn_ids) and len(calls) >= 4:
                    if fault == "storage fails":
                        raise OSError("broken")
                    return []
                return await real(thread_id, turn_ids, caller=caller)

            parts.storage.transcript_turns = broken
            with pytest.raises(Exception, match=r"could not be read|broken"):
                await parts.transcripts.export("t", caller=LOCAL)
            assert len(calls) >= 4

    run(scene())


def test_an_export_that_would_be_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("pizzabot.host.transcripts.export.MAX_EXPORT_BYTES", 100)

    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await settled(parts, (await start(parts, "t", "one"))["result"]["run_id"])
            with pytest.raises(TooLarge) as refused:
                await parts.transcripts.export("t", caller=LOCAL)
            assert refused.value.code == "export_too_large"

    run(scene())


# -- rows -----------------------------------------------------------------------------------------------------------


def test_rows_are_made_behind_a_long_run_and_rebuilt_from_the_log(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime(words=700)) as parts:
            await settled(parts, (await start(parts, "t", "go"))["result"]["run_id"])
            keeper = TranscriptKeeper(parts.storage, logger=LOGGER)
            real, kept = parts.storage.put_transcript, asyncio.Event()

            async def noting(*args, **more):
                done = await real(*args, **more)
                kept.set()
                return done

            parts.storage.put_transcript = noting
            keeper.start()
            keeper.behind("t")
            await kept.wait()
            await keeper.stop()
            before = await parts.transcripts.page("t", caller=LOCAL)
            assert [cursor async for cursor in keeper.rebuild("t")][-1] == before["asOfSeq"]
            assert await TranscriptReader(parts.storage).page("t", caller=LOCAL) == before
            assert await fault_of_rows(parts.storage, "t") is None

    run(scene())


def test_a_row_that_is_not_what_the_log_says_is_found(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await settled(parts, (await start(parts, "t", "go", message_id="m1"))["result"]["run_id"])
            await TranscriptKeeper(parts.storage, logger=LOGGER).keep("t", least=1)
            index = await parts.storage.transcript_index("t", caller=LOCAL)
            (row,) = await parts.storage.transcript_turns("t", ["m1"], caller=LOCAL)
            wrong = replace(row, body=row.body.replace(b'"go"', b'"no"'))
            await parts.storage.put_transcript(
                "t", [wrong], after=index.cursor, cursor=index.cursor, summary=index.summary, caller=LOCAL
            )
            assert "m1" in (await fault_of_rows(parts.storage, "t") or "")

    run(scene())


# -- reasoning in the text ------------------------------------------------------------------------------------------


def test_inline_reasoning_is_cut_once_and_stream_checkpoint_and_log_agree(tmp_path):
    async def scene():
        models = {"default": "thinking:echo", "thinking": {"use": "echo", "inline_reasoning": "tags"}}
        async with host(settings={"models": models}) as parts:
            await parts.threads.create("t", caller=LOCAL)
            await say(parts, "<think> hmm, let me see </think> the answer")
            (turn,) = (await parts.transcripts.page("t", caller=LOCAL))["turns"]
            told = [(item["kind"], item["text"].strip()) for item in turn["items"]]
            assert told == [("reasoning", "hmm, let me see"), ("text", "the answer")]
            state = await parts.threads.state("t", caller=LOCAL)
            blocks = state["values"]["messages"][-1]["content"]
            kept = [(block["type"], block.get("text", block.get("reasoning", "")).strip()) for block in blocks]
            assert kept == told

    run(scene())


def test_a_fork_keeps_the_notice_of_a_compaction(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            for number in range(8):
                await say(parts, "abcdefgh"[number] + " word" * 4_000 + " [[text in short]]", message_id=f"m{number}")
            await parts.transcripts.compact("t", caller=LOCAL)
            await parts.transcripts.fork("t", new_thread_id="f", caller=LOCAL)
            for thread_id in ("t", "f"):
                (turn,) = (await parts.transcripts.page(thread_id, limit=1, caller=LOCAL))["turns"]
                assert [item.get("code") for item in turn["items"]][-1] == "context_compacted"

    run(scene())


def test_a_new_answer_to_several_messages_is_one_to_all_of_them(tmp_path):
    async def scene():
        async with talk(tmp_path / "data") as parts:
            messages = [{"role": "user", "content": text, "id": f"m-{text}"} for text in ("a", "b", "c")]
            await say(parts, input={"messages": messages})
            await say(parts, branch_from="m-c")
            (turn,) = (await parts.transcripts.page("t", caller=LOCAL))["turns"]
            assert [part["text"] for part in turn["message"]["content"]] == ["a", "b", "c"]
            state = await parts.threads.state("t", caller=LOCAL)
            (said,) = [message for message in state["values"]["messages"] if message["type"] == "human"]
            assert said["content"] == "abc"

    run(scene())


def test_rows_that_cannot_be_read_are_an_error_that_says_where_to_look(tmp_path):
    async def scene():
        async with rig(tmp_path, ScriptedRuntime()) as parts:
            await settled(parts, (await start(parts, "t", "go", message_id="m1"))["result"]["run_id"])
            await TranscriptKeeper(parts.storage, logger=LOGGER).keep("t", least=1)
            index = await parts.storage.transcript_index("t", caller=LOCAL)
            (row,) = await parts.storage.transcript_turns("t", ["m1"], caller=LOCAL)
            await parts.storage.put_transcript(
                "t",
                [replace(row, body=b"{{")],
                after=index.cursor,
                cursor=index.cursor,
                summary=index.summary,
                caller=LOCAL,
            )
            for call in (parts.transcripts.page("t", caller=LOCAL), parts.transcripts.export("t", caller=LOCAL)):
                with pytest.raises(Unavailable) as refused:
                    await call
                assert refused.value.code == "transcript_damaged"

    run(scene())
