"""`Manifest`: what `.claude-plugin/plugin.json` says, by the rules of spec/04 §6. Unknown fields are passed over."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pizzabot_builtin_plugins.bundles.engines import engine_fault, missing_capabilities, wrong_capability
from pizzabot_builtin_plugins.bundles.faults import incompatible
from pizzabot_builtin_plugins.bundles.json_files import JsonFile
from pizzabot_builtin_plugins.bundles.materializer_entry import EXTENSION, read_materializer
from pizzabot_hookspecs.bundles import MaterializerEntry
from pizzabot_hookspecs.wire import JsonValue

API_VERSION = "pizza-bot/v1"
MAX_NAME = 64
MAX_PATHS = 64
"""Paths of skills, and of files of MCP servers."""
MAX_TEXT = 2_000
"""Characters of a text about a bundle; a longer one is cut."""
MAX_KEYWORDS = 50
UNSUPPORTED = ("commands", "agents", "hooks", "outputStyles", "lspServers")
"""Fields and folders of the public format that there is nothing for here; a bundle that has them is told so."""

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
_CAPABILITIES = ("required", "optional")
_TEXTS = ("displayName", "description", "homepage", "license")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """`servers` is what `mcpServers` holds: paths and maps, in order."""

    said: JsonFile
    name: str
    enabled: bool = True
    skills: tuple[str, ...] = ()
    servers: tuple[str | dict[str, Any], ...] = ()
    materializer: MaterializerEntry | None = None
    dropped: tuple[str, ...] = ()


def valid_name(name: object) -> bool:
    return isinstance(name, str) and len(name) <= MAX_NAME and _NAME.fullmatch(name) is not None


def header(said: JsonFile, folder: str) -> tuple[str, str]:
    """Name and apiVersion as far as they can be had, for a report of whatever else is wrong."""
    name, version = said.values.get("name"), said.values.get("apiVersion", API_VERSION)
    return (name if isinstance(name, str) and valid_name(name) else folder), (
        version[:80] if isinstance(version, str) and version else "unknown"
    )


def check_api_version(said: JsonFile) -> None:
    """Before anything else: of another version nothing can be said to be wrong. Raises `BundleFaultError`."""
    version = said.values.get("apiVersion", API_VERSION)
    if version != API_VERSION:
        reason = f"`apiVersion` {version!r} is not known here: only {API_VERSION}"
        raise incompatible(reason, file=said.name, line=said.line("apiVersion"))


def read_about(said: JsonFile) -> dict[str, JsonValue]:
    """What there is to tell of the bundle, also of one that does not load."""
    about, _ = _about(said)
    engines, capabilities = said.values.get("engines"), said.values.get("capabilities")
    if isinstance(engines, dict) and isinstance(engines.get("pizzaBot"), str):
        about["engine"] = engines["pizzaBot"][:MAX_TEXT]
    if isinstance(capabilities, dict):
        about["capabilities"] = {key: _told("keywords", capabilities.get(key)) or [] for key in _CAPABILITIES}
    return about


def read_manifest(said: JsonFile, *, host_version: str) -> Manifest:
    """Raises `BundleFaultError`."""
    values = said.values
    check_api_version(said)
    if not valid_name(values.get("name")):
        reason = f"`name` has to be 1 to {MAX_NAME} of a-z 0-9 -, a letter or digit first, not {values.get('name')!r}"
        raise said.fault(reason, "name")
    _, odd = _about(said)
    _check_engines(said, host_version)
    _check_capabilities(said)
    extensions = values.get("extensions", {})
    if not isinstance(extensions, dict):
        raise said.fault("`extensions` has to be an object", "extensions")
    entry = extensions.get(EXTENSION)
    return Manifest(
        said=said,
        name=values["name"],
        enabled=_flag(said, "enabled"),
        skills=_paths(said, "skills"),
        servers=_servers(said),
        materializer=None if entry is None else read_materializer(said, entry),
        dropped=(*(key for key in UNSUPPORTED if key in values), *odd),
    )


def _about(said: JsonFile) -> tuple[dict[str, JsonValue], list[str]]:
    """What there is to tell, and the names of what cannot be told because it has another shape."""
    about: dict[str, JsonValue] = {}
    odd: list[str] = []
    version = said.values.get("version")
    if version is not None:
        if not isinstance(version, str) or not version.strip():
            raise said.fault("`version` has to be text that is not empty", "version")
        about["version"] = version[:MAX_TEXT]
    for key in (*_TEXTS, "author", "repository", "keywords"):
        value = said.values.get(key)
        told = _told(key, value)
        if told is not None:
            about[key] = told
        elif value is not None:
            odd.append(key)
    return about, odd


def _told(key: str, value: object) -> JsonValue:
    if key == "keywords":
        whole = isinstance(value, list) and all(isinstance(word, str) for word in value)
        return [word[:MAX_TEXT] for word in value[:MAX_KEYWORDS]] if whole else None  # type: ignore[index]  # a list
    if isinstance(value, dict):
        value = value.get({"author": "name", "repository": "url"}.get(key, ""))
    return value[:MAX_TEXT] if isinstance(value, str) else None


def _flag(said: JsonFile, key: str) -> bool:
    value = said.values.get(key, True)
    if not isinstance(value, bool):
        raise said.fault(f"`{key}` has to be true or false", key)
    return value


def _check_engines(said: JsonFile, host_version: str) -> None:
    engines = said.values.get("engines", {})
    if not isinstance(engines, dict):
        raise said.fault("`engines` has to be an object", "engines")
    wanted = engines.get("pizzaBot")
    if wanted is None:
        return
    if not isinstance(wanted, str):
        raise incompatible("`engines.pizzaBot` has to be text", file=said.name, line=said.line("engines", "pizzaBot"))
    fault = engine_fault(wanted, host_version)
    if fault is not None:
        raise incompatible(f"`engines.pizzaBot`: {fault}", file=said.name, line=said.line("engines", "pizzaBot"))


def _check_capabilities(said: JsonFile) -> None:
    written = said.values.get("capabilities", {})
    if not isinstance(written, dict):
        raise said.fault("`capabilities` has to be an object", "capabilities")
    ids = {key: _texts(said, written.get(key, []), "capabilities", key) for key in _CAPABILITIES}
    for key, words in ids.items():
        wrong = wrong_capability(words)
        if wrong is not None:
            raise said.fault(f"`capabilities.{key}`: {wrong!r} is none: write `name/v1`", "capabilities", key)
    missing = missing_capabilities(ids["required"])
    if missing:
        reason = f"it needs {', '.join(missing)}, which this host does not have"
        raise incompatible(reason, file=said.name, line=said.line("capabilities", "required"))


def _texts(said: JsonFile, value: object, *keys: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_PATHS or not all(isinstance(one, str) for one in value):
        raise said.fault(f"`{'.'.join(keys)}` has to be a list of at most {MAX_PATHS} texts", *keys)
    return tuple(value)


def _paths(said: JsonFile, key: str) -> tuple[str, ...]:
    value = said.values.get(key)
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else _texts(said, value, key)


def _servers(said: JsonFile) -> tuple[str | dict[str, Any], ...]:
    value = said.values.get("mcpServers")
    items = [] if value is None else value if isinstance(value, list) else [value]
    if len(items) > MAX_PATHS or not all(isinstance(item, str | dict) for item in items):
        raise said.fault("`mcpServers` has to be a path or a map of servers", "mcpServers")
    return tuple(items)
