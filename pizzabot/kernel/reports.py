"""What became of each plugin: `PluginState`, `PluginReport` and its stable JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from pizzabot_hookspecs.wire import JsonValue

SLOW_MS = 100.0
"""Milliseconds of import and registration over which a plugin is flagged (plugins.md; llm#732: 1.3 -> 10.7 s)."""


class PluginState(StrEnum):
    """`failed` may still have offers: those of its hooks that did not raise."""

    LOADED = "loaded"
    DISABLED = "disabled"
    INCOMPATIBLE = "incompatible"
    FAILED = "failed"

    @property
    def broken(self) -> bool:
        """Somebody has to do something about it: `pizzabot plugins` exits 1, `strict` raises."""
        return self in (PluginState.FAILED, PluginState.INCOMPATIBLE)


@dataclass(frozen=True, kw_only=True)
class PluginReport:
    """One plugin, as the user is told.

    `module`         what its table entry or entry point names
    `ms`             milliseconds of import, registration and hook calls; 0 when it was not imported
    `offers`         kind -> names, both sorted
    `reason`         one line: why it is not (wholly) loaded; None where all is well
    `exception`      the type's name where the reason is an exception
    `stands_in_for`  `plugin:offer` of each built-in's offer that is reached through this plugin now
    """

    name: str
    state: PluginState
    module: str
    builtin: bool
    distribution: str | None = None
    version: str | None = None
    ms: float = 0.0
    offers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reason: str | None = None
    exception: str | None = None
    stands_in_for: Sequence[str] = ()

    @property
    def slow(self) -> bool:
        return self.ms > SLOW_MS

    def to_json(self) -> dict[str, JsonValue]:
        """The same keys for every plugin, whatever its state; keys are added, never renamed, within a major version."""
        shown = {"state": self.state.value, "ms": round(self.ms, 1), "slow": self.slow}
        return asdict(self) | shown | {"stands_in_for": list(self.stands_in_for)}
