"""`ModelProviderContract`: what every model provider keeps to, as tests to subclass.

    class TestParrot(ModelProviderContract):
        model = "parrot"
        unknown_model = "dodo"

        def provider(self) -> Parrot:
            return Parrot()

Each test makes its own provider, enters it if it is an async context manager, and runs in a loop of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.errors import RunErrorCode, classify
from pizzabot_hookspecs.model_providers import DescribesModels, ModelDescriptor, ModelProvider, NeedsConfiguration

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

CATALOGUE_CODES = frozenset({"credentials", "authentication", "network", "endpoint", "unavailable"})
"""The codes that a failing `models()` may raise (spec/06 §2)."""

CATALOGUE_SECONDS = 5.0
ANSWER_SECONDS = 60.0
CANCEL_SECONDS = 5.0

A_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look_up",
        "description": "Looks a word up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
    },
}


class ModelProviderContract:
    """Subclass it with a name that starts with `Test`; set `model` and return a provider from `provider`.

    `prompt`, `other_prompt`  what is said; two texts that a deterministic model answers differently
    `long_prompt`             one whose answer is long enough to be interrupted
    `deterministic`           whether the same prompt gives the same text: then streams are compared word for word
    `unknown_model`           an id that the provider cannot serve; None where it has to try every id
    `secret`                  a text of the provider's configuration that must show nowhere
    """

    model: ClassVar[str]
    unknown_model: ClassVar[str | None] = None
    prompt: ClassVar[str] = "Say this: one two three four"
    other_prompt: ClassVar[str] = "Say this: apples pears plums cherries"
    long_prompt: ClassVar[str] = "Count from one to a thousand, in words."
    deterministic: ClassVar[bool] = True
    secret: ClassVar[str] = ""

    def provider(self) -> ModelProvider:
        """A provider that works. It may be an async context manager."""
        raise TypeError(f"{type(self).__name__} has to define provider(self)")

    def failing_provider(self) -> ModelProvider | None:
        """One whose catalogue cannot be had (wrong key, dead endpoint); None where that cannot be."""
        return None

    def test_models_are_descriptors_with_unique_ids_and_positive_numbers(self) -> None:
        async def check(provider: ModelProvider) -> None:
            models = await _listed(provider)
            assert all(isinstance(model, ModelDescriptor) for model in models), (
                "models() returns ModelDescriptor objects"
            )
            ids = [model.id for model in models]
            assert len(ids) == len(set(ids)), f"an id is listed twice: {sorted(ids)}"
            for model in models:
                _check_descriptor(model)

        self._run(check)

    def test_models_answers_within_five_seconds(self) -> None:
        async def check(provider: ModelProvider) -> None:
            began = time.monotonic()
            await _listed(provider)
            assert time.monotonic() - began <= CATALOGUE_SECONDS, f"models() takes more than {CATALOGUE_SECONDS:g} s"

        self._run(check)

    def test_it_is_usable_as_it_is_configured(self) -> None:
        async def check(provider: ModelProvider) -> None:
            if isinstance(provider, NeedsConfiguration):
                missing = provider.missing()
                assert missing is None, f"missing() of a working provider says {missing!r}"

        self._run(check)

    def test_a_built_model_streams_what_it_answers(self) -> None:
        async def check(provider: ModelProvider) -> None:
            chat = await _built(provider, self.model)
            pieces = await _streamed(chat, self.prompt)
            text = "".join(pieces)
            assert text, "the stream has no text"
            answer = str((await asyncio.wait_for(chat.ainvoke(self.prompt), ANSWER_SECONDS)).text)
            assert answer, "the whole answer has no text"
            if self.deterministic:
                assert text == answer, f"the chunks say {text!r}, the whole answer {answer!r}"

        self._run(check)

    def test_two_streams_at_once_do_not_mix(self) -> None:
        async def check(provider: ModelProvider) -> None:
            chat = await _built(provider, self.model)
            prompts = (self.prompt, self.other_prompt)
            together = await asyncio.gather(*(_streamed(chat, prompt) for prompt in prompts))
            for prompt, pieces in zip(prompts, together, strict=True):
                assert "".join(pieces), f"no text for {prompt!r} beside another stream"
                if self.deterministic:
                    alone = await _streamed(chat, prompt)
                    assert "".join(pieces) == "".join(alone), (
                        f"{prompt!r} is answered differently beside another stream"
                    )

        self._run(check)

    def test_cancelling_ends_an_answer(self) -> None:
        async def check(provider: ModelProvider) -> None:
            chat = await _built(provider, self.model)
            first = asyncio.Event()
            task = asyncio.create_task(_consume(chat, self.long_prompt, first))
            waiting = asyncio.create_task(first.wait())
            await asyncio.wait({task, waiting}, timeout=ANSWER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            assert first.is_set(), "no chunk came that could be interrupted"
            assert not task.done(), "the answer to long_prompt is not one of many chunks"
            task.cancel()
            await asyncio.wait({task}, timeout=CANCEL_SECONDS)
            assert task.done(), f"the answer goes on {CANCEL_SECONDS:g} s after it was cancelled"
            assert task.cancelled(), "a cancelled answer ended as if nothing had happened"

        self._run(check)

    def test_an_unknown_model_is_refused_when_built_or_with_a_classified_error_when_used(self) -> None:
        async def check(provider: ModelProvider) -> None:
            if self.unknown_model is None:
                return
            try:
                chat = await _built(provider, self.unknown_model)
            except Unavailable as error:
                self._check_says_nothing_secret(error)
                return
            try:
                await asyncio.wait_for(chat.ainvoke(self.prompt), ANSWER_SECONDS)
            except Exception as error:  # noqa: BLE001 - which one it is, is what is judged
                code = classify(error)
                assert code != RunErrorCode.GENERAL, f"{type(error).__name__} ({error}) is classified as {code} only"
                self._check_says_nothing_secret(error)
            else:
                raise AssertionError(f"the unknown model {self.unknown_model!r} answers")

        self._run(check)

    def test_the_descriptor_is_honest_about_tools(self) -> None:
        async def check(provider: ModelProvider) -> None:
            descriptor = await _described(provider, self.model)
            if descriptor is None or not descriptor.supports_tools:
                return
            chat = await _built(provider, self.model)
            try:
                bound = chat.bind_tools([A_TOOL])
            except NotImplementedError:
                raise AssertionError(f"{self.model} supports_tools, but bind_tools is not implemented") from None
            answer = await asyncio.wait_for(bound.ainvoke(self.prompt), ANSWER_SECONDS)
            assert answer.text or answer.tool_calls, "with tools bound the answer is empty"

        self._run(check)

    def test_a_failing_catalogue_says_why_in_a_code_and_no_secret(self) -> None:
        async def check(provider: ModelProvider) -> None:
            try:
                await _listed(provider)
            except Unavailable as error:
                assert error.code in CATALOGUE_CODES, f"{error.code!r} is none of {sorted(CATALOGUE_CODES)}"
                assert error.detail.strip(), "the detail is empty"
                assert "\n" not in error.detail, "the detail is one line"
                self._check_says_nothing_secret(error)
            except Exception as error:
                raise AssertionError(f"models() fails with {type(error).__name__} instead of Unavailable") from error
            else:
                raise AssertionError("the catalogue of failing_provider() does not fail")

        failing = self.failing_provider()
        if failing is not None:
            _run_with(failing, check)

    def test_nothing_secret_shows_in_what_can_be_printed(self) -> None:
        async def check(provider: ModelProvider) -> None:
            chat = await _built(provider, self.model)
            shown = [repr(provider), str(provider), repr(chat), str(chat), *map(repr, await _listed(provider))]
            assert not self.secret or not any(self.secret in text for text in shown), "a secret shows in a repr"

        self._run(check)

    def _run(self, check: Callable[[ModelProvider], Awaitable[None]]) -> None:
        _run_with(self.provider(), check)

    def _check_says_nothing_secret(self, error: BaseException) -> None:
        shown = f"{error!r} {error} {getattr(error, 'detail', '')} {getattr(error, 'fields', '')}"
        assert not self.secret or self.secret not in shown, "the error shows a secret"


def _run_with(provider: ModelProvider, check: Callable[[ModelProvider], Awaitable[None]]) -> None:
    async def run() -> None:
        async with _entered(provider) as entered:
            await check(entered)

    asyncio.run(run())


@asynccontextmanager
async def _entered(provider: Any) -> AsyncIterator[ModelProvider]:
    async with AsyncExitStack() as stack:
        if hasattr(type(provider), "__aenter__"):
            await stack.enter_async_context(provider)
        yield provider


async def _listed(provider: ModelProvider) -> Sequence[ModelDescriptor]:
    try:
        return await asyncio.wait_for(provider.models(), CATALOGUE_SECONDS)
    except TimeoutError:
        raise AssertionError(f"models() has not answered after {CATALOGUE_SECONDS:g} s") from None


async def _described(provider: ModelProvider, model: str) -> ModelDescriptor | None:
    if isinstance(provider, DescribesModels) and (descriptor := await provider.describe(model)) is not None:
        _check_descriptor(descriptor)
        return descriptor
    return next((descriptor for descriptor in await _listed(provider) if descriptor.id == model), None)


async def _built(provider: ModelProvider, model: str) -> BaseChatModel:
    from langchain_core.language_models import BaseChatModel

    chat = await asyncio.wait_for(provider.build(model), ANSWER_SECONDS)
    assert isinstance(chat, BaseChatModel), f"build returns a {type(chat).__name__}, not a BaseChatModel"
    return chat


async def _streamed(chat: BaseChatModel, prompt: str) -> list[str]:
    async with asyncio.timeout(ANSWER_SECONDS):
        return [str(chunk.text) async for chunk in chat.astream(prompt)]


async def _consume(chat: BaseChatModel, prompt: str, first: asyncio.Event) -> None:
    async for chunk in chat.astream(prompt):
        if chunk.text:
            first.set()


def _check_descriptor(model: ModelDescriptor) -> None:
    assert isinstance(model.id, str), f"the id {model.id!r} is not text"
    assert model.id.strip(), "an id is empty"
    assert model.display_name.strip(), f"{model.id} has no display_name"
    for name in ("context_window", "max_output_tokens"):
        value = getattr(model, name)
        assert value is None or (type(value) is int and value > 0), f"{model.id}: {name} is {value!r}, not positive"
    for name in ("supports_tools", "supports_vision"):
        assert getattr(model, name) in (True, False, None), f"{model.id}: {name} is {getattr(model, name)!r}"
