"""What the openai provider does beyond the contract: settings, keys, catalogue codes, errors, output cap, modes."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from pydantic import ValidationError

from pizzabot_builtin_plugins.openai import pizzabot_model_providers
from pizzabot_builtin_plugins.openai.catalogue import DEADLINE_SECONDS, MAX_BODY_BYTES
from pizzabot_hookspecs import InvalidRequest, Unavailable
from pizzabot_hookspecs.errors import classify

KEY = "sk-very-secret-key-of-the-test"
Make = Callable[..., Any]


@pytest.fixture
def make(openai_server: Any, make_context: Callable[..., Any]) -> Make:
    [offer] = pizzabot_model_providers()
    assert offer.settings is not None
    settings_of = offer.settings.model_validate

    def provider(environ: dict[str, str] | None = None, **section: Any) -> Any:
        return offer.create(make_context("work", **(environ or {})), settings_of(section))

    return provider


def use(provider: Any, work: Callable[[Any], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with provider:
            return await work(provider)

    return asyncio.run(asyncio.wait_for(run(), 60))


def answer(provider: Any, prompt: str = "hello there", model: str = "gpt-x") -> Any:
    async def work(entered: Any) -> Any:
        return await (await entered.build(model)).ainvoke(prompt)

    return use(provider, work)


def stream(provider: Any, prompt: str = "hello there") -> list[Any]:
    async def work(entered: Any) -> list[Any]:
        chat = await entered.build("gpt-x")
        return [chunk async for chunk in chat.astream(prompt)]

    return list(use(provider, work))


def scripted(server: Any, path: str, *answers: Callable[[Any], Any]) -> None:
    """Answer the first requests of `path` with `answers`, the rest as usual."""
    left = list(answers)

    def next_answer(request: Any) -> bool:
        if not left:
            return False
        left.pop(0)(request)
        return True

    server.behaviour[path] = next_answer


def error(status: int, message: str, **more: Any) -> Callable[[Any], Any]:
    return lambda request: request.whole(status, {"error": {"message": message, **more}})


CHAT = "/v1/chat/completions"


def test_the_list_holds_chat_models_only_and_says_no_more_than_it_knows(openai_server: Any, make: Make) -> None:
    models = use(make(base_url=openai_server.url + "/v1"), lambda provider: provider.models())
    assert [(model.id, model.supports_tools, model.context_window) for model in models] == [
        ("gpt-x", None, None),
        ("gpt-y", None, None),
    ]


@pytest.mark.parametrize("field", [{"max_model_len": 4096}, {"context_length": 4096}, {"meta": {"n_ctx": 4096}}])
def test_a_context_window_that_the_endpoint_tells_reaches_descriptor_and_model(
    openai_server: Any, make: Make, field: dict[str, Any]
) -> None:
    scripted(openai_server, "/v1/models", lambda request: request.whole(200, {"data": [{"id": "m", **field}]}))

    async def work(provider: Any) -> tuple[Any, Any]:
        [model] = await provider.models()
        return model, await provider.build("m")

    model, chat = use(make(base_url=openai_server.url + "/v1"), work)
    assert model.context_window == 4096
    assert chat.profile["max_input_tokens"] == 4096


def listing_error(provider: Any) -> Unavailable:
    with pytest.raises(Unavailable) as caught:
        use(provider, lambda entered: entered.models())
    assert KEY not in caught.value.detail
    assert "secret-words" not in caught.value.detail
    return caught.value


@pytest.mark.parametrize(
    ("answer_with", "code"),
    [
        (error(401, f"secret-words {KEY}"), "authentication"),
        (error(403, "secret-words"), "authentication"),
        (error(500, "secret-words"), "endpoint"),
        (error(429, "secret-words"), "endpoint"),
        (lambda request: request.whole(200, b"<html>secret-words</html>"), "endpoint"),
        (lambda request: request.whole(200, {"data": "secret-words"}), "endpoint"),
        (lambda request: request.whole(200, b"[" * 100_000), "endpoint"),
        (lambda request: request.whole(200, b" " * (MAX_BODY_BYTES + 1)), "endpoint"),
    ],
)
def test_a_catalogue_that_fails_says_which_way_without_the_endpoints_words(
    openai_server: Any, make: Make, answer_with: Any, code: str
) -> None:
    scripted(openai_server, "/v1/models", answer_with)
    assert listing_error(make(base_url=openai_server.url + "/v1", api_key=KEY)).code == code


def test_a_dead_endpoint_is_a_network_error(make: Make) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    failure = listing_error(make(base_url=f"http://127.0.0.1:{port}/v1", api_key=KEY))
    assert failure.code == "network"
    assert f"127.0.0.1:{port}" in failure.detail


def test_an_endpoint_that_says_nothing_is_a_network_error_after_five_seconds(
    openai_server: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DEADLINE_SECONDS == 5
    monkeypatch.setattr("pizzabot_builtin_plugins.openai.catalogue.DEADLINE_SECONDS", 0.2)
    scripted(openai_server, "/v1/models", lambda request: request.hang())
    began = time.monotonic()
    assert listing_error(make(base_url=openai_server.url + "/v1")).code == "network"
    assert time.monotonic() - began < 3


def test_without_a_key_openai_itself_is_not_usable_and_says_what_to_do(make: Make) -> None:
    provider = make()
    assert "OPENAI_API_KEY" in provider.missing()
    assert "[models.work]" in provider.missing()
    assert listing_error(provider).code == "credentials"
    with pytest.raises(Unavailable):
        use(make(), lambda entered: entered.build("gpt-x"))


def test_an_endpoint_of_ones_own_needs_no_key_and_never_gets_the_environments(
    openai_server: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    provider = make({"OPENAI_API_KEY": KEY}, base_url=openai_server.url + "/v1")
    assert provider.missing() is None

    async def work(entered: Any) -> None:
        await entered.models()
        await (await entered.build("gpt-x")).ainvoke("hi")

    use(provider, work)
    assert len(openai_server.requests) == 2
    assert all(KEY not in str(headers) for _, _, headers, _ in openai_server.requests)


def test_the_environment_gives_address_and_key_where_no_section_does(
    openai_server: Any, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url + "/v1/")
    assert str(answer(make({"OPENAI_API_KEY": KEY})).text) == "hello there "
    [(_, path, headers, _)] = openai_server.requests
    assert (path, headers["authorization"]) == (CHAT, f"Bearer {KEY}")


def test_an_address_of_the_environment_that_is_none_is_said(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "nonsense")
    assert make({"OPENAI_API_KEY": KEY}).missing().startswith("the environment variable OPENAI_BASE_URL")


@pytest.mark.parametrize(
    "section",
    [
        {"base_url": "ftp://host"},
        {"base_url": "http://user:password@host/v1"},
        {"base_url": "http://host/v1?key=x"},
        {"api_mode": "telepathy"},
        {"max_tokens": 0},
        {"timeout": 0},
        {"max_retries": 6},
        {"colour": "red"},
    ],
)
def test_a_bad_section_is_refused(make: Make, section: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make(**section)


def test_the_budget_goes_out_under_the_name_that_compatible_servers_know(openai_server: Any, make: Make) -> None:
    answer(make(base_url=openai_server.url + "/v1"))
    [body] = openai_server.bodies(CHAT)
    assert body["max_tokens"] == 8192
    assert "max_completion_tokens" not in body


def test_the_responses_mode_speaks_the_other_protocol(openai_server: Any, make: Make) -> None:
    provider = make(base_url=openai_server.url + "/v1", api_mode="responses")
    with pytest.raises(Exception, match="no model gpt-x"):
        answer(provider)
    assert [path for _, path, _, _ in openai_server.requests] == ["/v1/responses"]


TOO_MANY = error(400, "max_tokens is too large; max_total_tokens 100 for this model")


def test_a_learned_output_cap_is_used_once_more_before_any_output_and_remembered(
    openai_server: Any, make: Make
) -> None:
    scripted(openai_server, CHAT, TOO_MANY)

    async def work(provider: Any) -> tuple[str, Any]:
        chat = await provider.build("gpt-x")
        text = "".join([str(chunk.text) async for chunk in chat.astream("hello there")])
        return text, await provider.build("gpt-x")

    text, again = use(make(base_url=openai_server.url + "/v1"), work)
    assert text == "hello there "
    assert [body["max_tokens"] for body in openai_server.bodies(CHAT)] == [8192, 100]
    assert again.max_tokens == 100


def test_a_cap_is_tried_once_only(openai_server: Any, make: Make) -> None:
    scripted(openai_server, CHAT, TOO_MANY, error(400, "max_tokens is too large; max_total_tokens 50"))
    with pytest.raises(Exception, match="refuses the request"):
        answer(make(base_url=openai_server.url + "/v1"))
    assert len(openai_server.bodies(CHAT)) == 2


def test_after_output_nothing_is_asked_again(openai_server: Any, make: Make, openai_event_of: Any) -> None:
    def begins_then_fails(request: Any) -> None:
        request.begin("text/event-stream")
        request.piece(openai_event_of({"content": "hello "}))
        request.piece('data: {"error": {"message": "max_tokens is too large; max_total_tokens 100"}}\n\n')
        request.end()

    scripted(openai_server, CHAT, begins_then_fails)
    with pytest.raises(Exception, match="max_total_tokens 100"):
        stream(make(base_url=openai_server.url + "/v1"))
    assert len(openai_server.bodies(CHAT)) == 1


@pytest.mark.parametrize(
    ("answer_with", "code", "words"),
    [
        (error(401, f"Incorrect API key provided: {KEY}"), "AUTH_EXPIRED", "check api_key"),
        (error(404, "The model `gpt-x` does not exist"), "MODEL_UNAVAILABLE", "no model gpt-x"),
        (error(429, "You exceeded your current quota"), "RATE_LIMIT", "HTTP 429"),
        (error(400, "no", code="context_length_exceeded"), "CONTEXT_LENGTH", "too long"),
        (error(400, "the maximum context length is 10"), "CONTEXT_LENGTH", "too long"),
        (error(500, "boom"), "MODEL_UNAVAILABLE", "HTTP 500"),
        (lambda request: request.whole(502, b"<html>bad gateway</html>", "text/html"), "MODEL_UNAVAILABLE", "HTTP 502"),
        (error(400, "nonsense"), "GENERAL", "nonsense"),
    ],
)  # fmt: skip
def test_a_failed_call_says_what_happened_in_a_code_and_a_sentence(
    openai_server: Any, make: Make, answer_with: Any, code: str, words: str
) -> None:
    scripted(openai_server, CHAT, answer_with)
    with pytest.raises(Exception, match=r".") as caught:
        answer(make(base_url=openai_server.url + "/v1", api_key=KEY, max_retries=0))
    assert classify(caught.value) == code
    assert words in str(caught.value)
    assert KEY not in str(caught.value)
    assert "<html" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_overflow_keeps_the_class_that_summarisation_reacts_to(openai_server: Any, make: Make) -> None:
    scripted(openai_server, CHAT, error(400, "maximum context length is 10", code="context_length_exceeded"))
    with pytest.raises(ContextOverflowError):
        answer(make(base_url=openai_server.url + "/v1"))


def test_a_provider_that_does_not_answer_is_a_timeout(openai_server: Any, make: Make) -> None:
    scripted(openai_server, CHAT, lambda request: request.hang())
    began = time.monotonic()
    with pytest.raises(Exception, match="does not answer in time") as caught:
        stream(make(base_url=openai_server.url + "/v1", timeout=0.3, max_retries=0))
    assert classify(caught.value) == "TIMEOUT"
    assert time.monotonic() - began < 10


def test_a_provider_that_falls_silent_in_the_middle_is_a_timeout(
    openai_server: Any, make: Make, openai_event_of: Any
) -> None:
    def falls_silent(request: Any) -> None:
        request.begin("text/event-stream")
        request.piece(openai_event_of({"content": "hello "}))
        request.hang()

    scripted(openai_server, CHAT, falls_silent)
    with pytest.raises(Exception, match="does not answer in time") as caught:
        stream(make(base_url=openai_server.url + "/v1", timeout=0.3))
    assert classify(caught.value) == "TIMEOUT"
    assert len(openai_server.bodies(CHAT)) == 1


def test_a_connection_that_breaks_in_the_middle_is_a_stream_error(
    openai_server: Any, make: Make, openai_event_of: Any
) -> None:
    def breaks_off(request: Any) -> None:
        request.begin("text/event-stream")
        request.piece(openai_event_of({"content": "hello "}))
        request.close_connection = True

    scripted(openai_server, CHAT, breaks_off)
    with pytest.raises(Exception, match="broke off") as caught:
        stream(make(base_url=openai_server.url + "/v1"))
    assert classify(caught.value) == "STREAM_ERROR"


def test_a_dead_endpoint_is_a_model_that_is_unavailable(make: Make) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(Exception, match="cannot be reached") as caught:
        answer(make(base_url=f"http://127.0.0.1:{port}/v1", max_retries=0))
    assert classify(caught.value) == "MODEL_UNAVAILABLE"


def test_retries_are_bounded_by_the_setting(openai_server: Any, make: Make) -> None:
    def once_more(request: Any) -> None:
        request.send_response(500)
        request.send_header("retry-after-ms", "1")
        request.send_header("content-length", "0")
        request.end_headers()

    scripted(openai_server, CHAT, *[once_more] * 10)
    with pytest.raises(Exception, match="HTTP 500"):
        answer(make(base_url=openai_server.url + "/v1", max_retries=1))
    assert len(openai_server.bodies(CHAT)) == 2


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
def test_reasoning_of_compatible_servers_is_a_reasoning_block(
    openai_server: Any, make: Make, openai_event_of: Any, name: str
) -> None:
    def thinks(request: Any) -> None:
        request.begin("text/event-stream")
        request.piece(openai_event_of({name: "let me see"}))
        request.piece(openai_event_of({"content": "four"}))
        request.piece(openai_event_of({}, finish="stop") + "data: [DONE]\n\n")
        request.end()

    scripted(openai_server, CHAT, thinks)
    chunks = stream(make(base_url=openai_server.url + "/v1"))
    blocks = [block for chunk in chunks for block in chunk.content_blocks]
    assert [block["reasoning"] for block in blocks if block["type"] == "reasoning"] == ["let me see"]
    assert "".join(str(chunk.text) for chunk in chunks) == "four"


def test_a_streamed_tool_call_arrives_whole(openai_server: Any, make: Make, openai_event_of: Any) -> None:
    def calls(request: Any) -> None:
        request.begin("text/event-stream")
        function = {"name": "look_up", "arguments": ""}
        request.piece(
            openai_event_of({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]})
        )
        for piece in ('{"wo', 'rd": "x"}'):
            request.piece(openai_event_of({"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}))
        request.piece(openai_event_of({}, finish="tool_calls") + "data: [DONE]\n\n")
        request.end()

    scripted(openai_server, CHAT, calls)
    chunks = stream(make(base_url=openai_server.url + "/v1"))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert whole.tool_calls == [{"name": "look_up", "args": {"word": "x"}, "id": "c", "type": "tool_call"}]


def test_stopping_reaches_the_endpoint(openai_server: Any, make: Make) -> None:
    async def work(provider: Any) -> bool:
        chat = await provider.build("gpt-x")
        task = asyncio.create_task(_first_chunk_then_on(chat, started := asyncio.Event()))
        await started.wait()
        task.cancel()
        await asyncio.wait({task})
        return await asyncio.to_thread(openai_server.hung_up.wait, 10)

    assert use(make(base_url=openai_server.url + "/v1"), work)


async def _first_chunk_then_on(chat: Any, started: asyncio.Event) -> None:
    async for _ in chat.astream("Count to a thousand"):
        started.set()


def test_a_model_id_of_no_or_endless_characters_is_refused(openai_server: Any, make: Make) -> None:
    for model in ("", " ", "x" * 301):
        with pytest.raises(Unavailable) as caught:
            use(make(base_url=openai_server.url + "/v1"), lambda provider, model=model: provider.build(model))
        assert caught.value.code == "model_unavailable"


def test_nothing_of_a_built_model_shows_the_key(openai_server: Any, make: Make) -> None:
    chat = use(make(base_url=openai_server.url + "/v1", api_key=KEY), lambda provider: provider.build("gpt-x"))
    assert KEY not in json.dumps(chat.model_dump(mode="json", exclude={"http_async_client"}), default=repr)
    assert KEY not in repr(InvalidRequest("x", repr(chat)))


@pytest.mark.parametrize(("section", "mode"), [({}, "off"), ({"inline_reasoning": "prefilled"}, "prefilled")])
def test_the_section_says_of_every_model_whether_reasoning_stands_in_its_text(
    openai_server: Any, make: Make, section: dict[str, str], mode: str
) -> None:
    async def told(provider: Any) -> Any:
        return [*await provider.models(), await provider.describe("not-listed")]

    described = use(make(base_url=openai_server.url + "/v1", **section), told)
    assert {model.inline_reasoning for model in described} == {mode}
    assert described[-1].id == "not-listed"


def test_an_endpoint_without_a_list_is_described_as_configured(make: Make) -> None:
    provider = make(base_url="http://127.0.0.1:9/v1", inline_reasoning="tags")
    assert use(provider, lambda entered: entered.describe("m")).inline_reasoning == "tags"
