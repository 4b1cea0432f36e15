"""Edited arguments and answers against the schemas that tools bring: every fault by its field, nothing fetched."""

import pytest

from pizzabot.host.runs.schemas import MAX_FAULTS, MAX_FIELD, faults, unknown_properties

ADDRESS = {"type": "object", "properties": {"street": {"type": "string"}, "next": {"$ref": "#/$defs/Address"}}}
TOOL = {
    "type": "object",
    "properties": {
        "to": {"type": "string"},
        "address": {"$ref": "#/$defs/Address"},
        "others": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}]}},
        "headers": {"type": "object"},
        "labels": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Address"}},
        "anything": {},
        "either": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "object"}]},
        "pair": {"type": "array", "prefixItems": [{"$ref": "#/$defs/Address"}]},
    },
    "$defs": {"Address": ADDRESS},
}


@pytest.mark.parametrize(
    ("value", "unknown"),
    [
        ({"to": "a"}, []),
        ({"to": "a", "TO": "b", "cc": 1}, ["args.TO", "args.cc"]),
        ({"address": {"street": "x", "number": 1}}, ["args.address.number"]),
        ({"address": {"next": {"next": {"street": "x", "zip": 1}}}}, ["args.address.next.next.zip"]),
        ({"others": [None, {"street": "x"}, {"street": "x", "s": 1}]}, ["args.others.2.s"]),
        ({"headers": {"X-Any": "1"}, "anything": {"deep": {"er": 1}}, "either": {"free": 1}}, []),
        ({"labels": {"home": {"street": "x"}, "work": {"strase": "x"}}}, ["args.labels.work.strase"]),
        ({"pair": [{"x": 1}, {"x": 1}]}, ["args.pair.0.x"]),
    ],
)
def test_what_a_schema_does_not_know_is_found_wherever_it_stands(value, unknown):
    assert list(unknown_properties(value, TOOL, "args")) == unknown


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": {}},
        {"type": "object", "properties": {"a": {}}, "unevaluatedProperties": True},
        {"type": "object", "properties": {"a": {}}, "patternProperties": {"^b$": {}}},
        {"allOf": [{"properties": {"a": {}}}, {"$ref": "#/$defs/A"}], "$defs": {"A": {"additionalProperties": True}}},
        {"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]},
        {"if": {"properties": {"a": {}}}, "then": {"properties": {"b": {}}}},
    ],
)  # fmt: skip
def test_a_schema_that_says_that_it_takes_more_takes_it(schema):
    assert unknown_properties({"a": 1, "b": 2}, schema, "args") == {}


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"properties": {}}, {"additionalProperties": False}])
def test_arguments_of_a_tool_without_any_are_unknown(schema):
    assert list(unknown_properties({"a": 1}, schema, "args")) == ["args.a"]


def test_a_refusal_names_a_bounded_number_of_fields():
    assert len(unknown_properties({str(number): 1 for number in range(1_000)}, {}, "args")) == MAX_FAULTS
    many = faults([1] * 1_000, {"type": "array", "items": {"type": "string"}}, "answer")
    assert len(many) == MAX_FAULTS


def test_a_field_has_a_name_of_bounded_length():
    value = {"n" * 100_000: [{"to": 1}] * 50}
    for told in (
        unknown_properties(value, {}, "args"),
        faults(value, {"additionalProperties": {"items": False}}, "args"),
    ):
        assert all(len(name) <= MAX_FIELD for name in told)
        assert told


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": "string", "pattern": "("},
        {"$ref": "#/$defs/Nowhere"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#"},
        {"$schema": 3},
        {"properties": 3},
    ],
)
def test_a_schema_that_cannot_be_used_refuses_in_one_line_and_fetches_nothing(schema):
    (told,) = faults("x", schema, "answer").values()
    assert "cannot be checked" in told
    assert "\n" not in told


@pytest.mark.parametrize(
    "schema", [{"$ref": 3}, {"$ref": "#/a/0"}, {"anyOf": 3}, {"properties": 3}, {"prefixItems": 3}]
)
def test_what_is_no_schema_knows_nothing(schema):
    assert list(unknown_properties({"a": 1}, schema, "args")) == ["args.a"]
