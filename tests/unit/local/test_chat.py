"""Answers of a model in a child process: real processes and HTTP, a scripted llama.cpp."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from pizzabot_builtin_plugins.local.chat import LocalChat
from pizzabot_builtin_plugins.local.errors import LocalContextOverflowError
from pizzabot_builtin_plugins.local.provider import LocalProvider
from pizzabot_hookspecs import InvalidRequest, NotFound, Unavailable
from pizzabot_hookspecs.errors import classify

Make = Callable[..., LocalProvider]


def played(make: Make, scene: Callable[[LocalProvider, LocalChat], Awaitable[None]], **settings: Any) -> None:
    async def play() -> None:
        async with make(**settings) as provider:
            await scene(provider, await provider.build("tiny"))
        assert provider.pool.pids() == {}

    asyncio.run(play())


def visible(pid: int, what: str) -> str:
    """What others can read of a process; nothing where there is no /proc."""
    path = Path(f"/proc/{pid}/{what}")
    return path.read_text() if path.exists() else ""


async def failure(chat: LocalChat, said: str) -> Exception:
    with pytest.raises(Exception) as caught:
        async for _ in chat.astream(said):
            pass
    assert "\n" not in str(caught.value)
    return caught.value


def test_an_answer_streams_word_by_word_with_usage_and_the_reason_of_its_end(provider: Make) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        chunks = [chunk async for chunk in chat.astream("one two three")]
        assert [chunk.text for chunk in chunks if chunk.text] == ["one ", "two ", "three "]
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole = whole + chunk
        assert whole.usage_metadata is not None
        assert whole.usage_metadata["total_tokens"] == 10
        assert whole.usage_metadata["input_token_details"] == {"cache_read": 2}
        assert whole.response_metadata["finish_reason"] == "stop"

    played(provider, scene)


def test_the_descriptor_and_the_profile_say_what_it_is_run_with(provider: Make) -> None:
    async def scene(local: LocalProvider, chat: LocalChat) -> None:
        described = await local.describe("tiny")
        assert described is not None
        assert (described.context_window, described.supports_tools) == (512, False)
        assert chat.profile == {"max_input_tokens": 512}
        assert [model.id for model in await local.models()] == ["tiny", "smollm2-135m"]
        assert await local.describe("nope") is None
        assert {described.inline_reasoning, *(model.inline_reasoning for model in await local.models())} == {"tags"}

    played(provider, scene, context_size=512, inline_reasoning="tags")


def test_a_conversation_reaches_the_model_as_text_with_its_tool_calls(provider: Make) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        call = {"name": "weather", "args": {"city": "Paris"}, "id": "c1", "type": "tool_call"}
        blocks = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "let me see"}, call]
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
        answer = await chat.ainvoke(
            [
                SystemMessage("be brief"),
                HumanMessage([{"type": "text", "text": "weather?"}, image]),
                AIMessage(content=blocks, tool_calls=[call]),
                ToolMessage("sunny", tool_call_id="c1"),
                HumanMessage("what was asked"),
            ]
        )
        body = json.loads(answer.text)
        assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool", "user"]
        assert body["messages"][1]["content"] == "weather?[image: this model reads text only]"
        assert body["messages"][2]["content"] == "let me see"
        assert json.loads(body["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {"city": "Paris"}
        assert body["messages"][3]["tool_call_id"] == "c1"
        assert body["stream"] is True
        assert body["max_tokens"] == 100

    played(provider, scene, max_output_tokens=100)


def test_a_tool_call_is_put_together_from_its_pieces(
    provider: Make, folder: Path, make_gguf: Callable[..., bytes]
) -> None:
    (folder / "tiny.gguf").write_bytes(make_gguf(template="{{ tools }}", llama__context_length=2048))
    tool = {"name": "weather", "description": "d", "parameters": {"type": "object", "properties": {}}}

    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        answer = await chat.bind_tools([tool]).ainvoke("use the tool")
        assert [(call["name"], call["args"]) for call in answer.tool_calls] == [("weather", {"city": "Paris"})]
        assert answer.additional_kwargs["reasoning_content"] == "I need the weather."
        asked = json.loads((await chat.bind_tools([tool]).ainvoke("what was asked")).text)
        assert asked["tools"][0]["function"]["name"] == "weather"

    played(provider, scene)


def test_tools_are_refused_by_a_model_that_cannot_use_them(provider: Make) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        with pytest.raises(InvalidRequest) as caught:
            chat.bind_tools([{"name": "weather", "description": "d", "parameters": {}}])
        assert caught.value.code == "tools_unsupported"
        assert (await chat.bind_tools([]).ainvoke("hello")).text == "hello "

    played(provider, scene)


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ("overflow", "CONTEXT_LENGTH", "raise context_size"),
        ("refuse", "GENERAL", "roles must alternate"),
        ("garbage", "STREAM_ERROR", "not JSON"),
        ("flood", "STREAM_ERROR", "longer than 1048576 bytes"),
        ("cut", "STREAM_ERROR", "in the middle"),
        ("late error", "GENERAL", "compute error"),
        ("silence", "TIMEOUT", "no answer for 0.3 s"),
        ("die", "MODEL_UNAVAILABLE", "signal 9"),
        ("die before", "MODEL_UNAVAILABLE", "signal 9"),
    ],
)
def test_what_goes_wrong_has_a_code_and_the_next_turn_works(provider: Make, said: str, code: str, words: str) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        error = await failure(chat, said)
        assert classify(error) == code
        assert words in str(error)
        assert (await chat.ainvoke("and on")).text == "and on "

    played(provider, scene, read_seconds=0.3)


def test_an_overflow_is_one_that_agents_summarise_on(provider: Make) -> None:
    from langchain_core.exceptions import ContextOverflowError

    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        error = await failure(chat, "overflow")
        assert isinstance(error, LocalContextOverflowError)
        assert isinstance(error, ContextOverflowError)

    played(provider, scene)


def test_a_child_killed_between_two_turns_is_not_noticed(provider: Make) -> None:
    async def scene(local: LocalProvider, chat: LocalChat) -> None:
        [first] = local.pool.pids().values()
        os.kill(first, signal.SIGKILL)
        assert (await chat.ainvoke("still here")).text == "still here "
        [second] = local.pool.pids().values()
        assert second != first

    played(provider, scene)


def test_a_cancelled_answer_closes_the_connection_so_that_the_model_stops(provider: Make, recorder: Any) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        closed, begun = recorder.expect("the connection was closed"), asyncio.Event()

        async def read() -> None:
            async for _chunk in chat.astream("endless"):
                begun.set()

        reading = asyncio.create_task(read())
        await asyncio.wait_for(begun.wait(), 10)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.wait_for(closed.wait(), 5)
        assert (await chat.ainvoke("free again")).text == "free again "

    played(provider, scene)


def test_one_place_means_one_answer_at_a_time_and_a_bounded_wait(provider: Make) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        stream = chat.astream("endless")
        await anext(stream)
        error = await failure(chat, "hello")
        assert classify(error) == "TIMEOUT"
        assert "queue_seconds" in str(error)
        await stream.aclose()
        assert (await chat.ainvoke("hello")).text == "hello "

    played(provider, scene, queue_seconds=0.2)


def test_another_thread_may_ask_synchronously(provider: Make) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        assert (await asyncio.to_thread(chat.invoke, "from a thread")).text == "from a thread "

    played(provider, scene)


def test_the_port_refuses_who_has_no_key_and_the_key_is_in_no_log_argv_or_environment(
    provider: Make, recorder: Any
) -> None:
    async def scene(local: LocalProvider, _: LocalChat) -> None:
        [seat] = local.pool._seats.values()
        assert seat.process is not None
        client = seat.process.client
        key = client.headers["Authorization"].removeprefix("Bearer ")
        assert len(key) >= 32
        async with httpx.AsyncClient(base_url=client.base_url, trust_env=False) as stranger:
            for headers in ({}, {"Authorization": "Bearer wrong"}):
                answer = await stranger.post("/v1/chat/completions", json={"messages": []}, headers=headers)
                assert answer.status_code == 401
        assert key not in visible(seat.process.pid, "cmdline") + visible(seat.process.pid, "environ")
        assert key not in str(recorder.events)

    played(provider, scene)


def test_the_child_inherits_no_secret_of_the_server(provider: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2")

    async def scene(local: LocalProvider, _: LocalChat) -> None:
        [pid] = local.pool.pids().values()
        assert "hunter2" not in visible(pid, "environ")

    played(provider, scene)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("broken", "llama.cpp said: 0.01 E llama_model_load: wrong number of tensors"),
        ("crash", "signal 6"),
        ("mute", "not loaded within"),
    ],
)
def test_a_model_that_does_not_load_says_why_and_leaves_no_process(
    provider: Make, folder: Path, make_gguf: Callable[..., bytes], name: str, words: str
) -> None:
    (folder / f"{name}.gguf").write_bytes(make_gguf())

    async def play() -> None:
        async with provider(start_seconds=1.5) as local:
            with pytest.raises(Unavailable) as caught:
                await local.build(name)
            assert caught.value.code == "model_unavailable"
            assert words in caught.value.detail
            assert "\n" not in caught.value.detail
            assert local.pool.pids() == {}
            assert (await (await local.build("tiny")).ainvoke("others work")).text == "others work "

    asyncio.run(play())


def test_an_unknown_model_and_a_broken_file_are_refused_before_any_process(provider: Make, folder: Path) -> None:
    (folder / "bad.gguf").write_bytes(b"nonsense")

    async def play() -> None:
        async with provider() as local:
            with pytest.raises(NotFound, match="no local model 'nope'"):
                await local.build("nope")
            with pytest.raises(InvalidRequest, match="does not begin with GGUF"):
                await local.build("bad")
            assert local.pool.pids() == {}

    asyncio.run(play())


def test_weights_are_not_fetched_where_that_is_switched_off(provider: Make) -> None:
    async def play() -> None:
        async with provider(download=False) as local:
            assert [model.id for model in await local.models()] == ["tiny"]
            with pytest.raises(Unavailable, match="pizzabot models install smollm2-135m") as caught:
                await local.build("smollm2-135m")
            assert caught.value.code == "weights_unavailable"

    asyncio.run(play())
