"""The pure parts of the ollama plugin: addresses in Ollama's own spelling, and repaired arguments."""

from __future__ import annotations

from typing import Any

import pytest

from pizzabot_builtin_plugins.ollama.repair import parsed_arguments, repaired_keys
from pizzabot_builtin_plugins.ollama.settings import clean_host


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("http://localhost:11434/", "http://localhost:11434"),
        ("example", "http://example:11434"),
        ("example:80", "http://example:80"),
        (":9000", "http://localhost:9000"),
        ("0.0.0.0", "http://localhost:11434"),
        ("http://[::]:5", "http://localhost:5"),
        ("[::1]:5", "http://[::1]:5"),
        ("https://o.example/sub/", "https://o.example:443/sub"),
    ],
)
def test_a_host_may_lack_scheme_name_or_port(given: str, clean: str) -> None:
    assert clean_host(given) == clean


@pytest.mark.parametrize("given", ["ftp://h", "http://u:p@h", "http://h?x", "http://h:port", "http://h:99999"])
def test_what_is_no_host_is_refused(given: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        clean_host(given)


def tools(*keys: str) -> list[dict[str, Any]]:
    return [{"function": {"name": "f", "parameters": {"properties": {key: {} for key in keys}}}}]


@pytest.mark.parametrize(
    ("keys", "args", "expected"),
    [
        (("filePath",), {"file_path": 1}, {"filePath": 1}),
        (("file_path",), {"FilePath": 1}, {"file_path": 1}),
        (("filePath",), {"filePath": 1, "file_path": 2}, {"filePath": 1, "file_path": 2}),
        (("fileA", "file_a"), {"FILE-A": 1}, {"FILE-A": 1}),
        (("a",), {"b": 1}, {"b": 1}),
        (("filePath",), {"file_path": 1, "file-path": 2}, {"filePath": 1, "file-path": 2}),
        ((), {"a": 1}, {"a": 1}),
    ],
)
def test_a_key_is_repaired_where_it_fits_one_schema_key_only(keys: Any, args: Any, expected: Any) -> None:
    assert repaired_keys("f", args, tools(*keys)) == expected


def test_the_arguments_of_an_unknown_tool_stay_as_they_are() -> None:
    assert repaired_keys("g", {"A": 1}, tools("a")) == {"A": 1}
    assert repaired_keys("f", {"A": 1}, [{}, {"function": {"name": "f"}}]) == {"A": 1}


@pytest.mark.parametrize("part", [{}, {"message": None}, {"message": {}}, {"message": {"tool_calls": None}}])
def test_a_part_without_calls_stays_as_it_is(part: Any) -> None:
    assert parsed_arguments(part) == part
