"""A choice is made by name, never by order; a third party stands in by name; a quarrel and a failure are said."""

from __future__ import annotations

import pytest

from pizzabot.kernel import AmbiguousOffer, NoSuchOffer, Plugins
from pizzabot.testing.plugins import install_plugin

KIND = "storage_backends"


def qualified(records):
    return [record.qualified for record in records]


def test_a_bare_name_and_a_qualified_name_choose_the_same_offer(folder, offering, stock):
    install_plugin(folder, "acme", offering("postgres", KIND))

    plugins = Plugins(builtins=stock).load()

    assert plugins.choose(KIND, "postgres") is plugins.choose(KIND, "acme:postgres")
    assert plugins.choose(KIND, "sqlite").replaces is None


def test_a_third_party_stands_in_for_the_built_in_of_its_name_and_the_report_says_so(folder, offering, stock, told):
    install_plugin(folder, "acme", offering("sqlite", KIND))

    plugins = Plugins(builtins=stock).load()

    chosen = plugins.choose(KIND, "sqlite")
    assert (chosen.qualified, chosen.replaces.qualified) == ("acme:sqlite", "sqlite-storage:sqlite")
    assert qualified(plugins.acting(KIND)) == ["acme:sqlite"]
    assert qualified(plugins.offers(KIND)) == ["acme:sqlite", "sqlite-storage:sqlite"]
    assert list(told(plugins, "acme").stands_in_for) == ["sqlite-storage:sqlite"]
    assert list(told(plugins, "sqlite-storage").stands_in_for) == []


def test_the_built_in_that_is_stood_in_for_stays_reachable_by_its_full_name(folder, offering, stock):
    install_plugin(folder, "acme", offering("sqlite", KIND))

    assert Plugins(builtins=stock).load().choose(KIND, "sqlite-storage:sqlite").builtin


def test_the_same_name_in_another_kind_stands_in_for_nothing(folder, offering, stock, told):
    install_plugin(folder, "acme", offering("sqlite", "transports"))

    plugins = Plugins(builtins=stock).load()

    assert plugins.choose(KIND, "sqlite").builtin
    assert list(told(plugins, "acme").stands_in_for) == []


def test_with_the_built_in_disabled_the_third_party_has_the_name_alone(folder, offering, stock):
    install_plugin(folder, "acme", offering("sqlite", KIND))

    plugins = Plugins(builtins=stock, disable=["sqlite-storage"]).load()

    assert plugins.choose(KIND, "sqlite").replaces is None


def test_two_third_parties_with_one_name_are_reached_by_full_name_only(folder, offering, stock, told):
    install_plugin(folder, "acme", offering("sqlite", KIND))
    install_plugin(folder, "zeta", offering("sqlite", KIND))

    plugins = Plugins(builtins=stock).load()

    with pytest.raises(AmbiguousOffer) as caught:
        plugins.choose(KIND, "sqlite")
    expected = (
        f'2 plugins offer "sqlite" of kind {KIND}, so none is chosen: '
        'write "acme:sqlite" or "sqlite-storage:sqlite" or "zeta:sqlite"'
    )
    assert (caught.value.code, caught.value.detail) == ("ambiguous_offer", expected)
    assert plugins.acting(KIND) == []
    assert plugins.notes() == [expected]
    assert list(told(plugins, "acme").stands_in_for) == []
    assert plugins.choose(KIND, "zeta:sqlite").plugin == "zeta"


def test_an_implementation_that_asks_to_come_first_does_not_get_the_slot(folder, offering, stock):
    first = offering("sqlite", KIND).replace("@hookimpl\n", "@hookimpl(tryfirst=True)\n")
    install_plugin(folder, "acme", first)
    install_plugin(folder, "zeta", offering("sqlite", KIND))

    with pytest.raises(AmbiguousOffer):
        Plugins(builtins=stock).load().choose(KIND, "sqlite")


def test_a_missing_name_lists_what_there_is_and_every_plugin_that_is_not_loaded_with_its_reason(
    folder, offering, stock
):
    install_plugin(folder, "acme", "import no_such_driver")
    install_plugin(folder, "old", "", requires=["pizzabot-host>=99"])
    install_plugin(folder, "off", "")
    install_plugin(folder, "idle", "")

    with pytest.raises(NoSuchOffer) as caught:
        Plugins(builtins=stock, disable=["off"]).load().choose(KIND, "postgres")

    assert caught.value.code == "no_such_offer"
    detail = caught.value.detail
    assert detail.startswith(f'no offer "postgres" of kind {KIND}; there are: sqlite-storage:sqlite; not loaded: ')
    assert "acme failed (ModuleNotFoundError: No module named 'no_such_driver')" in detail
    assert "old incompatible (needs pizzabot-host>=99" in detail
    assert "off disabled (switched off by [plugins] disable)" in detail
    assert "idle" not in detail
    assert "\n" not in detail


@pytest.mark.parametrize("use", ["acme:postgres", "acme"])
def test_when_the_selected_plugin_failed_its_cause_comes_first(use, folder, stock):
    install_plugin(folder, "acme", "import no_such_driver")

    with pytest.raises(NoSuchOffer) as caught:
        Plugins(builtins=stock).load().choose(KIND, use)

    start = f'no offer "{use}" of kind {KIND}: the plugin "acme" is failed (ModuleNotFoundError: No module named'
    assert caught.value.detail.startswith(start)


def test_a_selected_plugin_that_is_disabled_says_what_switched_it_off(folder, stock):
    with pytest.raises(NoSuchOffer, match=r"is disabled \(switched off by \[plugins\] disable\)"):
        Plugins(builtins=stock, disable=["sqlite-storage"]).load().choose(KIND, "sqlite-storage:sqlite")


def test_a_misspelt_name_is_answered_with_the_near_one(stock):
    with pytest.raises(NoSuchOffer, match='did you mean "sqlite"'):
        Plugins(builtins=stock, discover=False).load().choose(KIND, "sqlit")


def test_nothing_of_the_kind_is_said_as_none(stock):
    with pytest.raises(NoSuchOffer, match="there are: none"):
        Plugins(builtins=stock, discover=False).load().choose("transports", "http")


def test_a_kind_that_does_not_exist_is_the_callers_error(stock):
    with pytest.raises(ValueError, match="no kind of plugin is called 'toasters'"):
        Plugins(builtins=stock, discover=False).load().offers("toasters")


def test_offers_are_sorted_by_name_and_then_plugin(folder, offering):
    install_plugin(folder, "zeta", offering("apple"))
    install_plugin(folder, "acme", offering("pear"))
    install_plugin(folder, "beta", offering("apple"))

    plugins = Plugins(builtins={}).load()
    assert qualified(plugins.offers("model_providers")) == ["beta:apple", "zeta:apple", "acme:pear"]
