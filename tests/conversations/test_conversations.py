"""Conversations with a real server: the same tests for the default bundle and for every example in its place."""

from __future__ import annotations

from talking import ask, frame_with, frames_of, is_root_end, say, text_of, texts


def last(frames):
    return frames[-1]["params"]["data"]


def test_a_turn_is_answered_and_remembered(play):
    async def scene(talk):
        first = await ask(talk, "t", "Tell me about pizza")
        assert text_of(first) == "Tell me about pizza"
        assert last(first)["event"] == "completed"
        second = await ask(talk, "t", "and pasta")
        assert text_of(second) == "and pasta"
        assert texts(await talk.state("t")) == [
            ("human", "Tell me about pizza"),
            ("ai", "Tell me about pizza"),
            ("human", "and pasta"),
            ("ai", "and pasta"),
        ]
        assert (await talk.state("t"))["next"] == []

    play(scene)


def test_a_conversation_survives_a_restart_in_the_state_and_in_the_log(play, server):
    async def before(talk):
        answer = await say(talk, "t", "remember 🍕 披萨")
        return await frames_of(talk, "t", answer["result"]["run_id"]), await talk.state("t")

    frames, state = play(before)
    server.restart()

    async def after(talk):
        run_id = frames[0]["event_id"].split(":")[1]
        assert await frames_of(talk, "t", run_id, since=0) == frames
        assert (
            texts(await talk.state("t")) == texts(state) == [("human", "remember 🍕 披萨"), ("ai", "remember 🍕 披萨")]
        )
        again = await ask(talk, "t", "still here")
        assert again[0]["seq"] == frames[-1]["seq"] + 1
        assert len(texts(await talk.state("t"))) == 4

    play(after)


def test_a_stopped_answer_keeps_its_text_and_the_next_message_works(play):
    async def scene(talk):
        answer = await say(talk, "t", "[[pace 0.05]]one two three four five six seven eight nine ten " * 5)
        run_id = answer["result"]["run_id"]
        await frame_with(talk, "t", "two")
        stopped = await talk.command("t", "run.stop", {"run_id": run_id})
        assert stopped["type"] == "success"
        frames = await frames_of(talk, "t", run_id)
        assert (last(frames)["event"], last(frames)["code"]) == ("completed", "CANCELLED")
        partial = text_of(frames)
        assert partial.startswith("one two")
        assert text_of(await ask(talk, "t", "go on")) == "go on"
        told = texts(await talk.state("t"))
        assert told[1] == ("ai", partial)
        assert told[-1] == ("ai", "go on")

    play(scene)


def test_a_newer_message_replaces_the_answer_that_is_being_written(play):
    async def scene(talk):
        old = (await say(talk, "t", "[[pace 0.05]]" + "never ending story " * 50))["result"]["run_id"]
        await frame_with(talk, "t", "ending")
        new = await ask(talk, "t", "instead")
        assert text_of(new) == "instead"
        replaced = await frames_of(talk, "t", old)
        assert (last(replaced)["event"], last(replaced)["code"]) == ("interrupted", "SUPERSEDED")
        assert replaced[-1]["seq"] < new[0]["seq"]

    play(scene)


def test_queued_messages_are_answered_in_order(play):
    async def scene(talk):
        ids = [(await say(talk, "t", "[[pace 0.01]]first of three"))["result"]["run_id"]]
        queued = [await say(talk, "t", text, multitask_strategy="enqueue") for text in ("second", "third")]
        ids += [answer["result"]["run_id"] for answer in queued]
        answers = [await frames_of(talk, "t", run_id) for run_id in ids]
        assert [text_of(frames) for frames in answers] == ["first of three", "second", "third"]

    play(scene)


def test_the_same_message_sent_twice_is_answered_once(play):
    async def scene(talk):
        message = {"id": "m-1", "role": "user", "content": "once"}
        answers = [await talk.command("t", "run.start", {"input": {"messages": [message]}}) for _ in range(3)]
        assert len({answer["result"]["run_id"] for answer in answers}) == 1
        await frames_of(talk, "t", answers[0]["result"]["run_id"])
        state = await talk.state("t")
        assert texts(state) == [("human", "once"), ("ai", "once")]
        assert state["values"]["messages"][0]["id"] == "m-1"

    play(scene)


def test_a_failing_model_is_one_failed_frame_with_a_code_and_the_next_turn_works(play):
    async def scene(talk):
        failed = await ask(talk, "t", "[[error RATE_LIMIT slow down]]")
        assert (last(failed)["event"], last(failed)["code"]) == ("failed", "RATE_LIMIT")
        assert sum(map(is_root_end, failed)) == 1
        assert text_of(await ask(talk, "t", "better now")) == "better now"

    play(scene)


def test_an_unknown_model_fails_the_turn_and_says_what_there_is(play):
    async def scene(talk):
        failed = await ask(talk, "t", "hi", config={"configurable": {"model": "nobody:nothing"}})
        assert last(failed)["event"] == "failed"
        assert "echo" in last(failed)["error"]
        assert text_of(await ask(talk, "t", "hi")) == "hi"

    play(scene)


def test_a_killed_server_goes_on_with_the_run_and_keeps_every_event(play, server):
    async def before(talk):
        answer = await say(talk, "t", "[[pace 0.05]]" + " ".join(["a long answer that takes a while"] * 6))
        await frame_with(talk, "t", "takes")
        return answer["result"]["run_id"]

    run_id = play(before)
    server.kill()
    server.start()

    async def after(talk):
        frames = await frames_of(talk, "t", run_id)
        assert [frame["seq"] for frame in frames] == list(range(1, len(frames) + 1))
        assert last(frames)["event"] == "completed"
        assert [told[0] for told in texts(await talk.state("t"))] == ["human", "ai"]
        assert texts(await talk.state("t"))[1][1] == " ".join(["a long answer that takes a while"] * 6)
        assert text_of(await ask(talk, "t", "thanks")) == "thanks"

    play(after)


def test_two_readers_see_the_same_bytes(play):
    async def scene(talk):
        answer = await say(talk, "t", "[[pace 0.005]]" + "word " * 40)
        run_id = answer["result"]["run_id"]
        first, second = [await frames_of(talk, "t", run_id) for _ in range(2)]
        assert first == second
        assert [frame["seq"] for frame in first] == list(range(1, len(first) + 1))
        assert {frame["event_id"] for frame in first} == {f"synth:{run_id}:{frame['seq']}" for frame in first}

    play(scene)


def test_bad_commands_are_refused_with_a_code_and_store_nothing(play):
    async def scene(talk):
        assert (await talk.command("t", "agent.getTree", {}))["error"] == "unknown_command"
        refused = await talk.command("t", "run.start", {"input": {"messages": "hello"}})
        assert (refused["error"], list(refused["fields"])) == ("invalid_argument", ["input.messages"])
        assert await talk.state("t") is None

    play(scene)
