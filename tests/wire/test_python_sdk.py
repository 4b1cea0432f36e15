"""The Python `langgraph-sdk`, unchanged, against a real server: turns on one thread, reattaching, stopping, failing."""

import asyncio

import pytest
from langgraph_sdk import get_client


def text_of(message):
    content = message["content"]
    return content if isinstance(content, str) else "".join(block.get("text", "") for block in content)


def said(text):
    return {"messages": [{"role": "user", "content": text}]}


def played(server, scene):
    async def bounded():
        async with asyncio.timeout(60), get_client(url=server.http, api_key=None) as client:
            return await scene(client)

    return asyncio.run(bounded())


@pytest.mark.parametrize("delay", ["", "[[delay 0.2]]"])
def test_turn_after_turn_on_one_thread_each_gets_its_own_answer(server, delay):
    async def scene(client):
        thread_id, answers = None, []
        for number in range(6):
            async with client.threads.stream(thread_id, assistant_id="pizza-bot") as thread:
                await thread.run.start(input=said(f"{delay}question {number}"))
                output = await thread.output
                thread_id = thread.thread_id
                answers.append(text_of(output["messages"][-1]))
        assert answers == [f"question {number}" for number in range(6)]

    played(server, scene)


def test_a_finished_thread_is_read_again_without_a_run(server):
    async def scene(client):
        async with client.threads.stream(assistant_id="pizza-bot") as thread:
            await thread.run.start(input=said("remember this"))
            first, thread_id = await thread.output, thread.thread_id
        async with client.threads.stream(thread_id, assistant_id="pizza-bot") as again:
            assert (await again.output)["messages"] == first["messages"]

    played(server, scene)


def test_the_text_streams_and_a_stop_settles_with_what_was_said(server):
    async def scene(client):
        async with client.threads.stream(assistant_id="pizza-bot") as thread:
            count = "one two three four five six seven eight nine ten " * 40
            run = await thread.run.start(input=said(f"[[pace 0.05]]{count}"))
            streamed = []

            async def read(message):
                async for piece in message.text:
                    streamed.append(piece)
                    if len(streamed) == 3:
                        await client.runs.cancel(thread.thread_id, run["run_id"])

            readers = []

            async def messages():
                readers.extend([asyncio.create_task(read(message)) async for message in thread.messages])

            reading = asyncio.create_task(messages())
            output = await thread.output
            await reading
            await asyncio.gather(*readers, return_exceptions=True)
            told = text_of(output["messages"][-1])
            assert told.startswith("one two three")
            assert len(told.split()) < 400

    played(server, scene)


def test_a_failed_turn_raises_and_the_next_one_works(server):
    async def scene(client):
        async with client.threads.stream(assistant_id="pizza-bot") as thread:
            await thread.run.start(input=said("[[error RATE_LIMIT slow down]]"))
            with pytest.raises(RuntimeError, match="slow down"):
                await thread.output
            thread_id = thread.thread_id
        async with client.threads.stream(thread_id, assistant_id="pizza-bot") as thread:
            await thread.run.start(input=said("better"))
            assert text_of((await thread.output)["messages"][-1]) == "better"

    played(server, scene)
