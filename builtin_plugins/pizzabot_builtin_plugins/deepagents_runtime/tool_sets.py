"""The tools that graphs are built with: what the host handed in, without what cannot be used as it says."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.agent_runtimes import SubagentSpec
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool

TASK = "task"
"""The tool by which the orchestrator delegates; no other may have the name while there is somebody to delegate to."""


@dataclass(frozen=True, kw_only=True)
class Subagent:
    """A `SubagentSpec` with the tools that can be used, by name."""

    name: str
    description: str
    prompt: str
    tools: Mapping[str, AgentTool]


@dataclass(frozen=True, kw_only=True)
class ToolSet:
    """The orchestrator's tools by name, and its subagents. `redact` is what errors of tools go through."""

    tools: Mapping[str, AgentTool] = field(default_factory=dict)
    subagents: Sequence[Subagent] = ()
    redact: Callable[[str], str] = str


def tool_set(
    tools: Iterable[AgentTool],
    subagents: Iterable[SubagentSpec],
    *,
    logger: Logger | None = None,
    redact: Callable[[str], str] = str,
) -> ToolSet:
    """What can be used of `tools` and `subagents`. What cannot is left out, each with its reason in the log.

    A subagent one of whose tools cannot be used is left out as a whole (spec/05 §4): it would be something else.
    """
    team: dict[str, Subagent] = {}
    for spec in subagents:
        own, faults = _usable(spec.tools)
        reasons = [f"{name}: {fault}" for name, fault in faults]
        if spec.name in team:
            reasons.append("another subagent has the name")
        if not reasons:
            team[spec.name] = Subagent(name=spec.name, description=spec.description, prompt=spec.prompt, tools=own)
        elif logger is not None:
            logger.warning("runtime.subagent_unavailable", subagent=spec.name, reason="; ".join(reasons))
    kept, faults = _usable(tools, taken=(TASK,) if team else ())
    for name, fault in faults:
        if logger is not None:
            logger.warning("runtime.tool_unavailable", tool=name, reason=fault)
    return ToolSet(tools=kept, subagents=tuple(team.values()), redact=redact)


def _usable(
    tools: Iterable[AgentTool], *, taken: Collection[str] = ()
) -> tuple[dict[str, AgentTool], list[tuple[str, str]]]:
    """The tools by name, and the names of those that cannot be used with the reason."""
    kept: dict[str, AgentTool] = {}
    faults: list[tuple[str, str]] = []
    for tool in tools:
        name = tool.tool.name
        fault = approval_fault(tool)
        if fault is None and (name in kept or name in taken):
            fault = "another tool has the name"
        if fault is None:
            kept[name] = tool
        else:
            faults.append((name, fault))
    return kept, faults


def approval_fault(tool: AgentTool) -> str | None:
    """What is wrong with a tool's approval; None for a tool that runs unasked or can be asked for."""
    if tool.approval is None:
        return None
    if not tool.approval:
        return f"its approval allows no decision; allow some of {', '.join(sorted(DECISIONS))}"
    if unknown := sorted(str(kind) for kind in tool.approval if kind not in DECISIONS):
        return f"its approval names {', '.join(unknown)}; there are {', '.join(sorted(DECISIONS))}"
    return None
