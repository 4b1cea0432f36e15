"""Whether a skill can be used now, and why not (spec/04 §3). Unavailable beats loading; nothing declared is ready.

A ready skill's references are expanded here: what a wildcard or a gate matches is only known with the server's tools.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pizzabot.host.skills.faults import Fault
from pizzabot.host.skills.permissions import Gate
from pizzabot.host.skills.refs import InvalidRefError, McpRef, parse_ref
from pizzabot.host.skills.servers import PENDING, ServerState, ServerStatus
from pizzabot.host.skills.skill import Skill
from pizzabot_hookspecs.agent_runtimes import BuiltinTool


class SkillStatus(StrEnum):
    DISABLED = "disabled"
    LOADING = "loading"
    READY = "ready"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, kw_only=True)
class Readiness:
    """`tools` are (server, the server's name of the tool) in order, each once; empty unless it is ready."""

    status: SkillStatus
    detail: str = ""
    builtins: frozenset[BuiltinTool] = frozenset()
    tools: tuple[tuple[str, str], ...] = ()


class _NotReadyError(Exception):
    """Why the skill is unavailable."""


_UNREAD = ServerState(status=ServerStatus.LOADING, detail="the MCP servers are being read")


def readiness(skill: Skill, states: Mapping[str, ServerState], *, known: bool = True) -> Readiness:
    """`known`: a server that is not among `states` will not come by itself."""
    if skill.fault is not None:
        return Readiness(status=SkillStatus.UNAVAILABLE, detail=str(skill.fault))
    try:
        return _expanded(skill, states, known=known)
    except (_NotReadyError, InvalidRefError) as error:
        return Readiness(status=SkillStatus.UNAVAILABLE, detail=str(error))


def _expanded(skill: Skill, states: Mapping[str, ServerState], *, known: bool) -> Readiness:
    builtins: set[BuiltinTool] = set()
    tools: dict[tuple[str, str], None] = {}
    pending: str | None = None
    for text in skill.tools:
        ref = parse_ref(text)
        if isinstance(ref, BuiltinTool):
            builtins.add(ref)
            continue
        state = _usable(ref.server, states, known=known)
        if state.status in PENDING:
            pending = pending or f"server {ref.server!r} is {state.status.value}" + _because(state)
            continue
        found = expand(ref, state)
        if not found:
            raise _NotReadyError(_nothing(ref, text))
        tools.update(dict.fromkeys((ref.server, name) for name in found))
    if pending is not None:
        return Readiness(status=SkillStatus.LOADING, detail=pending)
    _check_gates(skill, tools)
    return Readiness(status=SkillStatus.READY, builtins=frozenset(builtins), tools=tuple(tools))


def _usable(server: str, states: Mapping[str, ServerState], *, known: bool) -> ServerState:
    state = states.get(server)
    if state is None and not known:
        return _UNREAD
    if state is None:
        raise _NotReadyError(f"server {server!r} is not configured")
    if state.status is not ServerStatus.CONNECTED and state.status not in PENDING:
        raise _NotReadyError(f"server {server!r} is {state.status.value}" + _because(state))
    return state


def _because(state: ServerState) -> str:
    return f": {state.detail}" if state.detail else ""


def expand(ref: McpRef, state: ServerState) -> list[str]:
    """The server's own names that the reference means, in the server's order."""
    if not ref.wildcard:
        return [ref.tool] if ref.tool in state.tools else []
    return [name for name in state.tools if ref.matches(name)]


def _nothing(ref: McpRef, text: str) -> str:
    if ref.wildcard:
        return f"{text!r} matched no tools of server {ref.server!r}"
    return f"server {ref.server!r} has no tool {ref.tool!r}"


def _check_gates(skill: Skill, tools: Mapping[tuple[str, str], None]) -> None:
    """A gate that matches nothing was meant for something: without it a tool would run unasked."""
    for gate in skill.gates:
        ref = gate.parsed
        if not any(server == ref.server and ref.matches(name) for server, name in tools):
            reason = f"`interruptOn`: {gate.ref!r} matches none of the skill's tools"
            raise _NotReadyError(str(Fault(reason=reason, line=gate.line)))


def approval(gates: tuple[Gate, ...], server: str, tool: str) -> frozenset[str] | None:
    """In which ways a person decides a call. The entry that says it most exactly counts; None where none matches."""
    best: tuple[int, Gate] | None = None
    for gate in gates:
        ref = gate.parsed
        if ref.server == server and ref.matches(tool):
            exactness = len(ref.tool) + (0 if ref.wildcard else 1)
            if best is None or exactness > best[0]:
                best = (exactness, gate)
    return None if best is None else best[1].decisions
