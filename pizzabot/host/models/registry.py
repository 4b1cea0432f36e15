"""Model ids to chat models: `<use>:<model>`, where a use is a section `[models.<use>]` or a provider's own name.

A provider is made once per use, a chat model once per id, both off the loop and both kept. A failure is not kept: the
next turn tries again. An explicitly requested model never falls back to another one (spec/02 §4).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pizzabot.host.models.advice import advice
from pizzabot.host.models.catalogue import Catalogue
from pizzabot_hookspecs import Logger, PizzabotError, Unavailable
from pizzabot_hookspecs.agent_runtimes import ChosenModel
from pizzabot_hookspecs.model_providers import (
    DescribesModels,
    InlineReasoning,
    ModelDescriptor,
    ModelProvider,
    NeedsConfiguration,
)
from pizzabot_hookspecs.wire import JsonValue

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

MAX_BUILT_MODELS = 16
"""Chat models kept ready, the least recently used goes first."""

MakeProvider = Callable[[str], Awaitable[ModelProvider]]
"""Makes the provider of a use; raises a `PizzabotError` that says why it cannot be had."""


class ModelRegistry:
    """Owned by one host, used from its loop."""

    def __init__(
        self,
        *,
        make_provider: MakeProvider,
        uses: Callable[[], Sequence[str]],
        default: str | None,
        fallback: Sequence[str],
        catalogue: Catalogue,
        logger: Logger,
    ) -> None:
        self._make_provider = make_provider
        self._uses = uses
        self.default = default
        self._fallback = tuple(fallback)
        self.answering: str | None = None
        """What the default last meant: itself, or the fallback that stands in, and then `passed_over` says why."""
        self.passed_over: PizzabotError | None = None
        self._catalogue = catalogue
        self._logger = logger
        self._providers: dict[str, asyncio.Task[ModelProvider]] = {}
        self._built: OrderedDict[str, ChosenModel] = OrderedDict()
        self._building: dict[str, asyncio.Task[ChosenModel]] = {}

    async def resolve(self, model_id: str | None, /) -> ChosenModel:
        """The model, built. None means the default, then the fallbacks in order.

        Raises `Unavailable`: `no_model`, `malformed_model_id`, `unregistered_provider`, or the provider's own code.
        """
        if model_id is not None:
            return await self._chosen(model_id)
        candidates = [candidate for candidate in (self.default, *self._fallback) if candidate is not None]
        if not candidates:
            raise Unavailable("no_model", advice())
        failures: list[PizzabotError] = []
        for candidate in candidates:
            try:
                chosen = await self._chosen(candidate)
            except PizzabotError as error:
                failures.append(error)
                self._logger.warning("models.unavailable", model=candidate, code=error.code, detail=error.detail)
            else:
                self.answering = chosen.id
                self.passed_over = failures[0] if failures else None
                return chosen
        raise failures[0]

    async def provider(self, use: str) -> ModelProvider:
        """The provider of a use, made on first need."""
        task = self._providers.get(use)
        if task is None:
            task = self._providers[use] = asyncio.create_task(self._made(use), name=f"provider {use}")
        return await asyncio.shield(task)

    async def _made(self, use: str) -> ModelProvider:
        try:
            return await self._make_provider(use)
        except BaseException:
            self._providers.pop(use, None)
            raise

    async def _chosen(self, model_id: str) -> ChosenModel:
        built = self._built.get(model_id)
        if built is not None:
            self._built.move_to_end(model_id)
            return built
        task = self._building.get(model_id)
        if task is None:
            task = self._building[model_id] = asyncio.create_task(self._build(model_id), name=f"build {model_id}")
            task.add_done_callback(lambda _: self._building.pop(model_id, None))
        return await asyncio.shield(task)

    async def _build(self, model_id: str) -> ChosenModel:
        use, model = split_model_id(model_id)
        provider = await self.provider(use)
        if isinstance(provider, NeedsConfiguration) and (missing := provider.missing()) is not None:
            raise Unavailable("credentials", f"model {model_id!r} cannot be used: {missing}")
        try:
            chat = await provider.build(model)
        except PizzabotError:
            raise
        except Exception as error:
            raise Unavailable(
                "MODEL_UNAVAILABLE", f"model {model_id!r} could not be built: {type(error).__name__}: {error}"
            ) from error
        descriptor = await self._descriptor(use, model, provider)
        if descriptor.inline_reasoning is not InlineReasoning.OFF:
            chat = await asyncio.to_thread(_cutting, chat, descriptor.inline_reasoning)
        chosen = ChosenModel(id=model_id, chat=chat, descriptor=descriptor)
        self._built[model_id] = chosen
        while len(self._built) > MAX_BUILT_MODELS:
            self._built.popitem(last=False)
        return chosen

    async def _descriptor(self, use: str, model: str, provider: ModelProvider) -> ModelDescriptor:
        found: ModelDescriptor | None = None
        if isinstance(provider, DescribesModels):
            found = await provider.describe(model)
        elif (found := self._catalogue.known(use, model)) is None:
            listing = await self._catalogue.listing(use, lambda: self.provider(use))
            found = next((known for known in listing.models if known.id == model), None)
        return found or ModelDescriptor(id=model, display_name=model)

    async def listing(self, *, refresh: bool) -> Mapping[str, JsonValue]:
        """`GET /models` (spec/01 §10): every model as `<use>:<model>`, and how each provider's catalogue is."""
        uses = self._uses()
        listings = await asyncio.gather(
            *(self._catalogue.listing(use, lambda use=use: self.provider(use), refresh=refresh) for use in uses)  # type: ignore[misc]
        )
        return {
            "models": [_model_row(listing.use, model) for listing in listings for model in listing.models],
            "providers": [
                {
                    "provider": listing.use,
                    "status": "ready" if listing.code is None else "error",
                    "modelCount": len(listing.models),
                    "stale": listing.stale,
                    **({"code": listing.code, "message": listing.message} if listing.code else {}),
                }
                for listing in listings
            ],
            "default": self.default,
        }


def split_model_id(model_id: str) -> tuple[str, str]:
    """`use:model`, split at the first colon: a model's own id may contain colons. Raises `malformed_model_id`."""
    use, colon, model = model_id.partition(":")
    if not (use and colon and model):
        raise Unavailable(
            "malformed_model_id", f"model {model_id!r} is not of the form use:model, such as local:smollm2-135m"
        )
    return use, model


def _cutting(chat: BaseChatModel, inline_reasoning: InlineReasoning) -> BaseChatModel:
    from pizzabot.host.models.cutting_model import CuttingModel

    return CuttingModel.around(chat, inline_reasoning)


def _model_row(use: str, model: ModelDescriptor) -> JsonValue:
    row: dict[str, JsonValue] = {
        "id": f"{use}:{model.id}",
        "displayName": model.display_name,
        "provider": use,
        "contextWindow": model.context_window,
        "supportsTools": model.supports_tools,
        "supportsVision": model.supports_vision,
    }
    return {key: value for key, value in row.items() if value is not None}
