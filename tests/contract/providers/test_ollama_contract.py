"""The ollama provider keeps the contract of model providers against a real HTTP server with NDJSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pizzabot.testing.provider_contract import ModelProviderContract
from pizzabot_builtin_plugins.ollama import pizzabot_model_providers
from pizzabot_hookspecs import Context


class TestOllama(ModelProviderContract):
    model = "qwen3:4b"
    unknown_model = "gone"
    secret = "secret-of-the-server"

    @pytest.fixture(autouse=True)
    def _server(self, ollama_server: Any, make_context: Callable[..., Context]) -> None:
        self.server, self.context = ollama_server, make_context("ollama")

    def provider(self) -> Any:
        [offer] = pizzabot_model_providers()
        assert offer.settings is not None
        return offer.create(self.context, offer.settings.model_validate({"host": self.server.url}))

    def failing_provider(self) -> Any:
        self.server.behaviour["/api/tags"] = lambda request: request.whole(500, {"error": self.secret}) or True
        return self.provider()
