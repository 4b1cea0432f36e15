"""The echo provider keeps the contract of model providers, with and without tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pizzabot.testing.provider_contract import ModelProviderContract
from pizzabot_builtin_plugins.echo import pizzabot_model_providers
from pizzabot_hookspecs import Context


class TestEcho(ModelProviderContract):
    model = "echo"
    unknown_model = "parrot"
    long_prompt = "[[pace 0.01]] pizza [[repeat 10000]]"

    @pytest.fixture(autouse=True)
    def _context(self, make_context: Callable[..., Context]) -> None:
        self.context = make_context("echo")

    def provider(self) -> Any:
        [offer] = pizzabot_model_providers()
        return offer.create(self.context, {})


class TestEchoWithoutTools(TestEcho):
    model = "echo-plain"
