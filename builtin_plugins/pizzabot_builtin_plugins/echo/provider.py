"""The provider of the echo models: a catalogue of two, always there, and its settings."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from pizzabot_builtin_plugins.echo.script import MAX_DELAY_SECONDS, MAX_PACE_SECONDS
from pizzabot_hookspecs import Context, Unavailable
from pizzabot_hookspecs.model_providers import InlineReasoning, ModelDescriptor

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pizzabot_builtin_plugins.echo.model import EchoModel

WITH_TOOLS, PLAIN = "echo", "echo-plain"


class EchoSettings(BaseModel):
    """`[models.<use>]` of an echo provider: `pace` between chunks and `delay` before the first one, in seconds.

    With `inline_reasoning` the host takes `<think>` tags that are said for reasoning, as it does for other providers.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    pace: float = Field(default=0.0, ge=0, le=MAX_PACE_SECONDS)
    delay: float = Field(default=0.0, ge=0, le=MAX_DELAY_SECONDS)
    context_window: int = Field(default=200_000, ge=1, le=100_000_000)
    inline_reasoning: InlineReasoning = InlineReasoning.OFF


class EchoProvider:
    def __init__(self, settings: EchoSettings) -> None:
        self._settings = settings

    async def models(self) -> Sequence[ModelDescriptor]:
        return [
            self._descriptor(WITH_TOOLS, "Echo", supports_tools=True),
            self._descriptor(PLAIN, "Echo without tools", supports_tools=False),
        ]

    async def build(self, model: str, /) -> BaseChatModel:
        if model not in (WITH_TOOLS, PLAIN):
            raise Unavailable(
                "model_unavailable", f"echo has no model {model!r:.100}; there are {WITH_TOOLS} and {PLAIN}"
            )
        chat: type[EchoModel] = await asyncio.to_thread(_model_class)
        return chat(
            model_name=model,
            pace=self._settings.pace,
            delay=self._settings.delay,
            calls_tools=model == WITH_TOOLS,
            profile={"max_input_tokens": self._settings.context_window},
        )

    def _descriptor(self, model: str, display_name: str, *, supports_tools: bool) -> ModelDescriptor:
        return ModelDescriptor(
            id=model,
            display_name=display_name,
            context_window=self._settings.context_window,
            supports_tools=supports_tools,
            supports_vision=False,
            inline_reasoning=self._settings.inline_reasoning,
        )


def create(_context: Context, settings: Any) -> EchoProvider:
    return EchoProvider(settings if isinstance(settings, EchoSettings) else EchoSettings.model_validate(settings or {}))


def _model_class() -> type[EchoModel]:
    from pizzabot_builtin_plugins.echo.model import EchoModel

    return EchoModel
