"""A tool's schema on its way to a model (spec/04 §8)."""

import json

from hypothesis import given
from hypothesis import strategies as st

from pizzabot_builtin_plugins.mcp_client.schemas import normalised
from pizzabot_builtin_plugins.mcp_client.settings import MAX_SCHEMA_NODES


def of(**properties):
    return {"type": "object", "properties": properties}


def test_unions_at_every_depth_and_nullable_types_stay_as_they_are():
    union = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"oneOf": [{"type": "integer"}, {"const": 1}]}}]}
    schema = of(a=union, b={"type": ["string", "null"], "description": "b"}, c={"additionalProperties": union})
    assert normalised(schema) == schema


def test_references_are_put_in_with_what_stands_beside_them():
    schema = {
        **of(a={"$ref": "#/$defs/Size", "description": "how large"}, b={"$ref": "#/definitions/x~1y"}),
        "$defs": {"Size": {"type": "integer", "minimum": 0, "description": "any"}},
        "definitions": {"x/y": {"type": "string"}},
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    }
    assert normalised(schema) == of(
        a={"type": "integer", "minimum": 0, "description": "how large"}, b={"type": "string"}
    )


def test_a_schema_that_contains_itself_ends_in_a_bare_object():
    schema = {
        **of(tree={"$ref": "#/$defs/Node"}),
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "v": {}}}},
    }
    assert normalised(schema) == of(tree=of(next={"type": "object"}, v={}))


def test_references_that_lead_out_or_nowhere_are_any_value():
    schema = of(a={"$ref": "https://example.org/x.json"}, b={"$ref": "#/$defs/nowhere"}, c={"$ref": "#/properties/a/0"})
    assert normalised(schema) == of(a={}, b={}, c={})


def test_all_of_is_merged():
    schema = of(
        a={
            "allOf": [
                {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]},
                {"properties": {"y": {"type": "integer"}}, "required": ["y", "x"], "title": "t"},
            ]
        }
    )
    assert normalised(schema)["properties"]["a"] == {
        "type": "object",
        "properties": {"x": {"type": "string"}, "y": {"type": "integer"}},
        "required": ["x", "y"],
        "title": "t",
    }


def test_the_root_is_an_object_and_its_variants_are_properties():
    schema = {"anyOf": [of(a={"type": "string"}), {**of(b={"type": "integer"}), "required": ["b"]}], "title": "t"}
    assert normalised(schema) == {**of(a={"type": "string"}, b={"type": "integer"}), "title": "t"}


def test_what_is_no_schema_takes_no_arguments():
    for odd in (None, True, [], "x", {}):
        assert normalised(odd) == {"type": "object", "properties": {}}


def test_references_that_double_at_each_level_are_bounded():
    definitions = {f"d{n}": of(a={"$ref": f"#/$defs/d{n + 1}"}, b={"$ref": f"#/$defs/d{n + 1}"}) for n in range(30)}
    schema = {**of(root={"$ref": "#/$defs/d0"}), "$defs": {**definitions, "d30": {"type": "string"}}}
    assert json.dumps(normalised(schema)).count("{") < 4 * MAX_SCHEMA_NODES


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["#", "#/a", "#/properties/a"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["$ref", "allOf", "anyOf", "properties", "items", "type", "required", "a", "$defs", "enum"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(JSON)
def test_any_json_becomes_an_object_schema(schema):
    result = normalised(schema)
    assert result["type"] == "object"
    assert isinstance(result["properties"], dict)
    assert "$ref" not in result
    json.dumps(result)
