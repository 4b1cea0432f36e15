"""`extensions["dev.pizzabot.materializer"]` of a manifest (spec/04 §11), checked."""

from __future__ import annotations

from collections.abc import Mapping

from pizzabot_builtin_plugins.bundles.json_files import JsonFile
from pizzabot_hookspecs.bundles import MaterializerEntry
from pizzabot_hookspecs.materializers import MaterializeReason

EXTENSION = "dev.pizzabot.materializer"
MAX_TIMEOUT_MS = 120_000
MAX_SOURCE_ROOTS = 64
MAX_CHARACTERS = 4_096

_IN = ("extensions", EXTENSION)
_DEFAULT = MaterializerEntry()


def read_materializer(said: JsonFile, entry: object) -> MaterializerEntry:
    """`entrypoint` or `use` is needed. Raises `BundleFaultError`."""
    if not isinstance(entry, Mapping):
        raise said.fault(f"`{EXTENSION}` has to be an object", *_IN)
    entrypoint, use = _text(said, entry, "entrypoint"), _text(said, entry, "use")
    if not entrypoint and not use:
        raise said.fault(f"`{EXTENSION}` has no `entrypoint`, and no `use` that names a materializer", *_IN)
    return MaterializerEntry(
        entrypoint=entrypoint,
        use=use,
        sources=_sources(said, entry),
        sync=_sync(said, entry),
        timeout_ms=_timeout(said, entry),
    )


def _text(said: JsonFile, entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_CHARACTERS or "\0" in value:
        raise said.fault(f"`{key}` has to be text that is not empty", *_IN, key)
    return value


def _sources(said: JsonFile, entry: Mapping[str, object]) -> tuple[str, ...]:
    value = entry.get("sourceRoots", [])
    whole = isinstance(value, list) and len(value) <= MAX_SOURCE_ROOTS
    if not whole or not all(
        isinstance(one, str) and one.strip() and len(one) <= MAX_CHARACTERS and "\0" not in one
        for one in value  # type: ignore[attr-defined]  # a list by now
    ):
        raise said.fault(f"`sourceRoots` has to be a list of at most {MAX_SOURCE_ROOTS} paths", *_IN, "sourceRoots")
    return tuple(value)  # type: ignore[arg-type]


def _sync(said: JsonFile, entry: Mapping[str, object]) -> frozenset[MaterializeReason]:
    value = entry.get("sync")
    if value is None:
        return _DEFAULT.sync
    words = [reason.value for reason in MaterializeReason]
    if not isinstance(value, list) or not value or any(word not in words for word in value):
        raise said.fault(f"`sync` has to be a list of at least one of {', '.join(words)}", *_IN, "sync")
    return frozenset(MaterializeReason(word) for word in value)


def _timeout(said: JsonFile, entry: Mapping[str, object]) -> int:
    value = entry.get("timeoutMs", _DEFAULT.timeout_ms)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_TIMEOUT_MS:
        raise said.fault(f"`timeoutMs` has to be a whole number from 1 to {MAX_TIMEOUT_MS}", *_IN, "timeoutMs")
    return value
