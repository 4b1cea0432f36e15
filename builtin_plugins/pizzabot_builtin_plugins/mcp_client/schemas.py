"""A tool's schema as models take it: references put in, `allOf` merged, variants kept, an object at its root, bounded.

Unions, nullable types and annotations stay as the server wrote them (spec/04 §8).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from pizzabot_builtin_plugins.mcp_client.settings import MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES

_VARIANTS = ("anyOf", "oneOf")
_DEFINITIONS = ("$defs", "definitions")
_META = frozenset({"$schema", "$id", "$anchor", "$comment", "$dynamicAnchor"})
_MAPS = frozenset({"properties", "patternProperties", "dependentSchemas"})
_LITERAL = frozenset({"const", "default", "enum", "example", "examples", "required"})


def normalised(schema: object) -> dict[str, Any]:
    """A copy that stands alone. What is no schema, or is beyond the bounds, accepts any value at that place."""
    if not isinstance(schema, Mapping):
        return {"type": "object", "properties": {}}
    return _with_object_root(_Walk(schema).node(schema, 0, ()))


class _Walk:
    """One schema. `budget` counts the nodes that were written: references can double them at each level."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._budget = MAX_SCHEMA_NODES

    def node(self, schema: object, depth: int, open_references: tuple[str, ...]) -> dict[str, Any]:
        self._budget -= 1
        if not isinstance(schema, Mapping) or depth > MAX_SCHEMA_DEPTH or self._budget < 0:
            return {}  # `true`, too: any value
        result: dict[str, Any] = {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            result |= self._referred(reference, depth, open_references)
        for key, value in schema.items():
            if key not in _META and key not in _DEFINITIONS and key not in {"$ref", "allOf"}:
                result[key] = self._value(key, value, depth, open_references)
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            _merge(result, self.node(part, depth + 1, open_references))
        return result

    def _value(self, key: str, value: object, depth: int, open_references: tuple[str, ...]) -> object:
        if key in _LITERAL:
            return value
        if key in _MAPS and isinstance(value, Mapping):
            return {str(name): self.node(inner, depth + 1, open_references) for name, inner in value.items()}
        if isinstance(value, Mapping):
            return self.node(value, depth + 1, open_references)
        if isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
            return [
                self.node(inner, depth + 1, open_references) if isinstance(inner, Mapping) else inner for inner in value
            ]
        return value

    def _referred(self, reference: str, depth: int, open_references: tuple[str, ...]) -> dict[str, Any]:
        if reference in open_references:
            return {"type": "object"}  # it contains itself
        found = self._find(reference)
        return {} if found is None else self.node(found, depth + 1, (*open_references, reference))

    def _find(self, reference: str) -> object | None:
        """What a pointer within this schema leads to; another document is never fetched."""
        if not reference.startswith("#"):
            return None
        place: object = self._root
        for part in unquote(reference[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, Mapping) and name in place:
                place = place[name]
            elif isinstance(place, list) and name.isdigit() and int(name) < len(place):
                place = place[int(name)]
            else:
                return None
        return place


def _merge(target: dict[str, Any], part: Mapping[str, Any]) -> None:
    """Put one schema of an `allOf` into the others: properties and required together, the rest where it is missing."""
    for key, value in part.items():
        own = target.get(key)
        if isinstance(own, dict) and isinstance(value, Mapping):
            target[key] = {**value, **own}
        elif key == "required" and isinstance(own, list) and isinstance(value, list):
            target[key] = [*own, *(name for name in value if name not in own)]
        elif own is None:
            target[key] = value


def _with_object_root(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments are an object, and models take no variants at the root: theirs become properties that may be there."""
    variants = [variant for key in _VARIANTS for variant in _mappings(schema.pop(key, None))]
    properties = dict(schema["properties"]) if isinstance(schema.get("properties"), dict) else {}
    for variant in variants:
        for name, inner in _mapping(variant.get("properties")).items():
            properties.setdefault(name, inner)
    return {**schema, "type": "object", "properties": properties}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [inner for inner in value if isinstance(inner, Mapping)] if isinstance(value, list) else []
