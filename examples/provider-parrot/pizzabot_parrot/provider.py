"""The provider: its settings, its catalogue of two parrots, and how a parrot's name becomes a chat model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from pizzabot_hookspecs import Context, Unavailable
from pizzabot_hookspecs.model_providers import ModelDescriptor

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

GREY = ModelDescriptor(
    id="grey", display_name="African grey", context_window=4_096, supports_tools=False, supports_vision=False
)
MACAW = ModelDescriptor(
    id="macaw", display_name="Macaw, loud", context_window=4_096, supports_tools=False, supports_vision=False
)
PARROTS = {parrot.id: parrot for parrot in (GREY, MACAW)}


class ParrotSettings(BaseModel):
    """The section `[models.<use>]`. The host validates it before `create` is called and says which field is wrong."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    sentence_case: bool = Field(default=False, description="begin every sentence with a capital letter")
    word_delay: float = Field(default=0.0, ge=0, le=5, description="seconds between two words")


class ParrotProvider:
    """A `ModelProvider`. The host makes one for each use and keeps it."""

    def __init__(self, settings: ParrotSettings) -> None:
        self._settings = settings

    async def models(self) -> Sequence[ModelDescriptor]:
        return tuple(PARROTS.values())

    async def build(self, model: str, /) -> BaseChatModel:
        if model not in PARROTS:
            raise Unavailable("model_unavailable", f"there is no parrot {model!r:.80}; there are {', '.join(PARROTS)}")
        # The import takes a while the first time, and this runs on the host's loop.
        return await asyncio.to_thread(self._build, model)

    def _build(self, model: str) -> BaseChatModel:
        from pizzabot_parrot.chat import ParrotChat

        return ParrotChat(
            model_name=model,
            loud=model == MACAW.id,
            sentence_case=self._settings.sentence_case,
            word_delay=self._settings.word_delay,
        )


def create(_context: Context, settings: ParrotSettings) -> ParrotProvider:
    return ParrotProvider(settings)
