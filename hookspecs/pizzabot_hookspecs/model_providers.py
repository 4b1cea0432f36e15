"""Kind `model_providers`: where chat models come from. Those that are configured, or need no configuration, act."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from pizzabot_hookspecs.offers import Offer, hookspec

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


class InlineReasoning(StrEnum):
    """Whether a model writes its reasoning into its text, where the host cuts it out (spec/12 §1.1).

    `tags`       between `<think>` and `</think>` at the start of the text or of a line
    `prefilled`  the same, and the opener may be missing: all before a lone closer is reasoning
    """

    OFF = "off"
    TAGS = "tags"
    PREFILLED = "prefilled"


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelDescriptor:
    """What is known of one model. None means unknown, which is not the same as no.

    `id` is the provider's own name of the model, without the use (`gpt-5`, not `work:gpt-5`); it may contain colons.
    `context_window` and `max_output_tokens` are tokens, positive. `supports_tools=False` makes the runtime hold a plain
    conversation with a short prompt. `inline_reasoning` is cut out by the host in a wrapper round what `build` returns.
    """

    id: str
    display_name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    supports_tools: bool | None = None
    supports_vision: bool | None = None
    inline_reasoning: InlineReasoning = InlineReasoning.OFF


class ModelProvider(Protocol):
    """A source of chat models, made by an offer's `create` for one use (one section of `[models]`)."""

    async def models(self) -> Sequence[ModelDescriptor]:
        """The models to suggest. A catalogue, not a gate: an id that is missing here may still be built.

        Raises `Unavailable` with one of the codes credentials, authentication, network, endpoint, unavailable
        (spec/06 §2); `detail` never carries a raw answer of the endpoint, which may hold secrets. Deadline: 5 s.
        """
        ...

    async def build(self, model: str, /) -> BaseChatModel:
        """A chat model for the provider's own id `model`, ready to be called from the host's loop.

        Raises `Unavailable` (`model_unavailable`, or the provider's own code) saying how to get it. Called once per
        model and use; the host keeps the result.
        """
        ...


@runtime_checkable
class DescribesModels(Protocol):
    """Optional: a provider that knows a model better by looking at it than by listing (a file on disk, say)."""

    async def describe(self, model: str, /) -> ModelDescriptor | None: ...


@runtime_checkable
class NeedsConfiguration(Protocol):
    """Optional: whether the use is usable as it is configured; `None` is yes, a text is why not and what to do."""

    def missing(self) -> str | None: ...


@hookspec
def pizzabot_model_providers() -> list[Offer[ModelProvider]]:  # type: ignore[empty-body]
    """Called once, when plugins are loaded. Return the providers this plugin has; nothing is created by it.

    An offer's name is the `use` of a `[models.<use>]` section and, without a section, the prefix of a model id::

        @hookimpl
        def pizzabot_model_providers() -> list[Offer[ModelProvider]]:
            return [Offer(name="parrot", summary="repeats what you say", create=lambda context, settings: Parrot())]
    """
