"""Find plugins without importing any: the table of built-ins, and entry points of the group `pizzabot`.

The latter are what `importlib.metadata.entry_points(group="pizzabot")` finds, read one distribution at a time: that
function raises for all when one `entry_points.txt` is damaged.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, EntryPoint, distribution, distributions
from pathlib import PurePath

from pizzabot import __version__
from pizzabot.kernel.reasons import describe
from pizzabot_hookspecs.offers import PROJECT

HOST_DISTRIBUTION = "pizzabot-host"
SWITCH = "PIZZABOT_NO_PLUGINS"


@dataclass(frozen=True, kw_only=True)
class Found:
    """A plugin that could be loaded.

    `value`     the text of the table or entry point; it should name a module
    `requires`  the distribution's `Requires-Dist` lines; empty when it has none or they cannot be read
    `extras`    those that the entry point asks for (`acme_store [postgres]`)
    `provides`  extras that its distribution declares
    `instance`  the plugin itself, where it was handed over instead of found
    """

    name: str = ""
    value: str = ""
    builtin: bool = False
    distribution: str | None = None
    version: str | None = None
    requires: Sequence[str] = ()
    extras: Sequence[str] = ()
    provides: frozenset[str] = frozenset()
    instance: object | None = None


def switched_off() -> bool:
    """Whether the environment says `PIZZABOT_NO_PLUGINS=1`."""
    return os.environ.get(SWITCH, "").strip().lower() not in ("", "0", "false", "no", "off")


def find(
    builtins: Mapping[str, str], given: Sequence[tuple[str, object]], *, installed: bool, notes: list[str]
) -> list[Found]:
    """Built-ins in the order of their table, then what is installed, then what was handed over."""
    found = [
        Found(name=name, value=module, builtin=True, distribution=HOST_DISTRIBUTION, version=__version__)
        for name, module in builtins.items()
    ]
    if installed:
        found += find_third_parties(notes)
    return found + [Found(name=name, value=_module_of(plugin), instance=plugin) for name, plugin in given]


def find_third_parties(notes: list[str]) -> list[Found]:
    """What is installed, sorted by (name, value); what cannot be read is said in `notes` and left out."""
    found: list[Found] = []
    seen: set[str] = set()
    for candidate in _with_entry_points(notes):
        owner = _owner(candidate, notes)
        normalised = re.sub(r"[-_.]+", "-", owner.distribution or "").lower()
        if normalised in seen or not _is_first(candidate, normalised):
            continue  # shadowed by an earlier folder of sys.path, as for an import
        seen.add(normalised)
        found += _of_distribution(candidate, owner, notes)
    return sorted(found, key=lambda plugin: (plugin.name, plugin.value, plugin.distribution or ""))


def _with_entry_points(notes: list[str]) -> Iterator[Distribution]:
    try:
        for candidate in distributions():
            try:
                text = candidate.read_text("entry_points.txt") or ""
            except Exception as error:  # noqa: BLE001  # one damaged dist-info must not disable the others
                notes.append(f"{_folder(candidate)}: entry_points.txt cannot be read: {describe(error)}; reinstall it")
                text = ""
            if f"[{PROJECT}]" in text and _folder(candidate).startswith("~"):
                notes.append(f"{_folder(candidate)}: left over from an interrupted uninstall by pip; delete it")
            elif f"[{PROJECT}]" in text:
                yield candidate
    except Exception as error:  # noqa: BLE001  # a foreign finder on sys.meta_path
        notes.append(f"the installed distributions cannot be listed to the end: {describe(error)}")


def _of_distribution(candidate: Distribution, owner: Found, notes: list[str]) -> list[Found]:
    try:
        entries = list(candidate.entry_points.select(group=PROJECT))
    except Exception as error:  # noqa: BLE001  # a line that is no entry point
        notes.append(f"{_folder(candidate)}: entry_points.txt is damaged: {describe(error)}; reinstall it")
        return []
    extras = [tuple(entry.extras) if EntryPoint.pattern.match(entry.value) else () for entry in entries]
    return [replace(owner, name=e.name, value=e.value, extras=x) for e, x in zip(entries, extras, strict=True)]


def _owner(candidate: Distribution, notes: list[str]) -> Found:
    """What the plugins of a distribution have in common; where METADATA is damaged, what its folder's name says."""
    try:
        metadata = candidate.metadata
        if names := metadata.get_all("Name"):
            return Found(
                distribution=str(names[0]),
                version=candidate.version,
                requires=tuple(candidate.requires or ()),
                provides=frozenset(str(extra) for extra in metadata.get_all("Provides-Extra") or ()),
            )
        cause = "it has no Name"
    except Exception as error:  # noqa: BLE001  # missing, or not text
        cause = describe(error)
    folder = _folder(candidate)
    notes.append(f"{folder}: METADATA is damaged, so what it requires is not checked: {cause}; reinstall it")
    name, _, version = folder.rpartition(".")[0].partition("-")
    return Found(distribution=name, version=version or None)


def _is_first(candidate: Distribution, name: str) -> bool:
    try:
        return str(distribution(name).locate_file("")) == str(candidate.locate_file(""))
    except Exception:  # noqa: BLE001  # PackageNotFoundError, or a foreign finder: nothing that would shadow it
        return True


def _folder(candidate: Distribution) -> str:
    # The path is private in importlib.metadata, and the only thing that names a distribution without METADATA.
    return PurePath(str(getattr(candidate, "_path", ""))).name or "a distribution"


def _module_of(plugin: object) -> str:
    return str(getattr(plugin, "__name__", None) or f"{type(plugin).__module__}.{type(plugin).__qualname__}")
