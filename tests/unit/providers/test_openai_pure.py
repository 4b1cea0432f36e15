"""The pure parts of the openai plugin: which cap an error teaches, and which addresses are addresses."""

from __future__ import annotations

import pytest

from pizzabot_builtin_plugins.openai.output_cap import learned_cap
from pizzabot_builtin_plugins.openai.settings import Endpoint, clean_url


@pytest.mark.parametrize(
    ("message", "current", "cap"),
    [
        ("max_tokens too large: max_total_tokens 4096", 8192, 4096),
        ("max_tokens: 20000, max_total_tokens=10000", 20_000, 8192),
        ("max_completion_tokens is too large. This model supports at most 4096 completion tokens", 8192, 4096),
        ("max_output_tokens: max_total_tokens: 10", 8192, 10),
        ("max_tokens too large: max_total_tokens 9000", 8192, None),
        ("max_tokens too large: max_total_tokens 0", 8192, None),
        ("max_tokens too large", 8192, None),
        ("max_total_tokens 100", 8192, None),
        ("something else", 8192, None),
    ],
)
def test_the_cap_that_an_error_teaches(message: str, current: int, cap: int | None) -> None:
    assert learned_cap(message, current) == cap


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("https://a.example/v1/", "https://a.example/v1"),
        (" http://[::1]:80 ", "http://[::1]:80"),
        ("http://h", "http://h"),
    ],
)
def test_an_address_loses_its_trailing_slashes(given: str, clean: str) -> None:
    assert clean_url(given) == clean


@pytest.mark.parametrize("given", ["", "host", "ftp://h", "http://", "http://u:p@h", "http://h?x=1", "http://h:port"])
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        clean_url(given)


def test_the_key_is_in_no_repr_and_the_place_has_no_path() -> None:
    endpoint = Endpoint(base_url="http://127.0.0.1:9/secret/v1", api_key="sk-key")
    assert "sk-key" not in repr(endpoint)
    assert endpoint.place == "http://127.0.0.1:9"
    assert not endpoint.official
    assert Endpoint(base_url="https://api.openai.com/v1", api_key=None).official
