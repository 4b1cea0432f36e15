"""The environment as a layer: `PIZZABOT__SECTION__KEY` for any setting, and short names for the common ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pizzabot.settings.layers import Layer
from pizzabot.settings.paths import Path, at, leaves, put
from pizzabot.settings.scalars import parse_scalar
from pizzabot_hookspecs.support.redaction import names_a_secret

PREFIX = "PIZZABOT__"

ALLOW_FOLDERS = "PIZZABOT_ALLOW_LOCAL_FOLDER_CONFIGURATION"
"""On with exactly `1`, off with anything else (spec/01 §1)."""

ALIASES: dict[str, Path] = {
    "PORT": ("transports", "http", "port"),
    "PIZZABOT_HOST": ("transports", "http", "host"),
    "PIZZABOT_API_TOKEN": ("transports", "http", "token"),
    "PIZZABOT_ALLOWED_ORIGINS": ("transports", "http", "allowed_origins"),
    "PIZZABOT_MODEL": ("models", "default"),
    "PIZZABOT_DATA_ROOT": ("data_root",),
    ALLOW_FOLDERS: ("folders", "configure"),
    "PIZZABOT_LOCAL_FOLDER_BROWSE_ROOTS": ("folders", "browse_roots"),
    "PIZZABOT_EXTERNAL_PLUGINS_DIRS": ("bundles", "external"),
    "PIZZABOT_LOG_LEVEL": ("logging", "level"),
    "PIZZABOT_NO_PLUGINS": ("plugins", "discover"),
}
"""Short names; the long one wins where both are set. A variable that is empty or blank counts as unset."""


def environment_layer(environ: Mapping[str, str], known: Mapping[str, Any], keys: Collection[str]) -> Layer:
    """`known` are the file's values: a variable finds its key there whatever its case, and `_` for `-`."""
    values: dict[str, Any] = {}
    names: dict[Path, str] = {}
    for name, path, value in [*_aliases(environ), *_long_names(environ, known)]:
        put(values, path, value)
        names[path] = name
        names.update({inner: name for inner, _ in leaves(value, keys, path)} if isinstance(value, dict) else {})
    return Layer(values=values, source=lambda path: f"environment {_nearest(names, path)}")


def _nearest(names: Mapping[Path, str], path: Path) -> str:
    for length in range(len(path), 0, -1):
        if path[:length] in names:
            return names[path[:length]]
    return next((name for inner, name in names.items() if inner[: len(path)] == path), PREFIX)


def _aliases(environ: Mapping[str, str]) -> list[tuple[str, Path, Any]]:
    return [
        (name, path, _alias_value(name, environ[name] if name == ALLOW_FOLDERS else text))
        for name, path in ALIASES.items()
        if (text := environ.get(name, "").strip())
    ]


def _alias_value(name: str, text: str) -> Any:
    if name == "PIZZABOT_NO_PLUGINS":
        return text.lower() in {"0", "false", "no", "off"}
    if name == ALLOW_FOLDERS:
        return text == "1"
    if name == "PIZZABOT_ALLOWED_ORIGINS":
        return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if name == "PORT":
        return parse_scalar(text)
    return text


def _long_names(environ: Mapping[str, str], known: Mapping[str, Any]) -> list[tuple[str, Path, Any]]:
    """Shorter paths first, so that `PIZZABOT__A='{…}'` does not wipe out `PIZZABOT__A__B`."""
    found = []
    for name in sorted(environ, key=lambda name: (name.count("__"), name)):
        text = environ[name].strip()
        if name.startswith(PREFIX) and text:
            path = _path(name.removeprefix(PREFIX).split("__"), known)
            found.append((name, path, parse_scalar(text, secret=names_a_secret(path[-1]))))
    return found


def _path(parts: list[str], known: Mapping[str, Any]) -> Path:
    path: Path = ()
    for part in parts:
        siblings = at(known, path) if path else known
        same = [key for key in siblings or () if _folded(key) == _folded(part)] if isinstance(siblings, Mapping) else []
        path = (*path, same[0] if same else part.lower())
    return path


def _folded(text: str) -> str:
    return text.lower().replace("-", "_")
