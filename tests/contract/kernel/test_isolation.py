"""One broken plugin takes nothing with it, and the report says why: every way to be broken, through real discovery."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from pizzabot import __version__
from pizzabot.kernel import BrokenPlugin, Plugins, PluginState
from pizzabot.testing.plugins import install_plugin

BROKEN = {
    "import-error": ("import surely_not_installed_anywhere", PluginState.FAILED, "surely_not_installed_anywhere"),
    "old-name": ("from pizzabot_hookspecs import Removed", PluginState.FAILED, "cannot import name 'Removed'"),
    "bare-import-error": ("raise ImportError('too old', name='libfoo')", PluginState.FAILED, "missing module: libfoo"),
    "exits": ("raise SystemExit(3)", PluginState.FAILED, "SystemExit: 3"),
    "syntax": ("def f(:\n", PluginState.FAILED, "SyntaxError"),
    "raises": (
        "raise ValueError('line one\\nline two \\x1b[31m')",
        PluginState.FAILED,
        "ValueError: line one line two [31m",
    ),
    "caused": (
        "try:\n    {}['k']\nexcept KeyError as e:\n    raise RuntimeError('no table') from e",
        PluginState.FAILED,
        "RuntimeError: no table (from KeyError: 'k')",
    ),
    "recursion": ("def f(): f()\nf()", PluginState.FAILED, "RecursionError"),
    "unspeakable": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        PluginState.FAILED,
        "E: its message cannot be shown",
    ),
    "unknown-hook": (
        "from pizzabot_hookspecs import hookimpl\n@hookimpl\ndef pizzabot_toasters(): return []",
        PluginState.INCOMPATIBLE,
        "implements pizzabot_toasters",
    ),
    "unknown-argument": (
        "from pizzabot_hookspecs import hookimpl\n@hookimpl\ndef pizzabot_transports(menu): return []",
        PluginState.INCOMPATIBLE,
        "pizzabot_transports asks for menu",
    ),
    "wrapper": (
        "from pizzabot_hookspecs import hookimpl\n@hookimpl(wrapper=True)\ndef pizzabot_transports(): return (yield)",
        PluginState.FAILED,
        "pizzabot_transports is a hook wrapper",
    ),
    "unmarked": ("def pizzabot_transports(): return []", PluginState.FAILED, "pizzabot_transports is not marked"),
}


def hook(body: str) -> str:
    return f"""
from pizzabot_hookspecs import Offer, hookimpl

def offer(name, **more):
    return Offer(**dict(dict(name=name, summary="", create=lambda context, settings: None), **more))

@hookimpl
def pizzabot_model_providers():
    {body}

@hookimpl
def pizzabot_transports():
    return [offer("smoke-signals")]
"""


BAD_ANSWERS = {
    "raise ValueError('no table')": "pizzabot_model_providers raised ValueError: no table",
    "raise SystemExit": "pizzabot_model_providers raised SystemExit",
    "return None": "returned NoneType, not a list",
    "return (offer('a'),)": "returned tuple, not a list",
    "return offer('a')": "returned Offer, not a list",
    "return ['a']": "returned a list with str in it",
    "return [offer('a'), offer('b'), offer('a')]": 'offers "a" twice',
    "return [offer('a:b')]": "'a:b', which is not a name",
    "return [offer('')]": "'', which is not a name",
    "return [offer('x' * 65)]": "which is not a name",
    "return [offer(7)]": "7, which is not a name",
    "return [offer('default')]": '"default", which is a key of the configuration',
    "return [offer('a', summary=None)]": "a summary that is no text",
    "return [offer('a', create=None)]": "a `create` that cannot be called",
    "return [offer('a', settings={})]": "`settings` that are no pydantic model",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_package_is_reported_with_its_cause_and_the_rest_works(name, folder, offering, stock, told):
    source, state, reason = BROKEN[name]
    install_plugin(folder, name.replace("-", "_"), source)
    install_plugin(folder, "sound", offering("parrot"))

    plugins = Plugins(builtins=stock).load()

    report = told(plugins, name)
    assert (report.state, report.offers) == (state, {})
    assert reason in report.reason
    assert "\n" not in report.reason
    assert "\x1b" not in report.reason
    assert report.distribution == name
    assert told(plugins, "sound").state is PluginState.LOADED
    assert plugins.choose("model_providers", "parrot").plugin == "sound"
    assert plugins.choose("storage_backends", "sqlite").plugin == "sqlite-storage"


@pytest.mark.parametrize("body", BAD_ANSWERS)
def test_an_implementation_that_answers_wrongly_fails_alone_and_the_plugins_others_count(body, folder, told):
    install_plugin(folder, "acme", hook(body))

    plugins = Plugins(builtins={}).load()

    report = told(plugins, "acme")
    assert report.state is PluginState.FAILED
    assert BAD_ANSWERS[body] in report.reason
    assert report.offers == {"transports": ["smoke-signals"]}
    assert plugins.choose("transports", "smoke-signals").qualified == "acme:smoke-signals"
    assert [record.plugin for record in plugins.offers("model_providers")] == []


def test_an_async_hook_is_reported_without_a_warning_that_nobody_awaited_it(folder, told):
    install_plugin(
        folder, "acme", "from pizzabot_hookspecs import hookimpl\n@hookimpl\nasync def pizzabot_transports(): return []"
    )

    assert "async def" in told(Plugins(builtins={}).load(), "acme").reason


def test_a_built_in_that_cannot_be_imported_is_reported_like_any_other(stock, told):
    plugins = Plugins(builtins={**stock, "gone": "stock_gone"}, discover=False).load()

    assert told(plugins, "gone").reason == "ModuleNotFoundError: No module named 'stock_gone'"
    assert told(plugins, "sqlite-storage").state is PluginState.LOADED


def test_a_keyboard_interrupt_at_import_is_the_users_and_passes(folder):
    install_plugin(folder, "acme", "raise KeyboardInterrupt")

    with pytest.raises(KeyboardInterrupt):
        Plugins(builtins={}).load()


def test_an_entry_point_that_names_something_in_a_module_is_told_which_module_to_name(folder, told):
    install_plugin(folder, "acme", "plugin = object()", entry_point="acme:plugin")

    report = told(Plugins(builtins={}).load(), "acme")
    assert report.state is PluginState.FAILED
    assert "it has to name a module: 'acme'" in report.reason
    assert "acme" not in sys.modules


def test_an_entry_point_that_is_no_name_of_a_module_is_a_failed_plugin(folder, told):
    install_plugin(folder, "acme", "", entry_point="not a module!")

    assert "does not name a module" in told(Plugins(builtins={}).load(), "acme").reason


def test_an_entry_point_whose_name_cannot_qualify_an_offer_is_a_failed_plugin(folder, told):
    install_plugin(folder, "acme", "", plugin_name="acme store")

    assert "is not a name" in told(Plugins(builtins={}).load(), "acme store").reason


def test_two_plugins_of_one_name_are_both_reported_and_neither_is_imported(folder, offering):
    install_plugin(folder, "one", offering("one"), plugin_name="acme")
    install_plugin(folder, "two", offering("two"), plugin_name="acme", version="2.0")

    reports = Plugins(builtins={}).load().report()

    assert [(report.name, report.distribution, report.version) for report in reports if report.name == "acme"] == [
        ("acme", "one", "1.0"),
        ("acme", "two", "2.0"),
    ]
    assert {report.state for report in reports} == {PluginState.FAILED}
    assert all("one of one, two of two; uninstall all but one" in report.reason for report in reports)
    assert {"one", "two"}.isdisjoint(sys.modules)


def test_a_third_party_cannot_take_a_built_in_plugins_name(folder, offering, stock):
    install_plugin(folder, "acme", offering("sqlite", "storage_backends"), plugin_name="sqlite-storage")

    plugins = Plugins(builtins=stock).load()

    assert [(report.builtin, report.state) for report in plugins.report()] == [
        (True, PluginState.LOADED),
        (False, PluginState.FAILED),
    ]
    assert 'a built-in plugin is called "sqlite-storage"' in plugins.report()[1].reason
    assert "acme" not in sys.modules
    assert plugins.choose("storage_backends", "sqlite-storage:sqlite").builtin


def test_one_module_under_two_names_is_loaded_once_and_said(folder, offering, told):
    install_plugin(folder, "acme", offering("parrot"))
    install_plugin(folder, "other", "", entry_point="acme")

    plugins = Plugins(builtins={}).load()

    assert told(plugins, "acme").state is PluginState.LOADED
    assert 'same module as the plugin "acme"' in told(plugins, "other").reason


@pytest.mark.parametrize(
    "line",
    [
        "pizzabot-host>=99",
        "pizzabot_host >= 99, < 100",
        "Pizzabot.Host[local]==0.0.1",
        f"pizzabot-host!={__version__}",
        'pizzabot-host>=99; python_version >= "3"',
        "pizzabot-host >= nonsense",
    ],
)
def test_a_plugin_whose_requirement_excludes_this_host_is_incompatible_and_not_imported(line, folder, offering, told):
    install_plugin(folder, "acme", offering("parrot"), requires=["pluggy", line])

    report = told(Plugins(builtins={}).load(), "acme")

    assert report.state is PluginState.INCOMPATIBLE
    assert "pizzabot-host" in report.reason
    assert report.ms == 0
    assert "acme" not in sys.modules


@pytest.mark.parametrize(
    "line",
    [
        "pizzabot-host",
        f"pizzabot-host>={__version__}",
        'pizzabot-host>=99; python_version < "3"',
        'pizzabot-host>=99; extra == "next"',
        "pizzabot>=99",
        "pizzabot-host-extras>=99",
        "pizzabot-host @ file:///somewhere/pizzabot",
    ],
)
def test_a_requirement_that_allows_this_host_or_is_not_about_it_loads(line, folder, offering, told):
    install_plugin(folder, "acme", offering("parrot"), requires=[line])

    assert told(Plugins(builtins={}).load(), "acme").state is PluginState.LOADED


def test_an_extra_that_the_entry_point_names_counts_as_required(folder, offering, told):
    requirement = 'pizzabot-host>=99; extra == "next"'
    install_plugin(folder, "acme", offering("parrot"), requires=[requirement], entry_point="acme [next]")

    assert told(Plugins(builtins={}).load(), "acme").state is PluginState.INCOMPATIBLE


def test_a_pre_release_of_the_host_satisfies_a_range_that_it_lies_in(folder, offering, told, monkeypatch):
    monkeypatch.setattr("pizzabot.kernel.admission.__version__", "1.3.0rc1")
    install_plugin(folder, "acme", offering("parrot"), requires=["pizzabot-host>=1.2,<2"])
    install_plugin(folder, "final", offering("final"), requires=["pizzabot-host>=1.3"])

    plugins = Plugins(builtins={}).load()
    assert told(plugins, "acme").state is PluginState.LOADED
    assert told(plugins, "final").state is PluginState.INCOMPATIBLE


def test_a_hook_that_is_marked_optional_may_be_of_another_version(folder, offering, told):
    source = "\n@hookimpl(optionalhook=True)\ndef pizzabot_toasters(): return 1 / 0"
    install_plugin(folder, "acme", offering("parrot") + source)

    report = told(Plugins(builtins={}).load(), "acme")
    assert (report.state, report.reason) == (PluginState.LOADED, None)


def test_nothing_of_a_refused_plugin_answers_a_hook(folder, told):
    install_plugin(folder, "acme", hook("return []") + "\n@hookimpl\ndef pizzabot_toasters(): return []")

    plugins = Plugins(builtins={}).load()
    assert told(plugins, "acme").state is PluginState.INCOMPATIBLE
    assert plugins.offers("transports") == []


def test_a_plugin_without_any_hook_is_loaded_and_says_so(folder, told):
    install_plugin(folder, "acme", "")

    report = told(Plugins(builtins={}).load(), "acme")
    assert (report.state, report.reason) == (PluginState.LOADED, "it implements no hook")


def test_a_slow_import_is_flagged_and_a_quick_one_is_not(folder, offering, told):
    busy = "import time\nend = time.perf_counter() + 0.15\nwhile time.perf_counter() < end: pass\n"
    install_plugin(folder, "heavy", busy + offering("heavy"))

    report = told(Plugins(builtins={}).load(), "heavy")

    assert report.ms >= 150
    assert report.slow
    assert report.to_json()["slow"] is True
    assert not replace(report, ms=100.0).slow


def test_strict_raises_the_plugins_error(folder):
    install_plugin(folder, "acme", "raise ValueError('no table')")

    with pytest.raises(BrokenPlugin, match='plugin "acme" is failed: ValueError: no table') as caught:
        Plugins(builtins={}, strict=True).load()
    assert caught.value.code == "broken_plugin"
    assert isinstance(caught.value.__cause__, ValueError)


def test_strict_raises_for_an_incompatible_plugin_and_not_for_a_disabled_one(folder):
    install_plugin(folder, "acme", "", requires=["pizzabot-host>=99"])

    with pytest.raises(BrokenPlugin, match="incompatible"):
        Plugins(builtins={}, strict=True).load()
    Plugins(builtins={}, strict=True, disable=["acme"]).load()


def test_a_message_as_long_as_a_document_is_cut_in_the_report(folder, told):
    install_plugin(folder, "acme", "raise ValueError('x' * 1_000_000)")

    assert len(told(Plugins(builtins={}).load(), "acme").reason) <= 500
