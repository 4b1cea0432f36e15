"""The openai provider keeps the contract of model providers against a real HTTP server with SSE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pizzabot.testing.provider_contract import ModelProviderContract
from pizzabot_builtin_plugins.openai import pizzabot_model_providers
from pizzabot_hookspecs import Context

KEY = "sk-very-secret-key-of-the-test"


class TestOpenAI(ModelProviderContract):
    model = "gpt-x"
    unknown_model = "gone"
    secret = KEY

    @pytest.fixture(autouse=True)
    def _server(self, openai_server: Any, make_context: Callable[..., Context]) -> None:
        self.server, self.context = openai_server, make_context("openai")

    def provider(self) -> Any:
        return self._made(self.server.url + "/v1")

    def failing_provider(self) -> Any:
        self.server.behaviour["/v1/models"] = lambda request: (
            request.whole(401, {"error": {"message": f"bad {KEY}"}}) or True
        )
        return self.provider()

    def _made(self, base_url: str) -> Any:
        [offer] = pizzabot_model_providers()
        assert offer.settings is not None
        return offer.create(self.context, offer.settings.model_validate({"api_key": KEY, "base_url": base_url}))
