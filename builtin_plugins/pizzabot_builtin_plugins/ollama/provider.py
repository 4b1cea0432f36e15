"""The provider: lists an Ollama server's models and builds chat models sized to what the model can."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pizzabot_builtin_plugins.ollama.server import Server, Shown, descriptor
from pizzabot_builtin_plugins.ollama.settings import DEFAULT_HOST, OllamaSettings, Thinking, clean_host
from pizzabot_hookspecs import Context, Unavailable
from pizzabot_hookspecs.model_providers import ModelDescriptor

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pizzabot_builtin_plugins.ollama.model import OllamaModel

CONNECT_SECONDS = 5.0


class OllamaProvider:
    """Made by `create`; an async context manager that closes the connections of its models."""

    def __init__(self, settings: OllamaSettings, environ: Mapping[str, str]) -> None:
        import httpx

        self._settings = settings
        self._verify: ssl.SSLContext = httpx.create_ssl_context()
        self._problem: str | None = None
        self._host = settings.host or self._host_of(environ)
        self._server = Server(self._host, self._verify)
        self._built: list[OllamaModel] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        built, self._built = self._built, []
        for model in built:
            await model.aclose()

    def missing(self) -> str | None:
        """None: it needs nothing, unless OLLAMA_HOST is no address."""
        return self._problem

    async def models(self) -> Sequence[ModelDescriptor]:
        self._check()
        found = await self._server.models(context_length=self._settings.context_length)
        return [replace(model, inline_reasoning=self._settings.inline_reasoning) for model in found]

    async def describe(self, model: str, /) -> ModelDescriptor | None:
        """None where the server cannot be asked now: `build` says why."""
        try:
            self._check()
            shown = await self._server.show(model)
        except Unavailable:
            return None
        made = descriptor(model, shown, context_length=self._settings.context_length)
        return replace(made, inline_reasoning=self._settings.inline_reasoning)

    async def build(self, model: str, /) -> BaseChatModel:
        self._check()
        shown = await self._server.show(model)
        made = await asyncio.to_thread(self._build, model, shown)
        self._built.append(made)
        return made

    def _check(self) -> None:
        if self._problem is not None:
            raise Unavailable("credentials", self._problem)

    def _host_of(self, environ: Mapping[str, str]) -> str:
        given = environ.get("OLLAMA_HOST", "").strip()
        try:
            return clean_host(given) if given else DEFAULT_HOST
        except ValueError as cause:
            self._problem = f"the environment variable OLLAMA_HOST {cause}"
            return DEFAULT_HOST

    def _build(self, model: str, shown: Shown) -> OllamaModel:
        import httpx

        from pizzabot_builtin_plugins.ollama.model import OllamaModel

        window = min(self._settings.context_length, shown.context_window or self._settings.context_length)
        timeout = httpx.Timeout(self._settings.timeout, connect=min(CONNECT_SECONDS, self._settings.timeout))
        client = {"timeout": timeout, "verify": self._verify}
        made = OllamaModel(
            model=model,
            base_url=self._host,
            num_ctx=window,
            reasoning=self._thinks(shown),
            client_kwargs=client,
            profile={"max_input_tokens": window},
        )
        made.attach(self._host, vision=bool(shown.can("vision")), **client)
        return made

    def _thinks(self, shown: Shown) -> bool | None:
        if self._settings.thinking is not Thinking.AUTO:
            return self._settings.thinking is Thinking.ENABLED
        # Never False for a model that does not declare it: older servers refuse the option itself.
        return True if shown.can("thinking") else None


def create(_context: Context, settings: Any) -> OllamaProvider:
    """Raises ImportError where the extra is not installed; the adapter itself is loaded when a model is built."""
    if importlib.util.find_spec("langchain_ollama") is None:
        raise ImportError("No module named 'langchain_ollama'", name="langchain_ollama")
    checked = settings if isinstance(settings, OllamaSettings) else OllamaSettings.model_validate(settings or {})
    return OllamaProvider(checked, os.environ)
