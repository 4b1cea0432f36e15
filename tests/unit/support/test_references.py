"""References to secrets: what is one, what only looks like one, and what was meant as one and is wrong."""

from __future__ import annotations

import pytest

from pizzabot_hookspecs.errors import InvalidRequest
from pizzabot_hookspecs.support.references import Reference, find_references, parse_reference, replace_references


@pytest.mark.parametrize(
    ("value", "reference"),
    [
        ({"env": "A"}, Reference("env", "A")),
        ({"keyring": "work/openai"}, Reference("keyring", "work/openai")),
        ({"file": "n.1"}, Reference("file", "n.1")),
        ("${MY_KEY}", Reference(None, "MY_KEY")),
    ],
)
def test_references_are_read_and_written_the_same_way(value: object, reference: Reference) -> None:
    assert parse_reference(value) == reference
    assert str(reference) in ('{env = "A"}', '{keyring = "work/openai"}', '{file = "n.1"}', "${MY_KEY}")


@pytest.mark.parametrize(
    "value", ["A", "Bearer ${A}", "$A", {"env": "A", "x": 1}, {}, {"vault": "A"}, 5, None, ["${A}"]]
)
def test_anything_else_is_not_a_reference(value: object) -> None:
    assert parse_reference(value) is None


def test_a_store_of_a_third_party_is_a_key_when_it_is_known() -> None:
    assert parse_reference({"vault": "A"}, keys={"vault"}) == Reference("vault", "A")


@pytest.mark.parametrize(
    "value", [{"env": 5}, {"env": ""}, {"file": "/run/secrets/a"}, {"env": "a b"}, "${A-B}", "${}"]
)
def test_a_reference_that_is_meant_and_wrong_is_an_error(value: object) -> None:
    with pytest.raises(InvalidRequest) as raised:
        parse_reference(value)
    assert raised.value.code == "invalid_reference"
    assert "NAME" in raised.value.detail


SECTION = {"key": {"env": "A"}, "headers": {"X": "${B}", "Y": "plain"}, "list": [{"file": "C"}, 1]}


def test_references_are_found_with_their_paths() -> None:
    assert find_references(SECTION) == [
        (("key",), Reference("env", "A")),
        (("headers", "X"), Reference(None, "B")),
        (("list", 0), Reference("file", "C")),
    ]


def test_references_are_replaced_in_a_copy() -> None:
    replaced = replace_references(SECTION, lambda reference: f"<{reference.name}>")
    assert replaced == {"key": "<A>", "headers": {"X": "<B>", "Y": "plain"}, "list": ["<C>", 1]}
    assert SECTION["key"] == {"env": "A"}


def test_a_section_with_the_one_key_of_a_store_is_a_section() -> None:
    assert find_references({"file": "model.gguf"}) == []
    assert replace_references({"file": "model.gguf"}, lambda _: "x") == {"file": "model.gguf"}


def test_nesting_without_end_is_refused() -> None:
    value: dict[str, object] = {"x": 1}
    for _ in range(100):
        value = {"a": value, "b": 1}
    with pytest.raises(InvalidRequest, match="deeper than 32"):
        find_references(value)
    with pytest.raises(InvalidRequest, match="deeper than 32"):
        replace_references(value, str)
