"""A server as lists show it (spec/01 §8): values of variables and headers are hidden, and known secrets elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pizzabot.host.mcp.board import McpBoard, health_row
from pizzabot.host.mcp.definitions_reading import Defined
from pizzabot_hookspecs.support.redaction import REDACTED
from pizzabot_hookspecs.wire import JsonValue

_HIDDEN = frozenset({"env", "headers"})
_MAX_SHOWN_DEPTH = 8


def server_row(
    board: McpBoard, defined: Defined, dependents: Sequence[Mapping[str, JsonValue]], *, redact: Callable[[str], str]
) -> dict[str, JsonValue]:
    """`id, source, pluginName?, entry, enabled, trusted, status, toolCount, crashedAt?, detail?, dependentSkills`."""
    state = board.state(defined)
    plugin = defined.definition.plugin
    row: dict[str, JsonValue] = {
        "id": defined.id,
        "source": defined.definition.origin.value,
        **({} if plugin is None else {"pluginName": plugin}),
        "entry": redacted_entry(defined.definition.entry, redact),
        "enabled": board.enabled(defined),
        "trusted": board.trusted(defined.id),
        "status": state.status.value,
        "toolCount": len(state.tools),
    }
    row |= health_row(state, board.health(defined.id))
    row["dependentSkills"] = [dict(skill) for skill in dependents]
    return row


def redacted_entry(entry: Mapping[str, JsonValue], redact: Callable[[str], str]) -> dict[str, JsonValue]:
    """Also of an entry that is wrong: whatever stands under `env` and `headers` is hidden."""
    return {str(key): _hidden(value) if key in _HIDDEN else _shown(value, redact, 0) for key, value in entry.items()}


def _hidden(value: JsonValue) -> JsonValue:
    return {str(name): REDACTED for name in value} if isinstance(value, Mapping) else REDACTED


def _shown(value: JsonValue, redact: Callable[[str], str], depth: int) -> JsonValue:
    if isinstance(value, str):
        return redact(value)
    if depth >= _MAX_SHOWN_DEPTH:
        return None
    if isinstance(value, Mapping):
        return {
            str(key): _hidden(inner) if key in _HIDDEN else _shown(inner, redact, depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_shown(inner, redact, depth + 1) for inner in value]
    return value
