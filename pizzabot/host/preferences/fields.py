"""The fields of the preferences: what each may hold, its default, and what counts where something else is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from pizzabot_hookspecs.wire import JsonValue

MAX_PERSONA = 8_000
"""Characters of what the person adds to the agent's prompt."""
NO_LIMIT = -1
MAX_TOOL_CALLS = 1_000_000
"""A larger limit of tool calls is none that anybody means."""


class Theme(StrEnum):
    LIGHT = "light"
    DARK = "dark"
    SYSTEM = "system"


@dataclass(frozen=True, kw_only=True)
class Preference:
    """`default` stands for what is missing or unreadable."""

    default: JsonValue
    accepts: Callable[[object], bool]


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_limit(value: object) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and (value == NO_LIMIT or 1 <= value <= MAX_TOOL_CALLS)  # type: ignore[operator]  # an int by now


def _is_persona(value: object) -> bool:
    if not isinstance(value, str) or len(value) > MAX_PERSONA:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair: no model could be sent it
        return False
    return True


PREFERENCES: Mapping[str, Preference] = {
    "theme": Preference(default=Theme.DARK.value, accepts=lambda value: value in list(Theme)),
    "customPromptAddendum": Preference(default="", accepts=_is_persona),
    "enableMemories": Preference(default=False, accepts=_is_flag),
    "enableAutomations": Preference(default=False, accepts=_is_flag),
    "maxToolCalls": Preference(default=100, accepts=_is_limit),
    "maxSubagentToolCalls": Preference(default=150, accepts=_is_limit),
}
"""Names and rules of spec/01 §11, defaults of spec/03."""


def valid_fields(values: object) -> dict[str, JsonValue]:
    """Those of `values` that are preferences and hold what they may; the others are passed over (spec/01 §11)."""
    if not isinstance(values, Mapping):
        return {}
    return {name: values[name] for name, rule in PREFERENCES.items() if name in values and rule.accepts(values[name])}


def complete(stored: object) -> dict[str, JsonValue]:
    """All preferences: what is stored where it can be read, else the default."""
    return {**{name: rule.default for name, rule in PREFERENCES.items()}, **valid_fields(stored)}
