"""The real small model in a real llama.cpp: what the scripted one of the unit tests claims must hold for it too."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pizzabot_builtin_plugins.local.chat import LocalChat
from pizzabot_builtin_plugins.local.provider import LocalProvider, make_provider
from pizzabot_builtin_plugins.local.settings import LocalSettings, default_folder
from pizzabot_hookspecs import Context
from pizzabot_hookspecs.errors import classify

pytestmark = [pytest.mark.real_model, pytest.mark.timeout(600)]


class Quiet:
    def _take(self, event: str, **facts: Any) -> None:
        pass

    debug = info = warning = error = exception = _take


class NoSecrets:
    def resolve(self, reference: object, /) -> str:
        raise AssertionError(reference)


@pytest.fixture
def played(tmp_path: Path) -> Callable[..., None]:
    """Plays a scene with the model; its weights are fetched once, into the user's cache."""
    context = Context(
        name="local", data_root=tmp_path, logger=Quiet(), secrets=NoSecrets(), clock=time.time, redact=lambda text: text
    )

    def play(scene: Callable[[LocalProvider, LocalChat], Awaitable[None]], **settings: Any) -> None:
        async def main() -> None:
            async with make_provider(context, LocalSettings(**settings)) as provider:
                await scene(provider, await provider.build("smollm2-135m"))

        asyncio.run(main())

    return play


def test_it_holds_a_conversation_in_words(played: Callable[..., None]) -> None:
    async def scene(provider: LocalProvider, chat: LocalChat) -> None:
        described = await provider.describe("smollm2-135m")
        assert described is not None
        assert (described.context_window, described.supports_tools) == (8192, False)
        chunks = [chunk async for chunk in chat.astream("Tell me about pizza in two sentences.")]
        said = "".join(chunk.text for chunk in chunks)
        assert "pizza" in said.lower()
        assert len([chunk for chunk in chunks if chunk.text]) > 10
        follow = await chat.ainvoke(
            [("user", "Tell me about pizza in two sentences."), ("assistant", said), ("user", "And?")]
        )
        assert follow.text.strip()
        assert follow.usage_metadata is not None
        assert follow.usage_metadata["input_token_details"]["cache_read"] > 20, "the prefix is not read again"
        path = provider.pool.pids().popitem()[0]
        assert path == str(default_folder() / "smollm2-135m.gguf")

    played(scene, max_output_tokens=100)


def test_its_port_answers_nobody_without_the_key_whatever_the_origin(played: Callable[..., None]) -> None:
    async def scene(provider: LocalProvider, _: LocalChat) -> None:
        [seat] = provider.pool._seats.values()
        assert seat.process is not None
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        async with httpx.AsyncClient(base_url=seat.process.client.base_url, trust_env=False) as stranger:
            for headers in ({}, {"Authorization": "Bearer x"}, {"Origin": "http://evil.example"}):
                for path in ("/v1/chat/completions", "/completion", "/props", "/v1/models", "/tokenize", "/slots"):
                    answer = await stranger.post(path, json=body, headers=headers)
                    assert answer.status_code == 401, path
                    assert answer.headers.get("access-control-allow-origin") not in {"*", "http://evil.example"}
            assert (await stranger.get("/")).status_code == 404, "there is no page"

    played(scene)


def test_it_stops_when_an_answer_is_cancelled(played: Callable[..., None]) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        stream = chat.astream("Count to ten thousand.", ignore_eos=True)
        await anext(stream)
        await stream.aclose()
        began = time.monotonic()
        await chat.ainvoke("Say hi", max_tokens=1)
        # With one place the second answer had to wait for the first, which had 4,000 tokens (30 s and more) to go.
        assert time.monotonic() - began < 10

    played(scene, max_output_tokens=4000, parallel=1)


def test_a_conversation_that_does_not_fit_is_a_context_error(played: Callable[..., None]) -> None:
    async def scene(_: LocalProvider, chat: LocalChat) -> None:
        with pytest.raises(Exception) as caught:
            await chat.ainvoke("pizza " * 600)
        assert classify(caught.value) == "CONTEXT_LENGTH"

    played(scene, context_size=512)


def test_a_killed_model_fails_its_turn_with_a_code_and_answers_the_next(played: Callable[..., None]) -> None:
    async def scene(provider: LocalProvider, chat: LocalChat) -> None:
        stream = chat.astream("Tell me a long story.", ignore_eos=True)
        await anext(stream)
        [pid] = provider.pool.pids().values()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Exception) as caught:
            async for _ in stream:
                pass
        assert classify(caught.value) == "MODEL_UNAVAILABLE"
        assert (await chat.ainvoke("Say hi", max_tokens=4)).text.strip()

    played(scene)


def test_a_damaged_file_is_an_error_with_llama_cpps_reason(played: Callable[..., None], tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    whole = (default_folder() / "smollm2-135m.gguf").read_bytes()
    damaged.write_bytes(whole[: len(whole) - 1000])

    async def scene(provider: LocalProvider, _: LocalChat) -> None:
        with pytest.raises(Exception, match="damaged") as caught:
            await provider.build(str(damaged))
        assert getattr(caught.value, "code", "") == "model_unavailable"
        assert "\n" not in str(caught.value)

    played(scene)
