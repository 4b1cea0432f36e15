"""Values checked against JSON Schemas that tools bring: what does not fit is named by its field.

A schema that cannot be used refuses everything: permissions fail closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

MAX_FAULTS = 20
"""Fields that one refusal names."""
MAX_FAULT_TEXT = 300
MAX_FIELD = 200
"""Characters of a field's name: a client chose its keys."""
_BRANCHES = ("allOf", "anyOf", "oneOf")
_CONDITIONAL = ("if", "then", "else")
_OPENING = ("additionalProperties", "unevaluatedProperties", "patternProperties")


def faults(value: object, schema: Mapping[str, Any], field: str) -> dict[str, str]:
    """What is wrong with `value`, by dotted field below `field`; empty when it is valid."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    try:
        Draft202012Validator.check_schema(dict(schema))
        # An empty registry: a schema of somebody else's must not have the server fetch what it refers to.
        validator = Draft202012Validator(dict(schema), registry=Registry())
        errors = list(islice(validator.iter_errors(value), MAX_FAULTS))
    except Exception as error:  # noqa: BLE001 - a bad pattern, a reference to nowhere, one that goes round in circles
        cause = " ".join(str(getattr(error, "message", error)).split())[:MAX_FAULT_TEXT] or type(error).__name__
        return {field: f"cannot be checked: the schema is itself invalid ({cause}); reject it"}
    return {_dotted([field, *map(str, error.absolute_path)]): error.message[:MAX_FAULT_TEXT] for error in errors}


def unknown_properties(value: object, schema: Mapping[str, Any], field: str) -> dict[str, str]:
    """What `value` has that `schema` does not know, by dotted field, though JSON Schema would let it pass.

    A tool drops such an argument without a word, so a person who misspelt one would not learn that it had no effect.
    An object is open only where its schema says so: `additionalProperties`, `patternProperties`, or, inside the
    arguments, no properties at all.
    """
    found = (_dotted([name]) for name in _unknown(value, [schema], schema, field, outermost=True))
    return dict.fromkeys(islice(found, MAX_FAULTS), "is not an argument that the tool knows")


def _dotted(steps: Sequence[str]) -> str:
    name = ".".join(steps)
    return name if len(name) <= MAX_FIELD else f"{name[: MAX_FIELD - 1]}…"


def _unknown(
    value: object, schemas: Sequence[object], root: Mapping[str, Any], field: str, *, outermost: bool = False
) -> Iterator[str]:
    """`schemas` all speak of `value`."""
    parts = list(_parts(schemas, root))
    if isinstance(value, Mapping):
        known = [properties for part in parts if isinstance(properties := part.get("properties"), Mapping)]
        is_open = any(part.get(key, False) is not False for part in parts for key in _OPENING)
        is_open = is_open or (not outermost and (not known or any(map(_takes_any_object, parts))))
        for name, inner in value.items():
            about = [properties[name] for properties in known if name in properties]
            if about:
                yield from _unknown(inner, about, root, f"{field}.{name}")
            elif not is_open:
                yield f"{field}.{name}"
            elif rest := [part["additionalProperties"] for part in parts if "additionalProperties" in part]:
                yield from _unknown(inner, rest, root, f"{field}.{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            about = [item for part in parts for item in _items(part, number)]
            yield from _unknown(inner, about, root, f"{field}.{number}")


def _takes_any_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" and not {"properties", "$ref", *_BRANCHES} & schema.keys()


def _items(schema: Mapping[str, Any], number: int) -> Iterator[object]:
    first = schema.get("prefixItems")
    if isinstance(first, list) and number < len(first):
        yield first[number]
    elif "items" in schema:
        yield schema["items"]


def _parts(schemas: Sequence[object], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schemas and all that they refer to for the same value. What a branch of a choice knows is known."""
    waiting, seen = list(schemas), set[int]()
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        waiting += [schema[key] for key in _CONDITIONAL if key in schema]
        waiting += [one for key in _BRANCHES if isinstance(schema.get(key), list) for one in schema[key]]
        if isinstance(reference := schema.get("$ref"), str):
            waiting.append(_referred(root, reference))


def _referred(root: Mapping[str, Any], reference: str) -> object:
    """What a reference inside the schema names; None for any other."""
    if not reference.startswith("#"):
        return None
    found: object = root
    for step in reference[1:].split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found
