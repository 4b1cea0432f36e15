"""Decide before the import whether a plugin may be imported: switched off, a name twice, another host's version."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

from pizzabot import __version__
from pizzabot.kernel.discovery import HOST_DISTRIBUTION, Found
from pizzabot.kernel.reports import PluginState

NAME_RULE = "1 to 64 letters, digits, dots, hyphens and underscores, beginning with a letter or digit"
RESERVED = frozenset({"default", "fallback", "use"})
"""Keys of the sections that hold uses (`[models] default`, `[storage] use`): an offer cannot be one."""


def is_name(text: object) -> bool:
    """Whether it can be a plugin's or an offer's name: it has to fit in `plugin:offer`, a TOML key and a model id."""
    return isinstance(text, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", text) is not None


class Refused(Exception):  # a decision about a plugin, not a fault of the kernel's
    """Raised by each phase of loading: the one-line reason that the report shows, and the state."""

    def __init__(self, reason: str, state: PluginState = PluginState.FAILED) -> None:
        super().__init__(reason)
        self.state = state


class Admission:
    """The rules of one load: `disable` and `only` of the configuration, and which names are taken."""

    def __init__(self, found: Sequence[Found], *, disable: Collection[str], only: Collection[str] | None) -> None:
        self._disable = frozenset(disable)
        self._only = None if only is None else frozenset(only)
        self._builtins = {plugin.name for plugin in found if plugin.builtin}
        self._third_parties = [plugin for plugin in found if not plugin.builtin]
        self._count = Counter(plugin.name for plugin in self._third_parties)

    def admit(self, plugin: Found) -> None:
        """Raises `Refused`. Disabled comes first, so that switching a plugin off also ends a quarrel about its name."""
        if plugin.name in self._disable:
            raise Refused("switched off by [plugins] disable", PluginState.DISABLED)
        if not plugin.builtin:
            self._admit_third_party(plugin)

    def unknown_names(self) -> list[str]:
        """Names in the configuration that nothing has: said, not an error, since it outlives an uninstall."""
        known = self._builtins | set(self._count)
        return [
            f'[plugins] {setting} names "{name}", and no plugin of that name is installed'
            for setting, names in (("disable", self._disable), ("only", self._only or ()))
            for name in sorted(names)
            if name not in known
        ]

    def _admit_third_party(self, plugin: Found) -> None:
        if self._only is not None and plugin.name not in self._only:
            raise Refused("not in [plugins] only", PluginState.DISABLED)
        if not is_name(plugin.name):
            raise Refused(f"the entry point's name {plugin.name!r} is not a name: {NAME_RULE}")
        if plugin.name in self._builtins:
            raise Refused(
                f'a built-in plugin is called "{plugin.name}"; a plugin that replaces an offer has its own name'
            )
        if self._count[plugin.name] > 1:
            raise Refused(self._quarrel(plugin.name))
        check_requirements(plugin)

    def _quarrel(self, name: str) -> str:
        owners = [f"{p.value} of {p.distribution or 'no distribution'}" for p in self._third_parties if p.name == name]
        return f'{len(owners)} plugins are called "{name}": {", ".join(owners)}; uninstall all but one'


def check_requirements(plugin: Found) -> None:
    """Raises `Refused` when the distribution's own `Requires-Dist` excludes the running host; pip only warns."""
    mine = [line for line in plugin.requires if "pizzabot" in line.lower()]
    if not mine:
        return
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    for line in mine:
        try:
            requirement = Requirement(line)
            marker = requirement.marker
            applies = not marker or any(marker.evaluate({"extra": extra}) for extra in ("", *plugin.extras))
        except ValueError:  # packaging's errors are ValueErrors
            reason = f"its requirement {line!r} cannot be read, and may be about {HOST_DISTRIBUTION}"
            raise Refused(reason, PluginState.INCOMPATIBLE) from None
        if not applies or canonicalize_name(requirement.name) != HOST_DISTRIBUTION:
            continue
        if not requirement.specifier.contains(__version__, prereleases=True):
            reason = f"needs {HOST_DISTRIBUTION}{requirement.specifier}, and this is {__version__}"
            raise Refused(f"{reason}; install a version of it that allows this host", PluginState.INCOMPATIBLE)
