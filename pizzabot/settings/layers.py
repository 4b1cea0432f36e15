"""Layers of values (file, environment, command line), each with its source, merged from weakest to strongest."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from pizzabot.settings.paths import Path, at, leaves, put

DEFAULT = "default"
COMMAND_LINE = "command line"


@dataclass(frozen=True, kw_only=True)
class Layer:
    """`source(path)` says where the layer's value at `path` was written, for people."""

    values: dict[str, Any]
    source: Callable[[Path], str]


@dataclass(kw_only=True)
class Merged:
    """Values of all layers, and which layer each came from."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path, Layer] = field(default_factory=dict)

    def add(self, layer: Layer, keys: Collection[str]) -> None:
        for path, value in list(leaves(layer.values, keys)):
            if value == {} and isinstance(at(self.values, path), Mapping):
                continue  # an empty table adds nothing to a table
            for known in [known for known in self.origins if _overlap(known, path)]:
                del self.origins[known]
            put(self.values, path, copy.deepcopy(value))
            self.origins[path] = layer

    def source(self, path: Path) -> str:
        """Where the value at `path`, or the nearest table around it, was written; `default` where nowhere."""
        for length in range(len(path), 0, -1):
            if (layer := self.origins.get(path[:length])) is not None:
                return layer.source(path)
        below = [origin for origin in self.origins if origin[: len(path)] == path]
        return self.origins[below[0]].source(path) if below else DEFAULT


def _overlap(known: Path, path: Path) -> bool:
    length = min(len(known), len(path))
    return known[:length] == path[:length]


def merge(layers: Sequence[Layer], keys: Collection[str]) -> Merged:
    """The layers in one, later ones winning. A value replaces a reference, and a reference a value; they never mix."""
    merged = Merged()
    for layer in layers:
        merged.add(layer, keys)
    return merged


class MergedSource(PydanticBaseSettingsSource):
    """Hands merged values to pydantic-settings, which validates them and fills in defaults."""

    def __init__(self, settings_cls: type[BaseSettings], values: Mapping[str, Any]) -> None:
        super().__init__(settings_cls)
        self._values = dict(values)

    def get_field_value(self, field: object, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        return self._values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return self._values
