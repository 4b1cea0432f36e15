"""References to secrets, parsed and found: `{env|keyring|file = "NAME"}` in TOML, `"${NAME}"` in JSON.

A table is a reference when its only key is that of a secret store. `"${NAME}"` counts as a whole value only, never
inside a longer text (spec/09 §8), and asks every store in order. The host resolves them (`Secrets`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pizzabot_hookspecs.errors import InvalidRequest

REFERENCE_KEYS: frozenset[str] = frozenset({"env", "keyring", "file"})
"""The keys that are always references. A store of a third party adds its own name (`{vault = "NAME"}`)."""

MAX_DEPTH = 32
"""How deep a section may be nested; TOML by hand never comes near it."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/@-]{0,127}")
_DOLLAR = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True)
class Reference:
    """`key` is `env`, `keyring`, `file` or a store's own name; None asks every store in order (`${NAME}`)."""

    key: str | None
    name: str

    def __str__(self) -> str:
        return f"${{{self.name}}}" if self.key is None else f'{{{self.key} = "{self.name}"}}'


def parse_reference(value: object, *, keys: Collection[str] = REFERENCE_KEYS) -> Reference | None:
    """The reference that `value` is, or None for any other value.

    Raises `InvalidRequest` `invalid_reference` for what was meant as one and is not: `{env = 5}`, `"${A-B}"`.
    """
    if isinstance(value, str):
        return _parse_dollar(value)
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    key, name = next(iter(value.items()))
    if key not in keys:
        return None
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidRequest(
            "invalid_reference",
            f'a secret reference is {{{key} = "NAME"}} with a NAME of letters, digits and _ . : / @ - (at most 128),'
            f" not {_shown(name)}",
        )
    return Reference(key, name)


def _parse_dollar(text: str) -> Reference | None:
    match = _DOLLAR.fullmatch(text)
    if match is None:
        return None
    if not _VARIABLE.fullmatch(match[1]):
        raise InvalidRequest(
            "invalid_reference",
            f"a secret reference is ${{NAME}} with a NAME of letters, digits and _ (at most 128), not {_shown(text)}",
        )
    return Reference(None, match[1])


def _shown(value: object) -> str:
    return repr(value)[:80]


def find_references(
    value: object, *, keys: Collection[str] = REFERENCE_KEYS
) -> list[tuple[tuple[str | int, ...], Reference]]:
    """The references below `value` with their paths. `value`, a section, is never one: `[models.x] file = "m"`."""
    return list(_walk(value, (), keys))


def _walk(
    value: object, path: tuple[str | int, ...], keys: Collection[str]
) -> Iterator[tuple[tuple[str | int, ...], Reference]]:
    if path and (reference := parse_reference(value, keys=keys)) is not None:
        yield path, reference
        return
    _check_depth(len(path))
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _walk(inner, (*path, str(key)), keys)
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _walk(inner, (*path, index), keys)


def replace_references(
    section: Mapping[str, Any], resolve: Callable[[Reference], str], *, keys: Collection[str] = REFERENCE_KEYS
) -> dict[str, Any]:
    """A copy of `section` in which each reference below it is what `resolve` gives for it."""
    return {key: _replaced(value, resolve, keys, 1) for key, value in section.items()}


def _replaced(value: Any, resolve: Callable[[Reference], str], keys: Collection[str], depth: int) -> Any:
    if (reference := parse_reference(value, keys=keys)) is not None:
        return resolve(reference)
    _check_depth(depth)
    if isinstance(value, Mapping):
        return {key: _replaced(inner, resolve, keys, depth + 1) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(inner, resolve, keys, depth + 1) for inner in value]
    return value


def _check_depth(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise InvalidRequest("invalid_reference", f"settings are nested deeper than {MAX_DEPTH} levels")
