"""What a skill may use and what it has to ask for: `tools` (or `mcp`) and `interruptOn`. It fails closed.

Anything in `interruptOn` that cannot be understood to the letter is a blocking fault: the entry that was meant as a
gate must not become its absence (spec/04 §1.1, case 25b).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pizzabot.host.skills.faults import Fault
from pizzabot.host.skills.refs import InvalidRefError, McpRef, parse_mcp_ref, parse_ref
from pizzabot.host.skills.yaml_values import Fields, Items, Text, Value
from pizzabot_hookspecs.agent_tools import DECISIONS

INTERRUPT_KEY = "interruptOn"
ALLOWED_KEY = "allowedDecisions"
MAX_REFS = 256
"""Of one skill; also of its `interruptOn`."""

_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_SEPARATORS = re.compile(r"[,\s]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Gate:
    """One entry of `interruptOn`. `decisions` None: no approval, said so by the author."""

    ref: str
    decisions: frozenset[str] | None
    whole: bool = True
    line: int | None = None

    @property
    def parsed(self) -> McpRef:
        return parse_mcp_ref(self.ref)


def read_tools(fields: Fields) -> tuple[dict[str, int], list[Fault]]:
    """Declared references with their lines, in order, each once; `tools` wins over `mcp`."""
    key = next((name for name in ("tools", "mcp") if name in fields.values), None)
    if key is None:
        return {}, []
    value, tools, faults = fields.values[key], dict[str, int](), list[Fault]()
    if isinstance(value, Fields):
        reason = f"`{key}` is a mapping and is ignored; write a list"
        return {}, [Fault(reason=reason, line=fields.lines[key], blocking=False)]
    for item in [value] if isinstance(value, Text) else value.items:
        if not isinstance(item, Text):
            reason = f"an entry of `{key}` is not text and is ignored"
            faults.append(Fault(reason=reason, line=item.line, blocking=False))
        elif not item.nothing:
            written = _SEPARATORS.split(item.text.strip()) if isinstance(value, Text) else [item.text.strip()]
            for ref in written:
                if ref:
                    tools.setdefault(ref, item.line)
    faults += [fault for ref, line in tools.items() if (fault := _ref_fault(ref, line)) is not None]
    if len(tools) > MAX_REFS:
        faults.append(Fault(reason=f"`{key}` has more than {MAX_REFS} entries", line=fields.lines[key]))
    return tools, faults


def _ref_fault(ref: str, line: int) -> Fault | None:
    try:
        parse_ref(ref)
    except InvalidRefError as error:
        return Fault(reason=str(error), line=line)
    return None


def read_gates(fields: Fields, tools: Sequence[str] | dict[str, int]) -> tuple[tuple[Gate, ...], list[Fault]]:
    faults = [
        Fault(reason=f"the key {key[:60]!r} has to be written {INTERRUPT_KEY!r}", line=fields.lines[key])
        for key in fields.values
        if meant_as_gate(key)
    ]
    value = fields.values.get(INTERRUPT_KEY)
    if value is None or (isinstance(value, Text) and value.nothing):
        if value is not None:
            faults.append(Fault(reason=f"`{INTERRUPT_KEY}` is empty: fill it in or leave it out", line=value.line))
        return (), faults
    if not isinstance(value, Fields):
        faults.append(Fault(reason=f"`{INTERRUPT_KEY}` has to be a mapping of tool to decision", line=value.line))
        return (), faults
    gates: list[Gate] = []
    for ref, config in value.values.items():
        line = value.lines[ref]
        try:
            decisions, whole = read_decisions(_plain(config))
            check_gate(ref, tools)
        except (InvalidRefError, DecisionError) as error:
            faults.append(Fault(reason=f"`{INTERRUPT_KEY}`: {error}", line=line))
        else:
            gates.append(Gate(ref=ref, decisions=decisions, whole=whole, line=line))
    if len(gates) > MAX_REFS:
        faults.append(Fault(reason=f"`{INTERRUPT_KEY}` has more than {MAX_REFS} entries", line=value.line))
    return tuple(gates), faults


class DecisionError(ValueError):
    """Not a decision of `interruptOn`; the message says why."""


def read_decisions(config: object) -> tuple[frozenset[str] | None, bool]:
    """JSON of one entry: `true`, `false` or `{allowedDecisions: [one or more]}`; and whether it was just `true`."""
    if isinstance(config, bool):
        return (DECISIONS if config else None), True
    if not isinstance(config, dict) or set(config) != {ALLOWED_KEY}:
        raise DecisionError(f"the value has to be true, false or `{ALLOWED_KEY}` with a list")
    allowed = config[ALLOWED_KEY]
    if not isinstance(allowed, list) or not allowed:
        raise DecisionError(f"`{ALLOWED_KEY}` has to be a list of at least one of {', '.join(sorted(DECISIONS))}")
    unknown = next((word for word in allowed if not isinstance(word, str) or word not in DECISIONS), None)
    if unknown is not None:
        raise DecisionError(f"there is no decision {str(unknown)[:40]!r}; valid are {', '.join(sorted(DECISIONS))}")
    return frozenset(allowed), False


def check_gate(ref: str, tools: Sequence[str] | dict[str, int]) -> None:
    """Raises `InvalidRefError` unless the reference belongs to a tool that the skill declares."""
    gate = parse_mcp_ref(ref)
    for tool in tools:
        try:
            declared = parse_ref(tool)
        except InvalidRefError:
            continue
        if isinstance(declared, McpRef) and (declared.covers(gate) or gate.covers(declared)):
            return
    raise InvalidRefError(f"{ref!r} is not among the declared tools")


def meant_as_gate(key: str) -> bool:
    """Whether a key is no `interruptOn` and was meant as one."""
    return key != INTERRUPT_KEY and re.sub("[^a-z]", "", key.lower()) in {
        "interrupton",
        "interruptson",
        "interrupt",
        "interrupts",
    }


def _plain(value: Value) -> object:
    """The JSON of a value; a scalar that is not a plain true or false stays text."""
    if isinstance(value, Text):
        return _FLAGS.get(value.text, value.text) if value.plain else value.text
    if isinstance(value, Items):
        return [item.text if isinstance(item, Text) else None for item in value.items]
    return {key: _plain(inner) for key, inner in value.values.items()}
