"""Making what an offer offers: settings are validated first, a failure names plugin, offer and cause, no secret."""

from __future__ import annotations

import pytest

from pizzabot.kernel import Plugins
from pizzabot.testing.plugins import install_plugin
from pizzabot_hookspecs import InvalidRequest, Unavailable

KIND = "storage_backends"

WITH_SETTINGS = """
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pizzabot_hookspecs import Offer, hookimpl

class Pool(BaseModel):
    size: int = 1

class Settings(BaseModel):
    model_config = ConfigDict(extra="{extra}")
    dsn: str = Field(min_length=5)
    pool: Pool = Pool()

    @field_validator("dsn")
    @classmethod
    def no_http(cls, value):
        if value.startswith("http"):
            raise ValueError("not a database: " + value)
        return value

@hookimpl
def pizzabot_storage_backends():
    return [Offer(name="{name}", summary="", create=lambda context, settings: (context, settings), settings=Settings)]
"""


def making(body: str, extra: str | None = None) -> str:
    return f"""
from pizzabot_hookspecs import Offer, Unavailable, hookimpl

def create(context, settings):
    {body}

@hookimpl
def pizzabot_storage_backends():
    return [Offer(name="postgres", summary="", create=create, extra={extra!r})]
"""


def make(plugins, use, context, section=None, chosen=None):
    return plugins.create(plugins.choose(KIND, chosen or use), use=use, section=section or {}, context=context)


def test_create_gets_the_context_of_its_use_and_validated_settings(folder, context):
    install_plugin(folder, "acme", WITH_SETTINGS.format(name="postgres", extra="forbid"))
    plugins = Plugins(builtins={}).load()

    section = {"use": "postgres", "dsn": "pg://x", "pool": {"size": "3"}}
    made_context, settings = make(plugins, "main", context, section, chosen="postgres")

    assert (made_context.name, made_context.inner) == ("main", None)
    assert (settings.dsn, settings.pool.size) == ("pg://x", 3)


def test_an_offer_without_settings_gets_the_section_as_a_dict_without_the_hosts_own_key(folder, context):
    install_plugin(folder, "acme", making("return settings"))

    made = make(Plugins(builtins={}).load(), "postgres", context, {"use": "postgres", "dsn": "x"})
    assert made == {"dsn": "x"}


def test_wrong_settings_name_each_field_and_never_the_value(folder, context):
    install_plugin(folder, "acme", WITH_SETTINGS.format(name="postgres", extra="forbid"))
    section = {"dsn": "http://s3cret", "pool": {"size": "s3cret"}, "typo": "s3cret"}

    with pytest.raises(InvalidRequest) as caught:
        make(Plugins(builtins={}).load(), "postgres", context, section)

    assert caught.value.code == "invalid_settings"
    assert sorted(caught.value.fields) == ["dsn", "pool.size", "typo"]
    assert caught.value.detail.startswith('settings of "postgres" (acme:postgres): dsn: ')
    assert "s3cret" not in caught.value.detail + str(caught.value.fields)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("raise ValueError('no route to s3cret')", "ValueError: no route to [redacted]"),
        ("raise SystemExit('bye')", "SystemExit: bye"),
        ("return None", "its `create` returned None"),
    ],
)
def test_a_create_that_fails_names_plugin_offer_use_and_cause(body, cause, folder, context):
    install_plugin(folder, "acme", making(body))

    with pytest.raises(Unavailable) as caught:
        make(Plugins(builtins={}).load(), "main", context, chosen="postgres")

    assert caught.value.code == "plugin_failed"
    expected = f'the plugin "acme" could not make "postgres" of kind {KIND} for "main": {cause}'
    assert caught.value.detail == expected


def test_an_async_create_is_told_without_a_warning_that_nobody_awaited_it(folder, context):
    install_plugin(folder, "acme", making("return 1").replace("def create", "async def create"))

    with pytest.raises(Unavailable, match="async def"):
        make(Plugins(builtins={}).load(), "postgres", context)


def test_a_pizzabot_error_of_the_plugin_passes_as_it_is(folder, context):
    install_plugin(folder, "acme", making("raise Unavailable('damaged', 'restore the copy')"))

    with pytest.raises(Unavailable) as caught:
        make(Plugins(builtins={}).load(), "postgres", context)
    assert (caught.value.code, caught.value.detail) == ("damaged", "restore the copy")


def test_a_missing_optional_package_is_answered_with_the_command_that_installs_it(folder, context):
    install_plugin(folder, "acme", making("import no_such_driver", extra="postgres"))

    with pytest.raises(Unavailable) as caught:
        make(Plugins(builtins={}).load(), "postgres", context)
    assert caught.value.code == "missing_extra"
    assert 'pip install "pizzabot-host[postgres]"' in caught.value.detail
    assert "no_such_driver" in caught.value.detail


def test_an_extra_that_the_plugins_own_distribution_declares_is_installed_from_there(folder, context):
    info = install_plugin(folder, "acme", making("import no_such_driver", extra="postgres"), distribution="acme-store")
    metadata = info / "METADATA"
    metadata.write_text(metadata.read_text().rstrip("\n") + "\nProvides-Extra: postgres\n\n")

    with pytest.raises(Unavailable, match=r'pip install "acme-store\[postgres\]"'):
        make(Plugins(builtins={}).load(), "postgres", context)


def test_an_import_error_without_an_extra_names_the_missing_module(folder, context):
    install_plugin(folder, "acme", making("import no_such_driver"))

    with pytest.raises(
        Unavailable, match="acme:postgres cannot be imported: ModuleNotFoundError: No module named 'no_such_driver'"
    ) as caught:
        make(Plugins(builtins={}).load(), "postgres", context)
    assert caught.value.code == "plugin_failed"


def test_a_stand_in_makes_the_one_it_replaces_with_the_part_of_the_section_that_it_knows(folder, context):
    (folder / "stock_storage.py").write_text(WITH_SETTINGS.format(name="sqlite", extra="forbid"))
    stand_in = making("return settings, context.inner").replace("postgres", "sqlite")
    install_plugin(folder, "acme", stand_in)
    plugins = Plugins(builtins={"sqlite-storage": "stock_storage"}).load()

    own, inner = make(plugins, "sqlite", context, {"dsn": "pg://x", "audit": "log.txt"})

    assert own == {"dsn": "pg://x", "audit": "log.txt"}
    inner_context, inner_settings = inner()
    assert (inner_context.name, inner_context.inner, inner_settings.dsn) == ("sqlite", None, "pg://x")


def test_listing_and_choosing_create_nothing(folder):
    install_plugin(folder, "acme", making("raise SystemExit"))

    plugins = Plugins(builtins={}).load()
    assert plugins.choose(KIND, "postgres").offer.name == "postgres"
    assert plugins.to_json()["plugins"][0]["state"] == "loaded"
