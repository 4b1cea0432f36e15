"""What the ollama provider does beyond the contract: discovery, sizes, thinking, repairs, images, errors, abort."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import ValidationError

from pizzabot_builtin_plugins.ollama import pizzabot_model_providers
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.errors import classify

Make = Callable[..., Any]
TOOL = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks up.",
        "parameters": {"properties": {"searchTerm": {"type": "string"}, "max_results": {"type": "integer"}}},
    },
}  # fmt: skip


@pytest.fixture
def make(ollama_server: Any, make_context: Callable[..., Any]) -> Make:
    [offer] = pizzabot_model_providers()
    assert offer.settings is not None
    settings_of = offer.settings.model_validate

    def provider(**section: Any) -> Any:
        return offer.create(make_context("ollama"), settings_of({"host": ollama_server.url, **section}))

    return provider


def use(provider: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with provider:
            return await work(provider)

    return asyncio.run(asyncio.wait_for(run(), 60))


def ask(provider: Any, messages: Any = "hello there", model: str = "qwen3:4b", tools: Any = None) -> Any:
    async def work(entered: Any) -> Any:
        chat = await entered.build(model)
        return await (chat.bind_tools(tools) if tools else chat).ainvoke(messages)

    return use(provider, work)


def says(ollama_line_of: Any, *messages: dict[str, Any]) -> Callable[[Any], bool]:
    def answer(request: Any) -> bool:
        request.begin("application/x-ndjson")
        for message in messages:
            request.piece(ollama_line_of({"role": "assistant", "content": "", **message}))
        request.piece(ollama_line_of({"role": "assistant", "content": ""}, done=True))
        request.end()
        return True

    return answer


def test_models_are_listed_with_what_they_can_and_a_bad_one_by_name(make: Make) -> None:
    models = {model.id: model for model in use(make(), lambda provider: provider.models())}
    assert sorted(models) == ["llava", "old", "qwen3:4b"]
    assert (models["qwen3:4b"].context_window, models["qwen3:4b"].supports_tools) == (8192, True)
    assert (models["llava"].supports_tools, models["llava"].supports_vision) == (False, True)
    assert (models["old"].context_window, models["old"].supports_tools) == (32768, True)


def test_it_needs_no_configuration(make: Make) -> None:
    assert make().missing() is None


@pytest.mark.parametrize(("configured", "sent"), [(4096, 4096), (100_000, 8192)])
def test_the_context_is_the_smaller_of_configured_and_advertised(
    ollama_server: Any, make: Make, configured: int, sent: int
) -> None:
    ask(make(contextLength=configured))
    [body] = ollama_server.bodies("/api/chat")
    assert body["options"]["num_ctx"] == sent


@pytest.mark.parametrize(
    ("thinking", "model", "sent"),
    [("auto", "qwen3:4b", True), ("auto", "llava", None), ("enabled", "llava", True), ("disabled", "qwen3:4b", False)],
)
def test_thinking_is_asked_for_as_declared_or_as_configured(
    ollama_server: Any, make: Make, thinking: str, model: str, sent: bool | None
) -> None:
    ask(make(thinking=thinking), model=model)
    [body] = ollama_server.bodies("/api/chat")
    assert body.get("think") is sent


def test_thoughts_are_reasoning_blocks(ollama_server: Any, make: Make, ollama_line_of: Any) -> None:
    ollama_server.behaviour["/api/chat"] = says(ollama_line_of, {"thinking": "let me see"}, {"content": "four"})
    message = ask(make())
    assert [block["type"] for block in message.content_blocks] == ["reasoning", "text"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"search_term": "x", "Max-Results": 3},
        '{"search_term": "x", "MAXRESULTS": 3}',
        {"searchTerm": "x", "max_results": 3},
    ],
)
def test_arguments_as_text_and_nearly_right_keys_are_repaired(
    ollama_server: Any, make: Make, ollama_line_of: Any, arguments: Any
) -> None:
    call = {"function": {"name": "look_up", "arguments": arguments}}
    ollama_server.behaviour["/api/chat"] = says(ollama_line_of, {"tool_calls": [call]})
    message = ask(make(), tools=[TOOL])
    assert [tool["args"] for tool in message.tool_calls] == [{"searchTerm": "x", "max_results": 3}]


@pytest.mark.parametrize("arguments", ["not json", "[1]", None, "[" * 100_000])
def test_arguments_beyond_repair_are_none_instead_of_a_failed_run(
    ollama_server: Any, make: Make, ollama_line_of: Any, arguments: Any
) -> None:
    call = {"function": {"name": "look_up", "arguments": arguments}}
    ollama_server.behaviour["/api/chat"] = says(ollama_line_of, {"tool_calls": [call]})
    assert [tool["args"] for tool in ask(make(), tools=[TOOL]).tool_calls] == [{}]


def test_every_tool_call_has_an_id_of_its_own(ollama_server: Any, make: Make, ollama_line_of: Any) -> None:
    call = {"function": {"name": "look_up", "arguments": {"searchTerm": "x"}}}
    ollama_server.behaviour["/api/chat"] = says(ollama_line_of, {"tool_calls": [call, call]}, {"tool_calls": [call]})

    async def work(provider: Any) -> list[Any]:
        chat = (await provider.build("qwen3:4b")).bind_tools([TOOL])
        return [call for chunk in [c async for c in chat.astream("x")] for call in chunk.tool_calls]

    calls = use(make(), work)
    assert len({call["id"] for call in calls}) == 3
    assert all(call["id"] for call in calls)


def conversation(image: dict[str, Any]) -> list[Any]:
    call = {"name": "look", "args": {}, "id": "c", "type": "tool_call"}
    blocks = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "I look"}]
    result = [{"type": "text", "text": "here"}, image]
    return [
        HumanMessage("look"),
        AIMessage(content=blocks, tool_calls=[call]),
        ToolMessage(content=result, tool_call_id="c"),
    ]


PNG = "aGVsbG8="


@pytest.mark.parametrize(
    "image",
    [
        {"type": "image", "base64": PNG, "mime_type": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    ],
)
def test_an_image_of_a_tool_is_shown_by_the_user_to_a_model_that_sees(
    ollama_server: Any, make: Make, image: dict[str, Any]
) -> None:
    ask(make(), conversation(image), model="llava")
    [body] = ollama_server.bodies("/api/chat")
    _, assistant, tool, user = body["messages"]
    assert assistant["content"] == "I look"
    assert (tool["role"], tool["content"], tool.get("images") or []) == ("tool", "here\n[the image follows]", [])
    assert (user["role"], user["images"]) == ("user", [PNG])


def test_a_blind_model_is_told_that_there_was_an_image(ollama_server: Any, make: Make) -> None:
    ask(make(), conversation({"type": "image", "base64": PNG, "mime_type": "image/png"}))
    [body] = ollama_server.bodies("/api/chat")
    assert [message["role"] for message in body["messages"]] == ["user", "assistant", "tool"]
    assert "cannot see images" in body["messages"][-1]["content"]


def test_a_model_that_is_not_there_is_refused_with_the_command_that_gets_it(make: Make) -> None:
    with pytest.raises(Unavailable) as caught:
        use(make(), lambda provider: provider.build("gone"))
    assert caught.value.code == "model_unavailable"
    assert "`ollama pull gone`" in caught.value.detail


def test_no_ollama_is_a_network_error_that_says_how_to_start_one(make: Make) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{probe.getsockname()[1]}"
    for work in (lambda provider: provider.models(), lambda provider: provider.build("x")):
        with pytest.raises(Unavailable) as caught:
            use(make(host=host), work)
        assert caught.value.code == "network"
        assert "ollama serve" in caught.value.detail


@pytest.mark.parametrize("payload", [b"nonsense", b"[1]", b'{"models": 3}', b"[" * 100_000, b" " * 4_000_001])
def test_a_list_that_is_none_is_an_endpoint_error(ollama_server: Any, make: Make, payload: bytes) -> None:
    ollama_server.behaviour["/api/tags"] = lambda request: request.whole(200, payload) or True
    with pytest.raises(Unavailable) as caught:
        use(make(), lambda provider: provider.models())
    assert caught.value.code == "endpoint"


def test_a_server_that_says_nothing_is_a_network_error(
    ollama_server: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pizzabot_builtin_plugins.ollama.server.DEADLINE_SECONDS", 0.4)
    ollama_server.behaviour["/api/tags"] = lambda request: request.hang() or True
    with pytest.raises(Unavailable) as caught:
        use(make(), lambda provider: provider.models())
    assert caught.value.code == "network"


def test_details_that_do_not_come_cost_the_details_only(
    ollama_server: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pizzabot_builtin_plugins.ollama.server.DEADLINE_SECONDS", 0.6)
    ollama_server.behaviour["/api/show"] = lambda request: request.hang() or True
    assert len(use(make(), lambda provider: provider.models())) == 4


def failed(provider: Any) -> Exception:
    with pytest.raises(Exception, match=r".") as caught:
        ask(provider)
    return caught.value


def test_an_error_in_the_middle_of_an_answer_is_said(ollama_server: Any, make: Make, ollama_line_of: Any) -> None:
    def breaks(request: Any) -> bool:
        request.begin("application/x-ndjson")
        request.piece(ollama_line_of({"role": "assistant", "content": "hello "}))
        request.piece(json.dumps({"error": "out of memory"}) + "\n")
        request.end()
        return True

    ollama_server.behaviour["/api/chat"] = breaks
    assert "out of memory" in str(failed(make()))


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (404, "model not found", "MODEL_UNAVAILABLE"),
        (500, "boom", "MODEL_UNAVAILABLE"),
        (429, "too many requests", "RATE_LIMIT"),
    ],
)
def test_a_failed_call_is_classified(ollama_server: Any, make: Make, status: int, message: str, code: str) -> None:
    ollama_server.behaviour["/api/chat"] = lambda request: request.whole(status, {"error": message}) or True
    assert classify(failed(make())) == code


def test_silence_is_a_timeout_and_a_cut_a_stream_error(ollama_server: Any, make: Make, ollama_line_of: Any) -> None:
    ollama_server.behaviour["/api/chat"] = lambda request: request.hang() or True
    assert classify(failed(make(timeout=0.3))) == "TIMEOUT"

    def breaks_off(request: Any) -> bool:
        request.begin("application/x-ndjson")
        request.piece(ollama_line_of({"role": "assistant", "content": "hello "}))
        request.close_connection = True
        return True

    ollama_server.behaviour["/api/chat"] = breaks_off
    assert classify(failed(make())) == "STREAM_ERROR"


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_stopping_reaches_the_request(ollama_server: Any, make: Make, way: str) -> None:
    async def consume(chat: Any, started: asyncio.Event) -> None:
        async for _ in chat.astream("Count to a thousand"):
            started.set()
            if way == "close":
                return

    async def work(provider: Any) -> bool:
        started = asyncio.Event()
        task = asyncio.create_task(consume(await provider.build("qwen3:4b"), started))
        await started.wait()
        if way == "cancel":
            task.cancel()
        await asyncio.wait({task})
        return await asyncio.to_thread(ollama_server.hung_up.wait, 10)

    assert use(make(), work)


def test_the_host_comes_from_the_environment_where_no_section_names_one(
    ollama_server: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", ollama_server.url.removeprefix("http://"))
    assert len(use(make(host=None), lambda provider: provider.models())) == 3
    monkeypatch.setenv("OLLAMA_HOST", "ftp://nowhere")
    assert "OLLAMA_HOST" in make(host=None).missing()


@pytest.mark.parametrize(
    "section", [{"host": "ftp://x"}, {"thinking": "hard"}, {"contextLength": 0}, {"timeout": 0}, {"colour": "red"}]
)
def test_a_bad_section_is_refused(make: Make, section: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make(**section)


def test_a_model_is_described_by_looking_and_an_unknown_one_is_not(make: Make) -> None:
    described = use(make(), lambda provider: provider.describe("llava"))
    assert (described.supports_tools, described.supports_vision, described.context_window) == (False, True, 4096)
    assert use(make(), lambda provider: provider.describe("gone")) is None


@pytest.mark.parametrize(("section", "mode"), [({}, "off"), ({"inline_reasoning": "tags"}, "tags")])
def test_the_section_says_whether_reasoning_stands_in_the_text(make: Make, section: dict[str, str], mode: str) -> None:
    async def told(provider: Any) -> Any:
        return [*await provider.models(), await provider.describe("llava")]

    assert {model.inline_reasoning for model in use(make(**section), told)} == {mode}
