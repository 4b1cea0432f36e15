"""Settings are trimmed, checked and bounded; loopback is what statement 39 says; an import costs nothing."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from pizzabot_builtin_plugins.http_server import pizzabot_transports
from pizzabot_builtin_plugins.http_server.addresses import Doors, check_exposure, is_loopback
from pizzabot_builtin_plugins.http_server.settings import HttpSettings


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LocalHost"])
def test_it_is_loopback(host):
    assert is_loopback(host)
    check_exposure(HttpSettings(host=host))


@pytest.mark.parametrize(
    "host",
    ["127.example.com", "0.0.0.0", "::", "", "127.1", "0127.0.0.1", "localhost.example", "::ffff:127.0.0.1", "1"],
)
def test_it_is_not_loopback(host):
    assert not is_loopback(host)


def test_a_comma_list_from_the_environment_is_trimmed_and_has_no_repeats():
    settings = HttpSettings.model_validate({"allowed_origins": " https://a.example , null,https://A.example/,, "})
    assert settings.allowed_origins == ["https://a.example", "null"]


def test_without_a_list_no_other_origin_may_call():
    assert HttpSettings().origins == set()
    assert HttpSettings(allowed_origins=[]).origins == set()


@pytest.mark.parametrize(
    ("field", "value"),
    [("allowed_origins", ["*"]), ("allowed_origins", ["a.example"]), ("allowed_origins", ["https://a.example/path"]),
     ("allowed_origins", [1]), ("allowed_hosts", ["http://a"]), ("allowed_hosts", ["*"]), ("port", -1),
     ("port", 65536), ("host", "  "), ("heartbeat_seconds", 11), ("limits", {"stop_seconds": 5}),
     ("limits", {"unknown": 1}), ("unknown", 1)],
)  # fmt: skip
def test_a_wrong_setting_is_refused_by_its_name(field, value):
    with pytest.raises(ValidationError) as refused:
        HttpSettings.model_validate({field: value})
    assert refused.value.errors()[0]["loc"][0] == field


def test_the_token_is_trimmed_and_never_printed():
    settings = HttpSettings.model_validate({"token": "  secret-token \n"})
    assert settings.token is not None
    assert settings.token.get_secret_value() == "secret-token"
    assert "secret-token" not in repr(settings)
    assert HttpSettings.model_validate({"token": "   "}).token is None


def test_the_address_that_is_printed_can_be_opened():
    assert Doors.of(HttpSettings(), 81).address == "http://127.0.0.1:81"
    assert Doors.of(HttpSettings(host="::1"), 81).address == "http://[::1]:81"
    assert Doors.of(HttpSettings(host="[::1]"), 81).address == "http://[::1]:81"


def test_a_page_served_from_the_very_host_it_calls_is_same_origin():
    doors = Doors.of(HttpSettings(allowed_hosts=["box.lan"]), 8080)
    assert doors.admits_origin("http://box.lan:9000", "box.lan:9000")
    assert not doors.admits_origin("http://box.lan:9000", "box.lan:8080")
    assert not doors.admits_origin("https://box.lan:9000", "box.lan:9000")


def test_the_offer_is_called_http_and_has_its_settings():
    (offer,) = pizzabot_transports()
    assert (offer.name, offer.settings) == ("http", HttpSettings)


def test_neither_the_import_nor_the_bind_loads_the_web_framework():
    code = """
import asyncio, pathlib, sys, time
import pizzabot_builtin_plugins.http_server as plugin
assert "pydantic" not in sys.modules
from pizzabot_hookspecs import Context
(offer,) = plugin.pizzabot_transports()
context = Context(name="http", data_root=pathlib.Path("."), logger=None, secrets=None, clock=time.time, redact=str)
async def main():
    async with offer.create(context, offer.settings(port=0)) as transport:
        await transport.bind()
        assert transport.address.startswith("http://127.0.0.1:")
        assert not transport.address.endswith(":0")
asyncio.run(main())
print(sorted({"litestar", "uvicorn", "langgraph", "httpx"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
