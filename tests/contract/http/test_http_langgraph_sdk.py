"""The stock Python SDK holds a text turn with the HTTP transport (wire.md §9.2)."""

import asyncio

import pytest

from pizzabot.testing.scripted_host import ScriptedHost


def human(text):
    return {"messages": [{"role": "user", "content": text}]}


def with_sdk(serve, test, **settings):
    async def main():
        from langgraph_sdk import get_client

        async with ScriptedHost() as host, serve(host, **settings) as served:
            client = get_client(url=served.address, api_key=None, headers=settings_headers(settings))
            try:
                await asyncio.wait_for(test(client, host), 30)
            finally:
                await client.aclose()

    asyncio.run(main())


def settings_headers(settings):
    return {"authorization": f"Bearer {settings['token']}"} if "token" in settings else {}


async def text_of(message):
    return "".join([piece async for piece in message.text])


def test_a_text_turn_streams_its_message_and_ends_with_the_state(serve):
    async def test(client, host):
        async with client.threads.stream(assistant_id="pizza-bot") as thread:
            await thread.run.start(input=human("one two three"))

            async def texts():
                # One task a message: reading m.text inside this loop never advances it (wire.md §9.2).
                reading = [asyncio.create_task(text_of(message)) async for message in thread.messages]
                return [await task for task in reading]

            streamed = asyncio.create_task(texts())
            output = await thread.output
            assert [message["content"] for message in output["messages"]] == ["one two three", "one two three"]
            assert await streamed == ["one two three"]

    with_sdk(serve, test, token="s" * 40)


def test_two_turns_on_one_thread_and_the_thread_api(serve):
    async def test(client, host):
        thread = await client.threads.create(metadata={"a": 1}, thread_id="tea")
        assert (thread["thread_id"], thread["metadata"], thread["status"]) == ("tea", {"a": 1}, "idle")
        for text in ("first", "second"):
            async with client.threads.stream("tea", assistant_id="pizza-bot") as stream:
                await stream.run.start(input=human(text))
                output = await stream.output
                assert output["messages"][-1]["content"] == text
        state = await client.threads.get_state("tea")
        assert len(state["values"]["messages"]) == 4
        assert (await client.threads.get("tea"))["status"] == "idle"
        await client.threads.delete("tea")

    with_sdk(serve, test)


def test_a_run_that_is_cancelled_settles_and_keeps_what_was_said(serve):
    async def test(client, host):
        async with client.threads.stream("tea", assistant_id="pizza-bot") as thread:
            started = await thread.run.start(input=human("hold on"))
            await host.logged("tea", lambda event: b"text-delta" in event.data)
            await client.runs.cancel("tea", started["run_id"])
            output = await thread.output
            assert output["messages"][-1]["content"] == "hold"

    with_sdk(serve, test)


def test_a_failed_run_raises_with_its_cause(serve):
    async def test(client, host):
        async with client.threads.stream("tea", assistant_id="pizza-bot") as thread:
            await thread.run.start(input=human("fail"))
            with pytest.raises(Exception, match="the script says so"):
                await thread.output

    with_sdk(serve, test)


def test_history_states_and_writing_one(serve):
    async def test(client, host):
        await client.threads.create(thread_id="tea")
        for text in ("first", "second", "third"):
            written = await client.threads.update_state("tea", {"messages": [{"role": "user", "content": text}]})
            assert written["checkpoint"]["thread_id"] == "tea"
        history = await client.threads.get_history("tea", limit=2)
        assert [len(entry["values"]["messages"]) for entry in history] == [3, 2]
        older = await client.threads.get_history("tea", before=history[-1]["checkpoint"], select=["values.messages"])
        assert [list(entry) for entry in older] == [["values"]]
        by_id = await client.threads.get_state("tea", checkpoint_id=history[1]["checkpoint"]["checkpoint_id"])
        by_name = await client.threads.get_state("tea", checkpoint=history[1]["checkpoint"], subgraphs=True)
        assert by_id == by_name == history[1]
        assert list(await client.threads.get_state("tea", select=["next", "values"])) == ["next", "values"]
        assert await client.threads.get_history("tea", metadata={"source": "nowhere"}) == []

    with_sdk(serve, test)


def test_threads_are_searched_and_counted(serve):
    async def test(client, host):
        for name in ("tea", "coffee"):
            await client.threads.create(thread_id=name, metadata={"drink": name}, graph_id="pizza-bot")
        assert [row["thread_id"] for row in await client.threads.search()] == ["coffee", "tea"]
        found = await client.threads.search(
            metadata={"drink": "tea"}, status="idle", sort_by="created_at", select=["thread_id"]
        )
        assert found == [{"thread_id": "tea"}]
        assert await client.threads.search(ids=["coffee"], limit=1, offset=1) == []
        assert await client.threads.count() == 2
        assert await client.threads.count(metadata={"drink": "tea"}, status="busy") == 0
        await client.threads.delete("tea")
        assert await client.threads.count() == 1

    with_sdk(serve, test)


def test_what_is_not_there_is_an_error_with_its_code(serve):
    async def test(client, host):
        await client.threads.create(thread_id="tea")
        for refused, code in [
            (client.threads.copy("tea"), "not_found"),
            (client.threads.update("tea", metadata={"a": 1}), "method_not_allowed"),
            (client.threads.prune(["tea"]), "method_not_allowed"),
            (client.threads.search(values={"messages": []}, extract={"a": "values.b"}), "invalid_request"),
            (client.threads.create(supersteps=[{"updates": []}]), "invalid_request"),
            (client.threads.get("nowhere"), "no_such_thread"),
            (client.threads.get_history("nowhere"), "no_such_thread"),
        ]:
            with pytest.raises(Exception) as raised:
                await refused
            assert raised.value.response.json()["error"] == code
            assert raised.value.response.json()["detail"]

    with_sdk(serve, test)
