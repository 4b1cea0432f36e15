"""What is special about this runtime: it plays answers again, and keeps everything in one file."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from making import runtime_in
from pizzabot_replay import tables
from pizzabot_replay.runtime import ReplayRuntime
from pizzabot_replay.settings import Mode, ReplaySettings

from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import host, imported_by
from pizzabot.testing.runtime_contract import conversation, events, frames_of, model_of, said, text_of, turn
from pizzabot.testing.scripted_model import Reply
from pizzabot_hookspecs import LOCAL, InvalidRequest, NotFound, TooLarge, Unavailable
from pizzabot_hookspecs.agent_runtimes import ChosenModel
from pizzabot_hookspecs.host import EventFilter


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 20))


async def answer(runtime: ReplayRuntime, model: ChosenModel, text: str, *, thread: str) -> str:
    return text_of(await frames_of(runtime.start(turn(model, said(text, f"{thread}-{text}"), thread_id=thread))))


def test_the_plugin_is_loaded() -> None:
    plugins = Plugins().load()
    report = next(report for report in plugins.report() if report.name == "runtime-replay")
    assert (report.state, report.reason) == (PluginState.LOADED, None)
    assert plugins.choose("agent_runtimes", "replay").qualified == "runtime-replay:replay"


def test_listing_the_plugin_imports_no_langchain() -> None:
    assert "langchain_core" not in imported_by("pizzabot_replay.runtime")


def test_the_same_conversation_is_answered_from_the_recording_on_another_thread_and_after_a_restart(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        model, chosen = model_of(Reply("Four cheeses"), Reply("No, five"))
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            assert await answer(runtime, chosen, "Which?", thread="one") == "Four cheeses"
            assert await answer(runtime, chosen, "Which?", thread="two") == "Four cheeses"
            assert await answer(runtime, chosen, "Sure?", thread="two") == "No, five"
        async with runtime_in(tmp_path, ReplaySettings(mode=Mode.REPLAY)) as runtime:
            assert await answer(runtime, chosen, "Which?", thread="three") == "Four cheeses"
            assert await answer(runtime, chosen, "Sure?", thread="three") == "No, five"
        assert len(model.calls) == 2

    play(scenario())


def test_a_recording_is_played_in_the_pieces_in_which_it_came(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, chosen = model_of(Reply(pieces=["Four ", "che", "eses"]))
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            runs = [turn(chosen, said("Which?", f"u{n}"), thread_id=f"thread-{n}") for n in range(2)]
            recorded, replayed = [events(await frames_of(runtime.start(run))) for run in runs]
        names = [[data["event"] for data in stream] for stream in (recorded, replayed)]
        assert names[0] == names[1]
        deltas = [data["delta"]["text"] for data in replayed if data["event"] == "content-block-delta"]
        assert deltas == ["Four ", "che", "eses"]
        assert recorded[0]["id"] != replayed[0]["id"]

    play(scenario())


def test_another_model_or_other_words_have_no_recording(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, chosen = model_of(Reply("Four cheeses"))
        other = ChosenModel(id="scripted:other", chat=chosen.chat, descriptor=chosen.descriptor)
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            await answer(runtime, chosen, "Which?", thread="one")
        async with runtime_in(tmp_path, ReplaySettings(mode=Mode.REPLAY)) as runtime:
            for model, text in ((other, "Which?"), (chosen, "which?")):
                with pytest.raises(Unavailable, match="auto") as raised:
                    await answer(runtime, model, text, thread=f"{model.id} {text}")
                assert raised.value.code == "not_recorded"

    play(scenario())


def test_in_mode_record_the_model_is_always_asked_and_the_newest_answer_is_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, chosen = model_of(Reply("Four"), Reply("Five"))
        async with runtime_in(tmp_path, ReplaySettings(mode=Mode.RECORD)) as runtime:
            assert await answer(runtime, chosen, "How many?", thread="one") == "Four"
            assert await answer(runtime, chosen, "How many?", thread="two") == "Five"
        async with runtime_in(tmp_path, ReplaySettings(mode=Mode.REPLAY)) as runtime:
            assert await answer(runtime, chosen, "How many?", thread="three") == "Five"

    play(scenario())


def test_the_oldest_recordings_make_room_for_new_ones(tmp_path: Path) -> None:
    async def scenario() -> None:
        model, chosen = model_of(*(Reply(f"answer {number}") for number in range(5)))
        async with runtime_in(tmp_path, ReplaySettings(max_recordings=2)) as runtime:
            for question in "abcd":
                await answer(runtime, chosen, question, thread=question)
            assert await answer(runtime, chosen, "d", thread="d again") == "answer 3"
            assert len(model.calls) == 4
            assert await answer(runtime, chosen, "a", thread="a again") == "answer 4"

    play(scenario())


def test_a_conversation_that_is_too_long_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, chosen = model_of(Reply("One"), Reply("Two"))
        async with runtime_in(tmp_path, ReplaySettings(max_messages=4)) as runtime:
            await answer(runtime, chosen, "a", thread="t")
            await answer(runtime, chosen, "b", thread="t")
            before = await runtime.state("t", caller=LOCAL)
            with pytest.raises(TooLarge) as raised:
                await answer(runtime, chosen, "c", thread="t")
            assert raised.value.code == "conversation_too_long"
            assert await runtime.state("t", caller=LOCAL) == before

    play(scenario())


def test_an_answer_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pizzabot_replay.speaking.MAX_CHARACTERS", 10)

    async def scenario() -> None:
        _, chosen = model_of(Reply("one two three four"))
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            with pytest.raises(TooLarge) as raised:
                await answer(runtime, chosen, "a", thread="t")
        assert raised.value.code == "answer_too_large"

    play(scenario())


def test_a_turn_from_an_earlier_checkpoint_goes_on_from_there(tmp_path: Path) -> None:
    async def scenario() -> None:
        model, chosen = model_of(Reply("One"), Reply("Two"), Reply("Other"))
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            await answer(runtime, chosen, "a", thread="t")
            await answer(runtime, chosen, "b", thread="t")
            earlier = await runtime.state("t", caller=LOCAL, checkpoint_id="2")
            assert earlier is not None
            assert conversation(earlier["values"]) == [("human", "a"), ("ai", "One")]
            fork = turn(chosen, said("c", "id-of-c"), run_id="run-3", thread_id="t", config={"checkpoint_id": "2"})
            assert text_of(await frames_of(runtime.start(fork))) == "Other"
            state = await runtime.state("t", caller=LOCAL)
        assert state is not None
        assert conversation(state["values"]) == [("human", "a"), ("ai", "One"), ("human", "c"), ("ai", "Other")]
        assert len(model.calls) == 3

    play(scenario())


def test_a_fork_that_is_recovered_is_cut_and_answered_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        model, chosen = model_of(Reply("One"), Reply("Two"), Reply("Other"))
        async with runtime_in(tmp_path, ReplaySettings(mode=Mode.RECORD)) as runtime:
            await answer(runtime, chosen, "a", thread="t")
            await answer(runtime, chosen, "b", thread="t")
            config = {"checkpoint_id": "1"}
            for asked_again in ("Other", ""):  # it died before its first step, then after its last one
                fork = turn(chosen, run_id="run-3", thread_id="t", recover=True, config=config)
                assert text_of(await frames_of(runtime.start(fork))) == asked_again
                state = await runtime.state("t", caller=LOCAL)
                assert state is not None
                assert conversation(state["values"]) == [("human", "a"), ("ai", "Other")]
        assert len(model.calls) == 3

    play(scenario())


@pytest.mark.parametrize("began", [True, False])
def test_a_turn_that_is_settled_keeps_what_was_said_asks_no_model_and_ends(tmp_path: Path, *, began: bool) -> None:
    async def scenario() -> None:
        model, chosen = model_of(Reply("One", error=RuntimeError("the process died")), Reply("Two"))
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            if began:
                with pytest.raises(RuntimeError, match="died"):
                    await answer(runtime, chosen, "a", thread="t")
            asked = len(model.calls)
            settling = turn(chosen, said("a", "t-a"), thread_id="t", recover=True, settle=True)
            frames = await frames_of(runtime.start(settling))
            assert [frame.method for frame in frames] == ["checkpoints", "values"]
            assert conversation(frames[-1].data) == [("human", "a")]
            assert len(model.calls) == asked

    play(scenario())


def test_settling_a_thread_on_which_nothing_was_said_ends_without_a_frame(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, chosen = model_of()
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            assert await frames_of(runtime.start(turn(chosen, settle=True))) == []
            assert await runtime.state("thread-1", caller=LOCAL) is None

    play(scenario())


def test_an_answer_to_a_question_that_this_runtime_never_asks_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        model, chosen = model_of(Reply("One"))
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            await answer(runtime, chosen, "a", thread="t")
            with pytest.raises(NotFound) as raised:
                await frames_of(runtime.start(turn(chosen, thread_id="t", run_id="run-2", answers={"i": "yes"})))
        assert raised.value.code == "no_such_interrupt"
        assert len(model.calls) == 1

    play(scenario())


def test_a_turn_at_the_limit_of_its_conversation_can_be_recovered(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, chosen = model_of(Reply("One", error=RuntimeError("the process died")), Reply("Two"))
        async with runtime_in(tmp_path, ReplaySettings(max_messages=2)) as runtime:
            with pytest.raises(RuntimeError, match="died"):
                await answer(runtime, chosen, "a", thread="t")
            again = turn(chosen, said("a", "t-a"), thread_id="t", recover=True)
            assert text_of(await frames_of(runtime.start(again))) == "Two"

    play(scenario())


@pytest.mark.parametrize("checkpoint_id", ["3", "0", "-1", "²", "x", "9" * 400])
def test_a_checkpoint_that_does_not_exist_is_refused(tmp_path: Path, checkpoint_id: str) -> None:
    async def scenario() -> None:
        _, chosen = model_of(Reply("One"))
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            await answer(runtime, chosen, "a", thread="t")
            assert await runtime.state("t", caller=LOCAL, checkpoint_id=checkpoint_id) is None
            fork = turn(chosen, run_id="r", thread_id="t", config={"checkpoint_id": checkpoint_id})
            with pytest.raises(InvalidRequest) as raised:
                await frames_of(runtime.start(fork))
        assert raised.value.code == "no_such_checkpoint"

    play(scenario())


def test_a_turn_that_says_nothing_on_an_empty_thread_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        _, chosen = model_of()
        async with runtime_in(tmp_path, ReplaySettings()) as runtime:
            with pytest.raises(InvalidRequest) as raised:
                await frames_of(runtime.start(turn(chosen)))
        assert raised.value.code == "nothing_to_continue"

    play(scenario())


def test_a_file_of_a_newer_version_or_a_damaged_one_is_refused_with_the_way_out(tmp_path: Path) -> None:
    file = tmp_path / "replay" / "replay.sqlite3"
    connection = tables.connect(file)
    connection.execute(f"PRAGMA user_version = {tables.SCHEMA_VERSION + 1}")
    connection.close()

    async def scenario(cause: str) -> None:
        with pytest.raises(Unavailable, match=cause) as raised:
            async with runtime_in(tmp_path, ReplaySettings()):
                raise AssertionError("it was opened")
        assert raised.value.code == "replay_file_unusable"
        assert str(file) in raised.value.detail

    play(scenario("newer version"))
    file.write_bytes(b"no database " * 1_000)
    play(scenario("not a database"))


def test_the_file_is_for_its_user_only(tmp_path: Path) -> None:
    tables.connect(tmp_path / "replay" / "replay.sqlite3").close()
    assert (tmp_path / "replay").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "replay" / "replay.sqlite3").stat().st_mode & 0o777 == 0o600


def test_a_host_with_it_holds_a_conversation_and_finds_it_after_a_restart(tmp_path: Path) -> None:
    import pizzabot_replay

    async def say(text: str) -> list[tuple[str, str]]:
        async with host(
            plugins=[("runtime-replay", pizzabot_replay)],
            settings={"runtime": {"use": "replay"}},
            data_root=tmp_path,
        ) as running:
            log = await running.runs.observe(
                "thread-1", EventFilter(channels=frozenset({"lifecycle"})), since=0, caller=LOCAL
            )
            body = {"id": 1, "method": "run.start", "params": {"input": {"messages": [{"content": text}]}}}
            reply = await running.runs.command("thread-1", body, caller=LOCAL)
            run_id = reply.envelope["result"]["run_id"]
            async for batch in log:
                if any(event.run_id == run_id and b'"completed"' in event.data for event in batch.events):
                    break
            await log.aclose()
            state = await running.threads.state("thread-1", caller=LOCAL)
            return conversation(state["values"])

    assert asyncio.run(say("a margherita")) == [("human", "a margherita"), ("ai", "a margherita")]
    assert asyncio.run(say("and olives"))[2:] == [("human", "and olives"), ("ai", "and olives")]
