"""The contract finds faults: each provider here has one, and the check that is meant for it fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from pizzabot.testing import provider_contract
from pizzabot.testing.provider_contract import ModelProviderContract
from pizzabot_hookspecs import Unavailable
from pizzabot_hookspecs.model_providers import ModelDescriptor

SECRET = "sk-the-secret"


class Parrot(BaseChatModel):
    """A model without a fault: says the prompt back, word by word."""

    api_key: str = "hidden"

    @property
    def _llm_type(self) -> str:
        return "parrot"

    def __repr_args__(self) -> Any:
        return []

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind(tools=list(tools), **kwargs)

    def words(self, messages: list[Any]) -> list[str]:
        text = str(messages[-1].text)
        return [f"{word} " for word in (text.split() * (10_000 if text.startswith("Count") else 1))]

    def _generate(self, messages: list[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        text = "".join(self.words(messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])

    async def _astream(
        self, messages: list[Any], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for word in self.words(messages):
            await asyncio.sleep(0)
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))


class Aviary:
    """A provider without a fault."""

    chat: Callable[[], Any] = Parrot

    async def models(self) -> Sequence[ModelDescriptor]:
        return [ModelDescriptor(id="parrot", display_name="Parrot", context_window=1000, supports_tools=True)]

    async def build(self, model: str, /) -> BaseChatModel:
        if model != "parrot":
            raise Unavailable("model_unavailable", f"no model {model}")
        return type(self).chat()


class LosesWords(Parrot):
    async def _astream(self, messages: list[Any], **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        async for chunk in super()._astream(messages, **kwargs):
            if chunk.text != "two ":
                yield chunk


class MixesStreams(Parrot):
    async def _astream(self, messages: list[Any], **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        shared = MIXED
        shared.extend(self.words(messages))
        while shared:
            await asyncio.sleep(0)
            if shared:
                yield ChatGenerationChunk(message=AIMessageChunk(content=shared.pop(0)))


MIXED: list[str] = []


class IgnoresCancel(Parrot):
    async def _astream(self, messages: list[Any], **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        words = iter(self.words(messages))
        yield ChatGenerationChunk(message=AIMessageChunk(content=next(words)))
        for word in words:
            try:
                await asyncio.sleep(0.001)
            except asyncio.CancelledError:
                break
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))


class BindsNoTools(Parrot):
    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        raise NotImplementedError


class ShowsItsKey(Parrot):
    def __repr_args__(self) -> Any:
        return [("api_key", SECRET)]


def with_chat(chat: type[Parrot]) -> type[Aviary]:
    return type(f"With{chat.__name__}", (Aviary,), {"chat": chat})


def listing(*models: Any) -> type[Aviary]:
    async def listed(_self: Any) -> Sequence[Any]:
        return models

    return type("Lists", (Aviary,), {"models": listed})


def failing(error: Exception) -> type[Aviary]:
    async def raises(_self: Any) -> Sequence[Any]:
        raise error

    return type("Fails", (Aviary,), {"models": raises})


class NeverLists(Aviary):
    async def models(self) -> Sequence[ModelDescriptor]:
        await asyncio.Event().wait()
        return []


class BuildsAnything(Aviary):
    async def build(self, model: str, /) -> BaseChatModel:
        return Parrot()


class FailsInRiddles(Aviary):
    async def build(self, model: str, /) -> BaseChatModel:
        class Riddle(Parrot):
            async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
                raise RuntimeError("42")

        return Parrot() if model == "parrot" else Riddle()


class IsNeverReady(Aviary):
    def missing(self) -> str | None:
        return "a key"


class BuildsNoModel(Aviary):
    async def build(self, model: str, /) -> Any:
        return "parrot"


class Contract(ModelProviderContract):
    model = "parrot"
    unknown_model = "dodo"
    secret = SECRET
    made: type[Aviary] = Aviary
    failing_made: type[Aviary] = failing(Unavailable("network", "the aviary does not answer"))

    def provider(self) -> Any:
        return self.made()

    def failing_provider(self) -> Any:
        return self.failing_made()


class TestAProviderWithoutAFault(Contract):
    pass


DESCRIPTORS = "test_models_are_descriptors_with_unique_ids_and_positive_numbers"
IN_TIME = "test_models_answers_within_five_seconds"
STREAMS = "test_a_built_model_streams_what_it_answers"
TWO = "test_two_streams_at_once_do_not_mix"
CANCEL = "test_cancelling_ends_an_answer"
UNKNOWN = "test_an_unknown_model_is_refused_when_built_or_with_a_classified_error_when_used"
TOOLS = "test_the_descriptor_is_honest_about_tools"
FAILING = "test_a_failing_catalogue_says_why_in_a_code_and_no_secret"
READY = "test_it_is_usable_as_it_is_configured"
PRINTED = "test_nothing_secret_shows_in_what_can_be_printed"
A, B = (ModelDescriptor(id="a", display_name=name) for name in ("A", "B"))


@pytest.mark.parametrize(
    ("check", "faulty"),
    [
        (DESCRIPTORS, listing(A, B)),
        (DESCRIPTORS, listing({"id": "a"})),
        (DESCRIPTORS, listing(ModelDescriptor(id="a", display_name="A", context_window=0))),
        (DESCRIPTORS, listing(ModelDescriptor(id=" ", display_name="A"))),
        (DESCRIPTORS, listing(ModelDescriptor(id="a", display_name="A", max_output_tokens=True))),
        (IN_TIME, NeverLists),
        (STREAMS, with_chat(LosesWords)),
        (STREAMS, BuildsNoModel),
        (TWO, with_chat(MixesStreams)),
        (CANCEL, with_chat(IgnoresCancel)),
        (UNKNOWN, BuildsAnything),
        (UNKNOWN, FailsInRiddles),
        (TOOLS, with_chat(BindsNoTools)),
        (READY, IsNeverReady),
        (PRINTED, with_chat(ShowsItsKey)),
    ],
)
def test_a_faulty_provider_fails_the_check_that_is_meant_for_it(
    monkeypatch: pytest.MonkeyPatch, check: str, faulty: type[Aviary]
) -> None:
    monkeypatch.setattr(provider_contract, "CATALOGUE_SECONDS", 0.2)
    monkeypatch.setattr(Contract, "made", faulty)
    MIXED.clear()
    with pytest.raises(AssertionError):
        getattr(Contract(), check)()


@pytest.mark.parametrize(
    "faulty",
    [
        failing(RuntimeError("no")),
        failing(Unavailable("oops", "a code of its own")),
        failing(Unavailable("authentication", f"the endpoint says: bad key {SECRET}")),
        failing(Unavailable("network", "two\nlines")),
        failing(Unavailable("network", " ")),
        Aviary,
    ],
)
def test_a_faulty_failure_of_the_catalogue_is_found(monkeypatch: pytest.MonkeyPatch, faulty: type[Aviary]) -> None:
    monkeypatch.setattr(Contract, "failing_made", faulty)
    with pytest.raises(AssertionError):
        getattr(Contract(), FAILING)()


def test_a_contract_without_a_provider_says_what_to_define() -> None:
    class Empty(ModelProviderContract):
        model = "x"

    with pytest.raises(TypeError, match="provider"):
        Empty().test_a_built_model_streams_what_it_answers()
