"""The provider keeps the contract, and a host that finds plugins the usual way has it."""

from __future__ import annotations

import asyncio

import pytest
from pizzabot_parrot.provider import ParrotProvider, ParrotSettings
from pydantic import ValidationError

from pizzabot.kernel import Plugins, PluginState
from pizzabot.testing import ModelProviderContract, imported_by
from pizzabot_hookspecs import Unavailable


class TestParrot(ModelProviderContract):
    model = "grey"
    unknown_model = "dodo"
    long_prompt = "again " * 10_000

    def provider(self) -> ParrotProvider:
        return ParrotProvider(ParrotSettings())


def test_the_plugin_is_loaded() -> None:
    """Through the real discovery: the package has to be installed (`pip install -e .`)."""
    plugins = Plugins().load()
    report = next(report for report in plugins.report() if report.name == "parrot")
    assert (report.state, report.reason) == (PluginState.LOADED, None)
    assert report.distribution == "pizzabot-parrot-example"
    assert plugins.choose("model_providers", "parrot").qualified == "parrot:parrot"


def test_listing_the_plugin_imports_no_langchain() -> None:
    assert "langchain_core" not in imported_by("pizzabot_parrot.provider")


def test_a_macaw_shouts_and_settings_reach_the_model() -> None:
    async def said(model: str, settings: ParrotSettings) -> str:
        chat = await ParrotProvider(settings).build(model)
        return str((await chat.ainvoke("one. two")).text)

    assert asyncio.run(said("macaw", ParrotSettings())) == "ONE. TWO"
    assert asyncio.run(said("grey", ParrotSettings(sentence_case=True))) == "One. Two"


def test_a_parrot_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(Unavailable, match="grey, macaw") as raised:
        asyncio.run(ParrotProvider(ParrotSettings()).build("dodo"))
    assert raised.value.code == "model_unavailable"


@pytest.mark.parametrize("wrong", [{"word_delay": -1}, {"word_delay": 6}, {"colour": "grey"}])
def test_settings_out_of_bounds_or_unknown_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ParrotSettings.model_validate(wrong)
