"""The echo model: plain text comes back exactly, directives script the rest, and it can be stopped at any word."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import ValidationError

from pizzabot_builtin_plugins.echo.provider import EchoProvider, EchoSettings
from pizzabot_builtin_plugins.echo.script import MAX_ANSWER_CHARS, ChunkUnit, chunks, parse
from pizzabot_hookspecs import InvalidRequest, Unavailable
from pizzabot_hookspecs.errors import classify


def built(model: str = "echo", **settings: Any) -> Any:
    return asyncio.run(EchoProvider(EchoSettings(**settings)).build(model))


def streamed(text: Any, model: str = "echo", **settings: Any) -> list[Any]:
    async def run() -> list[Any]:
        chat = await EchoProvider(EchoSettings(**settings)).build(model)
        return [chunk async for chunk in chat.astream(text)]

    return asyncio.run(run())


def words(text: Any, **settings: Any) -> list[str]:
    return [str(chunk.text) for chunk in streamed(text, **settings) if chunk.text]


@pytest.mark.parametrize(
    "text",
    [
        "Tell me  about\npizza ",
        "  leading and trailing \n",
        "one",
        " ",
        "\n\n",
        "[[not a directive]] and [[nor-this]] or [[unclosed",
        "[[[]]] {} [[ pace 1 ]]",
        "emoji 🍕 and combining é\u0301 and \u2028 separators\r\n",
        "x" * 5000,
    ],
)
def test_plain_text_comes_back_exactly_word_by_word(text: str) -> None:
    pieces = words(text)
    assert "".join(pieces) == text
    assert all(len(piece.split()) <= 1 for piece in pieces)


def test_each_chunk_is_a_word_with_the_whitespace_that_follows_it() -> None:
    assert words("Tell me  about\npizza") == ["Tell ", "me  ", "about\n", "pizza"]


def test_the_last_human_message_is_the_one_that_is_answered() -> None:
    assert words([HumanMessage("first"), AIMessage("answer"), HumanMessage("second")]) == ["second"]


def test_a_conversation_without_a_person_is_answered_with_nothing() -> None:
    assert words([AIMessage("hello")]) == []


def test_the_whole_answer_equals_the_streamed_one_and_counts_words() -> None:
    for call in (built().invoke, lambda text: asyncio.run(built().ainvoke(text))):
        answer = call("one two three")
        assert answer.text == "one two three"
        assert answer.usage_metadata == {"input_tokens": 3, "output_tokens": 3, "total_tokens": 6}


def test_a_directive_is_taken_out_with_the_whitespace_behind_it() -> None:
    assert "".join(words("hello [[pace 0]] world [[delay 0]]")) == "hello world"


@pytest.mark.parametrize(("unit", "size"), [("chars", 3), ("bytes", 4), ("bytes", 1)])
def test_chunks_of_characters_and_bytes_concatenate_and_split_no_character(unit: str, size: int) -> None:
    text = "abc🍕é def"
    pieces = words(f"[[chunk {unit} {size}]]{text}")
    assert "".join(pieces) == text
    assert len(pieces) > 2


def test_a_lone_surrogate_is_cut_into_bytes_without_an_error() -> None:
    assert "".join(chunks("a\ud800b", ChunkUnit.BYTES, 1)) == "a\ud800b"


def test_text_replaces_the_rest_of_the_message_and_repeat_multiplies_it() -> None:
    assert "".join(words("ignored [[text said]][[repeat 3]]")) == "said said said"
    assert "".join(words("pizza [[repeat 2]]")) == "pizza pizza"


def test_reasoning_comes_before_the_text_in_a_block_of_its_own() -> None:
    answer = asyncio.run(built().ainvoke("[[reasoning because of it]] yes"))
    assert [(block["type"], block.get("reasoning", block.get("text"))) for block in answer.content_blocks] == [
        ("reasoning", "because of it"),
        ("text", "yes"),
    ]
    assert answer.text == "yes"


def test_a_tool_is_called_and_its_result_is_the_answer() -> None:
    asked = HumanMessage('sum it [[tool add {"a": [[1]], "b": "]]"}]]', id="m1")
    call = asyncio.run(built().ainvoke([asked]))
    assert call.text == "sum it"
    [tool] = call.tool_calls
    assert (tool["name"], tool["args"]) == ("add", {"a": [[1]], "b": "]]"})
    result = ToolMessage("the sum is 3", tool_call_id=tool["id"])
    assert asyncio.run(built().ainvoke([asked, call, result])).text == "the sum is 3"


def test_steps_after_tools_are_played_one_a_round_with_ids_of_their_own() -> None:
    asked = HumanMessage("[[tool a]][[tool b]] [[then]] [[tool c]] [[then]] done", id="m1")
    first = asyncio.run(built().ainvoke([asked]))
    assert [call["name"] for call in first.tool_calls] == ["a", "b"]
    results = [ToolMessage("x", tool_call_id=call["id"]) for call in first.tool_calls]
    second = asyncio.run(built().ainvoke([asked, first, *results]))
    assert [call["name"] for call in second.tool_calls] == ["c"]
    last = ToolMessage("y", tool_call_id=second.tool_calls[0]["id"])
    assert asyncio.run(built().ainvoke([asked, first, *results, second, last])).text == "done"
    ids = [call["id"] for message in (first, second) for call in message.tool_calls]
    assert len(set(ids)) == 3
    assert asyncio.run(built().ainvoke([asked])).tool_calls == first.tool_calls


def test_an_error_comes_before_any_output_and_carries_the_scripts_code() -> None:
    with pytest.raises(Exception, match="slow down") as caught:
        words("hello [[error RATE_LIMIT slow down]]")
    assert classify(caught.value) == "RATE_LIMIT"


@pytest.mark.parametrize(("after", "expected"), [(2, ["a ", "b "]), (99, ["a ", "b ", "c"])])
def test_an_error_after_chunks_lets_them_through(after: int, expected: list[str]) -> None:
    async def run() -> list[str]:
        chat = await EchoProvider(EchoSettings()).build("echo")
        seen: list[str] = []

        async def consume() -> None:
            async for chunk in chat.astream(f"a b c[[error-after {after} STREAM_ERROR cut]]"):
                seen.extend([str(chunk.text)] if chunk.text else [])

        with pytest.raises(Exception, match="cut"):
            await consume()
        return seen

    assert asyncio.run(run()) == expected


def test_usage_can_be_scripted() -> None:
    answer = asyncio.run(built().ainvoke("hi [[usage 120 40]]"))
    assert answer.usage_metadata == {"input_tokens": 120, "output_tokens": 40, "total_tokens": 160}


def test_a_stop_word_ends_the_answer() -> None:
    assert built().invoke("one two three", stop=["two"]).text == "one "


@pytest.mark.parametrize(
    "text",
    [
        "[[pace fast]]", "[[pace 11]]", "[[pace -1]]", "[[pace nan]]", "[[delay 601]]", "[[delay inf]]",
        "[[chunk words 3]]", "[[chunk chars 0]]", "[[chunk chars]]", "[[repeat 0]]", "[[repeat x]]", "[[repeat ²]]",
        "[[tool]]", "[[tool x [1]]]", "[[tool x {]]", '[[tool x {"a": 1}', "[[tool x " + '{"a":' * 100_000 + "]]",
        "[[usage 1]]", "[[usage a b]]", "[[error]]", "[[error-after x Y z]]", "[[error-after 1]]", "[[then 3]]",
        "[[pace 1", "x [[repeat 999999999999]]", "pizza [[repeat 1000000]]", "[[tool a]]" * 65,
    ],
)  # fmt: skip
def test_a_malformed_directive_fails_the_turn_by_its_name(text: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(text)
    assert caught.value.code == "bad_directive"
    assert caught.value.detail.startswith("the echo directive [[")
    assert len(caught.value.detail) < 300


def test_the_longest_answer_is_a_million_characters() -> None:
    [step] = parse(f"x [[repeat {(MAX_ANSWER_CHARS + 1) // 2}]]")
    assert len(step.answer) <= MAX_ANSWER_CHARS


def test_pace_and_delay_wait_as_directed_and_as_configured() -> None:
    for text, settings in (("[[delay 0.1]][[pace 0.1]]a b", {}), ("a b", {"pace": 0.1, "delay": 0.1})):
        began = time.monotonic()
        words(text, **settings)
        assert 0.3 <= time.monotonic() - began < 5


def test_a_delayed_error_waits_too_and_says_nothing_before() -> None:
    began = time.monotonic()
    with pytest.raises(Exception, match="late"):
        words("[[delay 0.2]][[error TIMEOUT late]]")
    assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("text", ["[[delay 600]]hello", "[[pace 10]]a b c", "pizza [[repeat 400000]]"])
def test_it_stops_at_once(text: str) -> None:
    async def run() -> float:
        chat = await EchoProvider(EchoSettings()).build("echo")
        started = asyncio.Event()

        async def consume() -> None:
            started.set()
            async for _ in chat.astream(text):
                pass

        task = asyncio.create_task(consume())
        await started.wait()
        await asyncio.sleep(0)
        began = time.monotonic()
        task.cancel()
        await asyncio.wait({task}, timeout=10)
        assert task.cancelled()
        return time.monotonic() - began

    assert asyncio.run(run()) < 2


def test_a_long_answer_leaves_the_loop_to_others() -> None:
    async def run() -> float:
        chat = await EchoProvider(EchoSettings()).build("echo")
        worst, last, done = 0.0, time.monotonic(), asyncio.Event()

        async def consume() -> None:
            async for _ in chat.astream("pizza [[repeat 3000]]"):
                pass
            done.set()

        task = asyncio.create_task(consume())
        while not done.is_set():
            await asyncio.sleep(0)
            now = time.monotonic()
            worst, last = max(worst, now - last), now
        await task
        return worst

    assert asyncio.run(run()) < 0.5


def test_the_plain_model_has_no_tools_and_says_so() -> None:
    plain = built("echo-plain")
    with pytest.raises(InvalidRequest, match="echo-plain"):
        plain.bind_tools([])
    with pytest.raises(InvalidRequest, match="echo-plain"):
        plain.invoke("[[tool x]]")
    described = asyncio.run(EchoProvider(EchoSettings()).models())
    assert [(model.id, model.supports_tools) for model in described] == [("echo", True), ("echo-plain", False)]


def test_an_unknown_model_is_unavailable_and_the_known_ones_are_named() -> None:
    with pytest.raises(Unavailable) as caught:
        built("parrot")
    assert caught.value.code == "model_unavailable"
    assert "echo-plain" in caught.value.detail


def test_it_is_called_echo_in_traces_and_knows_its_window() -> None:
    chat = built(context_window=1234)
    assert chat._get_ls_params()["ls_provider"] == "echo"
    assert chat.profile == {"max_input_tokens": 1234}


@pytest.mark.parametrize("section", [{"pace": 11}, {"pace": -1}, {"delay": 601}, {"context_window": 0}, {"x": 1}])
def test_a_bad_section_is_refused(section: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EchoSettings.model_validate(section)


@pytest.mark.parametrize("plugin", ["echo", "openai", "ollama", "run_log"])
def test_offering_loads_no_adapter(plugin: str) -> None:
    hook = "pizzabot_observers" if plugin == "run_log" else "pizzabot_model_providers"
    program = (
        f"import sys\nfrom pizzabot_builtin_plugins.{plugin} import {hook} as hook\n[offer] = hook()\n"
        "print([name for name in ('langchain_core', 'langchain', 'openai', 'ollama', 'httpx') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
