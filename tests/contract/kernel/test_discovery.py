"""What is found, in which order, and what switches it off; damaged metadata disable nothing else."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

import pizzabot
import pizzabot_builtin_plugins
import pizzabot_hookspecs
from pizzabot.kernel import BUILTINS, Plugins, PluginState
from pizzabot.testing.plugins import install_plugin, plugin_folder


def names(plugins):
    return [report.name for report in plugins.report()]


def test_built_ins_come_from_the_table_and_then_third_parties_by_name(folder, stock, offering):
    for name in ("zebra", "acme", "middle"):
        install_plugin(folder, name, offering(name))

    assert names(Plugins(builtins=stock).load()) == ["sqlite-storage", "acme", "middle", "zebra"]


def test_the_order_does_not_depend_on_the_order_of_folders(folder, tmp_path, offering):
    install_plugin(folder, "acme", offering("acme"))
    other = tmp_path / "other"
    other.mkdir()
    install_plugin(other, "aaa", offering("aaa"))

    with plugin_folder(other):
        first = names(Plugins(builtins={}).load())
    sys.path.append(str(other))
    importlib.invalidate_caches()
    try:
        assert names(Plugins(builtins={}).load()) == first == ["aaa", "acme"]
    finally:
        sys.path.remove(str(other))
        sys.modules.pop("aaa", None)


def test_a_distribution_that_an_earlier_folder_shadows_is_not_found_a_second_time(folder, tmp_path, offering):
    install_plugin(folder, "acme", offering("new"), version="2.0")
    later = tmp_path / "later"
    later.mkdir()
    install_plugin(later, "acme", offering("old"), version="1.0")
    sys.path.append(str(later))
    try:
        reports = Plugins(builtins={}).load().report()
    finally:
        sys.path.remove(str(later))

    assert [(report.name, report.version) for report in reports] == [("acme", "2.0")]


def test_an_older_copy_behind_a_version_that_is_no_plugin_any_more_is_not_found(folder, tmp_path, offering):
    info = install_plugin(folder, "acme", "", version="2.0")
    (info / "entry_points.txt").unlink()
    later = tmp_path / "later"
    later.mkdir()
    install_plugin(later, "acme", offering("old"), version="1.0")
    sys.path.append(str(later))
    try:
        assert names(Plugins(builtins={}).load()) == []
    finally:
        sys.path.remove(str(later))


def test_two_dist_infos_of_one_distribution_are_one_plugin(folder, offering):
    for version in ("1.0", "2.0"):
        install_plugin(folder, "acme", offering("acme"), version=version)

    (report,) = Plugins(builtins={}).load().report()
    assert report.state is PluginState.LOADED


def test_a_disabled_plugin_is_not_imported_built_ins_included(folder, stock, offering, told):
    install_plugin(folder, "acme", "raise SystemExit")

    plugins = Plugins(builtins=stock, disable=["acme", "sqlite-storage"]).load()

    for name in ("acme", "sqlite-storage"):
        report = told(plugins, name)
        assert (report.state, report.ms) == (PluginState.DISABLED, 0)
        assert report.reason == "switched off by [plugins] disable"
    assert {"acme", "stock_storage"}.isdisjoint(sys.modules)


def test_only_is_an_allow_list_of_third_parties_and_leaves_built_ins_alone(folder, stock, offering, told):
    install_plugin(folder, "acme", offering("acme"))
    install_plugin(folder, "other", offering("other"))

    plugins = Plugins(builtins=stock, only=["acme"]).load()

    assert told(plugins, "acme").state is PluginState.LOADED
    assert (told(plugins, "other").state, told(plugins, "other").reason) == (
        PluginState.DISABLED,
        "not in [plugins] only",
    )
    assert told(plugins, "sqlite-storage").state is PluginState.LOADED
    assert "other" not in sys.modules


def test_an_empty_allow_list_allows_no_third_party(folder, offering, told):
    install_plugin(folder, "acme", offering("acme"))

    assert told(Plugins(builtins={}, only=[]).load(), "acme").state is PluginState.DISABLED


def test_a_configured_name_that_nothing_has_any_more_is_a_note_and_no_error(folder, stock):
    plugins = Plugins(builtins=stock, disable=["uninstalled"], only=["gone", "sqlite-storage"], strict=True).load()

    assert plugins.notes() == [
        '[plugins] disable names "uninstalled", and no plugin of that name is installed',
        '[plugins] only names "gone", and no plugin of that name is installed',
    ]


@pytest.mark.parametrize(("value", "found"), [("1", False), ("true", False), ("0", True), ("", True)])
def test_the_environment_switches_third_parties_off(value, found, folder, stock, offering, monkeypatch):
    install_plugin(folder, "acme", offering("acme"))
    monkeypatch.setenv("PIZZABOT_NO_PLUGINS", value)

    plugins = Plugins(builtins=stock).load()

    assert ("acme" in names(plugins)) is found
    assert "sqlite-storage" in names(plugins)
    assert any("PIZZABOT_NO_PLUGINS" in note for note in plugins.notes()) is not found


def test_discovery_switched_off_finds_built_ins_and_what_is_handed_over(folder, stock, offering):
    install_plugin(folder, "acme", offering("acme"))

    given = pizzabot_hookspecs
    plugins = Plugins(builtins=stock, discover=False, extra=[("mine", given)], disable=["acme"]).load()

    assert names(plugins) == ["sqlite-storage", "mine"]
    assert plugins.notes() == []


def test_an_object_that_is_handed_over_is_a_plugin_like_a_module(told):
    class Mine:
        @pizzabot_hookspecs.hookimpl
        def pizzabot_transports(self):
            return [pizzabot_hookspecs.Offer(name="smoke", summary="", create=lambda context, settings: self)]

    plugins = Plugins(builtins={}, discover=False, extra=[("mine", Mine())]).load()

    assert told(plugins, "mine").offers == {"transports": ["smoke"]}
    assert told(plugins, "mine").module.endswith("Mine")


def damage_entry_points_bytes(info):
    (info / "entry_points.txt").write_bytes(b"[pizzabot]\n\xff\xfe = broken\n")


def damage_entry_points_line(info):
    (info / "entry_points.txt").write_text("[pizzabot]\nthis is no entry point\n")


def damage_leftover(info):
    info.rename(info.with_name("~" + info.name[1:]))


@pytest.mark.parametrize("damage", [damage_entry_points_bytes, damage_entry_points_line, damage_leftover])
def test_a_dist_info_that_cannot_be_read_is_a_note_and_the_others_are_found(damage, folder, stock, offering):
    info = install_plugin(folder, "broken", offering("broken"))
    install_plugin(folder, "sound", offering("sound"))
    damage(info)
    importlib.invalidate_caches()

    plugins = Plugins(builtins=stock).load()

    assert names(plugins) == ["sqlite-storage", "sound"]
    (note,) = plugins.notes()
    assert "roken-1.0.dist-info" in note
    assert "\n" not in note


def damage_metadata_missing(info):
    (info / "METADATA").unlink()


def damage_metadata_bytes(info):
    (info / "METADATA").write_bytes(b"Name: \xff\xfe\n")


def damage_metadata_empty(info):
    (info / "METADATA").write_text("")


@pytest.mark.parametrize("damage", [damage_metadata_missing, damage_metadata_bytes, damage_metadata_empty])
def test_a_plugin_without_readable_metadata_is_loaded_and_its_distribution_is_the_folders_name(
    damage, folder, offering, told
):
    info = install_plugin(folder, "acme", offering("parrot"), requires=["pizzabot-host>=99"], version="1.5")
    damage(info)
    importlib.invalidate_caches()

    plugins = Plugins(builtins={}).load()

    report = told(plugins, "acme")
    assert (report.state, report.distribution, report.version) == (PluginState.LOADED, "acme", "1.5")
    (note,) = plugins.notes()
    assert "acme-1.5.dist-info: METADATA is damaged" in note


def test_a_foreign_finder_that_raises_is_a_note(folder, stock, monkeypatch):
    class Finder:
        @staticmethod
        def find_distributions(context=None):
            raise OSError("no such drive")

        @staticmethod
        def find_spec(name, path=None, target=None):
            return None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])

    plugins = Plugins(builtins=stock).load()
    assert names(plugins) == ["sqlite-storage"]
    assert "OSError: no such drive" in plugins.notes()[0]


def test_two_hosts_in_one_process_do_not_know_each_others_plugins(folder, stock, offering):
    install_plugin(folder, "acme", offering("acme"))

    with_it, without = Plugins(builtins=stock).load(), Plugins(builtins={}, discover=False).load()

    assert names(with_it) == ["sqlite-storage", "acme"]
    assert names(without) == []
    assert without.offers("model_providers") == []


def test_loading_twice_changes_nothing(folder, stock):
    plugins = Plugins(builtins=stock, disable=["gone"]).load()
    before = (plugins.report(), plugins.notes())

    assert plugins.load() is plugins
    assert (plugins.report(), plugins.notes()) == before


def test_the_packages_lie_on_plain_paths_where_type_checkers_find_them():
    for package in (pizzabot, pizzabot_hookspecs, pizzabot_builtin_plugins):
        (location,) = package.__path__
        assert str(Path(location).parent) in sys.path, (
            f"{package.__name__} is only found by an import hook (pylance#3473)"
        )


def test_the_table_of_built_ins_names_modules_of_their_package_only():
    assert all(module.startswith("pizzabot_builtin_plugins.") for module in BUILTINS.values())
