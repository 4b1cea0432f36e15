"""Every bundle of every place, in order; of two that collide the first one stays and the other one is told why."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pizzabot_builtin_plugins.bundles.reading import Reader
from pizzabot_hookspecs.bundles import MANIFEST, Bundle, BundlePlace, BundleStatus

MAX_BUNDLES = 200
"""Of one place."""


def load_all(places: Sequence[BundlePlace], reader: Reader) -> list[Bundle]:
    """Blocking."""
    return list(merged(bundle for place in places for bundle in _of_place(place, reader)))


def _of_place(place: BundlePlace, reader: Reader) -> Iterator[Bundle]:
    if place.single:
        yield reader.read(place.path)
        return
    try:
        names = sorted(name for name in os.listdir(place.path) if not name.startswith("."))  # noqa: PTH208 - names alone
    except FileNotFoundError:
        return
    except OSError as error:
        yield _refused(place.path, f"the folder of bundles cannot be read: {error.strerror or error}")
        return
    folders = [folder for name in names if os.path.lexists((folder := place.path / name) / MANIFEST)]
    for folder in folders[:MAX_BUNDLES]:
        yield reader.read(folder, removable=place.removable)
    if len(folders) > MAX_BUNDLES:
        yield _refused(place.path, f"it has {len(folders)} bundles; only the first {MAX_BUNDLES} are read")


def _refused(path: Path, reason: str) -> Bundle:
    return Bundle(name=path.name[:80], root=path, status=BundleStatus.FAILED, detail=reason)


def merged(bundles: Iterable[Bundle]) -> Iterator[Bundle]:
    names: dict[str, Bundle] = {}
    skills: dict[str, str] = {}
    servers: dict[str, str] = {}
    for bundle in bundles:
        if bundle.status is not BundleStatus.LOADED:
            yield bundle
            continue
        reason = _collision(bundle, names, skills, servers)
        if reason is not None:
            yield replace(bundle, status=BundleStatus.FAILED, detail=reason, skills=(), servers=())
            continue
        names[bundle.name] = bundle
        skills |= {skill.id: bundle.name for skill in bundle.skills}
        servers |= {server.id: bundle.name for server in bundle.servers}
        yield bundle


def _collision(bundle: Bundle, names: dict[str, Bundle], skills: dict[str, str], servers: dict[str, str]) -> str | None:
    if bundle.name in names:
        return f"there is a plugin {bundle.name!r} in {names[bundle.name].root} already; that one is used"
    for kind, ids, taken in (
        ("skill", [skill.id for skill in bundle.skills], skills),
        ("MCP server", [server.id for server in bundle.servers], servers),
    ):
        found = next((one for one in ids if one in taken), None)
        if found is not None:
            return f"its {kind} {found!r} has the id of one of the plugin {taken[found]!r}; nothing of it is used"
    return None
