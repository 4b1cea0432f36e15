"""The provider: lists an endpoint's models and builds chat models that share one HTTP client."""

from __future__ import annotations

import asyncio
import importlib.util
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pydantic import SecretStr

from pizzabot_builtin_plugins.openai.catalogue import list_models
from pizzabot_builtin_plugins.openai.settings import ApiMode, Endpoint, OpenAISettings, resolve_endpoint
from pizzabot_hookspecs import Context, InvalidRequest, Unavailable
from pizzabot_hookspecs.model_providers import ModelDescriptor

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from pizzabot_builtin_plugins.openai.model import OpenAIModel

CONNECT_SECONDS = 10.0

# The SDK insists on a key, and without one takes OPENAI_API_KEY, which is not this endpoint's.
NO_KEY = "none"


class OpenAIProvider:
    """Made by `create`; an async context manager that closes the connections of its models."""

    def __init__(self, context: Context, settings: OpenAISettings) -> None:
        import httpx

        self._name = context.name
        self._settings = settings
        self._verify: ssl.SSLContext = httpx.create_ssl_context()
        self._problem: str | None = None
        self._endpoint: Endpoint | None = None
        try:
            self._endpoint = resolve_endpoint(settings, context)
        except InvalidRequest as error:
            self._problem = error.detail
        self._client: Any = None
        self._caps: dict[str, int] = {}
        self._listed: dict[str, ModelDescriptor] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def missing(self) -> str | None:
        """What is needed before it can be used; None when nothing is."""
        if self._problem is not None or self._endpoint is None:
            return self._problem
        if self._endpoint.api_key is None and self._endpoint.official:
            return (
                f'no API key: set OPENAI_API_KEY, or write api_key = {{env = "NAME"}} into [models.{self._name}]; '
                "an endpoint of your own needs base_url"
            )
        return None

    async def models(self) -> Sequence[ModelDescriptor]:
        found = await list_models(self._usable(), verify=self._verify)
        inline = self._settings.inline_reasoning
        self._listed = {model.id: replace(model, inline_reasoning=inline) for model in found}
        return tuple(self._listed.values())

    async def describe(self, model: str, /) -> ModelDescriptor | None:
        """From the newest list; a model that is not in it, or an endpoint without one, is still used as configured."""
        if model not in self._listed:
            with suppress(Unavailable):
                await self.models()
        inline = self._settings.inline_reasoning
        return self._listed.get(model) or ModelDescriptor(id=model, display_name=model, inline_reasoning=inline)

    async def build(self, model: str, /) -> BaseChatModel:
        endpoint = self._usable()
        if not model.strip() or len(model) > 300:
            raise Unavailable(
                "model_unavailable", "a model id has 1 to 300 characters; `pizzabot models` lists those there are"
            )
        return await asyncio.to_thread(self._build, model, endpoint)

    def _usable(self) -> Endpoint:
        missing = self.missing()
        if self._endpoint is None or missing is not None:
            raise Unavailable("credentials", missing or "no endpoint")
        return self._endpoint

    def _build(self, model: str, endpoint: Endpoint) -> OpenAIModel:
        from openai import DefaultAsyncHttpxClient, Timeout

        from pizzabot_builtin_plugins.openai.model import OpenAIModel

        settings = self._settings
        timeout = Timeout(settings.timeout, connect=min(CONNECT_SECONDS, settings.timeout))
        if self._client is None:
            # LangChain's own default is shared by every model of the process and outlives the loop it was used on.
            self._client = DefaultAsyncHttpxClient(timeout=timeout, verify=self._verify)
        listed = self._listed.get(model)
        window = settings.context_window or (listed.context_window if listed else None)
        made = OpenAIModel(
            model=model,
            api_key=SecretStr(endpoint.api_key or NO_KEY),
            base_url=endpoint.base_url,
            use_responses_api={ApiMode.RESPONSES: True, ApiMode.CHAT_COMPLETIONS: False}.get(settings.api_mode),
            max_completion_tokens=self._caps.get(model, settings.max_tokens),
            timeout=timeout,
            stream_chunk_timeout=settings.timeout,
            stream_usage=True,
            max_retries=settings.max_retries,
            http_async_client=self._client,
        )
        if window:
            made.profile = {**(made.profile or {}), "max_input_tokens": window}
        made.attach(endpoint, self._caps)
        return made


def create(context: Context, settings: Any) -> OpenAIProvider:
    """Raises ImportError where the extra is not installed; the adapter itself is loaded when a model is built."""
    if importlib.util.find_spec("langchain_openai") is None:
        raise ImportError("No module named 'langchain_openai'", name="langchain_openai")
    checked = settings if isinstance(settings, OpenAISettings) else OpenAISettings.model_validate(settings or {})
    return OpenAIProvider(context, checked)
