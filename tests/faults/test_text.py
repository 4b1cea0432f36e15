"""Text in every script, cut by the model wherever it likes, comes back unchanged from log, state and stream."""

from __future__ import annotations

import httpx
import pytest
from engine_rig import collect_until, is_end, log_of, rig, run
from engine_rig import start as begin
from talking import frames_of, say, text_of, texts
from watching import Client, begun, caught_up, check_log, next_message_works, play, stored_log, watched

from pizzabot.testing.scripted_runtime import ScriptedRuntime

TEXT = (  # as characters of one to four bytes, joined, turned round, or not printable at all
    "Pizza 🍕 和 披萨饼 👨‍👩‍👧‍👦 e\u0301 한국어 🏳️‍🌈 שלום ไทย \u2028 \U0001d4b3 ½ \U0010ffff \x07 end"
)


def stored_text(data_root, thread_id, run_id):
    return "".join(
        event.data["delta"]["text"]
        for event in stored_log(data_root, thread_id)
        if event.run_id == run_id and event.method == "messages" and "delta" in event.data
    )


def test_text_cut_at_every_byte_comes_back_unchanged_from_log_state_and_stream(serve):
    server = serve()

    async def scene():
        for unit, size in [("bytes", size) for size in (1, 2, 3, 4, 5, 7)] + [("chars", 1)]:
            thread_id = f"{unit}-{size}"
            async with watched(server, thread_id) as (client, record):
                run_id = await begun(client, thread_id, f"[[chunk {unit} {size}]]{TEXT}")
                frames = await frames_of(client, thread_id, run_id)
                await record.until(lambda frame, last=frames[-1]["seq"]: frame["seq"] == last)
                assert text_of(frames) == text_of(record.frames) == TEXT
                assert stored_text(server.data_root, thread_id, run_id) == TEXT
                assert texts(await client.state(thread_id))[-1] == ("ai", TEXT)
                check_log(server, thread_id, record)
        server.kill()
        server.start()
        async with Client(server.http) as client:
            await caught_up(client, record, server=server)
            assert texts(await client.state("chars-1"))[-1] == ("ai", TEXT)

    play(scene())


@pytest.mark.parametrize("escaped", ["a\\ud83d", "\\udf55a", "a\\ud83d b \\udf55"])
def test_an_unpaired_surrogate_is_replaced_at_the_edge_and_the_thread_goes_on(serve, escaped):
    server = serve()
    expected = escaped.replace("\\ud83d", "\ufffd").replace("\\udf55", "\ufffd")

    async def scene():
        async with watched(server, "t") as (client, record):
            body = f'{{"id": 1, "method": "run.start", "params": {{"input": {{"prompt": "{escaped}"}}}}}}'
            async with httpx.AsyncClient(base_url=server.http, trust_env=False) as raw:
                headers = {"content-type": "application/json"}
                answer = (await raw.post("/threads/t/commands", content=body, headers=headers)).json()
            assert answer["type"] == "success", answer
            frames = await frames_of(client, "t", answer["result"]["run_id"])
            assert text_of(frames) == expected
            assert texts(await client.state("t")) == [("human", expected), ("ai", expected)]
            await next_message_works(client, "t")
        server.restart()
        async with Client(server.http) as client:
            assert texts(await client.state("t"))[:2] == [("human", expected), ("ai", expected)]
            await next_message_works(client, "t")
            await caught_up(client, record, server=server)

    play(scene())


def test_a_surrogate_pair_that_came_in_two_escapes_is_the_character(serve):
    server = serve()

    async def scene():
        async with watched(server, "t") as (client, _):
            answer = await say(client, "t", "\U0001f355")
            assert text_of(await frames_of(client, "t", answer["result"]["run_id"])) == "\U0001f355"

    play(scene())


@pytest.mark.parametrize("text", ["x \ud83d y", "x \udf55", "\ud83d\udf55 z"])
def test_what_a_model_says_with_surrogates_is_stored_and_the_thread_goes_on(tmp_path, text):
    class Says(ScriptedRuntime):
        """Says what no client could have sent."""

        def start(self, turn):
            made = super().start(turn)
            if turn.messages[-1].text == "say it":
                made._call = lambda _name: made._say(text)
                turn.messages[-1].parts[0]["text"] = "tool it"
            return made

    async def scene():
        async with rig(tmp_path, Says()) as parts:
            await begin(parts, "t", "say it")
            await parts.engine.when_idle()
            told = "".join(event.data.decode() for event in await log_of(parts, "t") if b"delta" in event.data)
            assert "\ufffd" in told or "\U0001f755" in told
            await begin(parts, "t", "go on")
            await parts.engine.when_idle()
            from engine_rig import EVERYTHING

            from pizzabot_hookspecs import LOCAL

            stream = await parts.runs.observe("t", EVERYTHING, since=0, caller=LOCAL)
            log = await log_of(parts, "t")
            seen = await collect_until(stream, lambda event: event.seq == log[-1].seq)
            assert (seen, sum(map(is_end, log))) == (log, 2)

    run(scene())
