"""The tools and subagents that graphs are built with: a roster's, without what cannot be used as it says."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pizzabot_hookspecs import Logger
from pizzabot_hookspecs.agent_runtimes import RUNTIME_TOOLS, BuiltinTool, Roster, SubagentSpec, UnreadySkill
from pizzabot_hookspecs.agent_tools import DECISIONS, AgentTool

TASK, EVAL, ASK_USER = "task", "eval", "ask_user"
"""Tools of the runtime's own: delegating, computing in the sandbox, asking the person."""
FILE_TOOLS = ("ls", "read_file", "write_file", "edit_file", "glob", "grep")
ROSTER = "subagents"
"""Key of the metadata of the tool `task`: the names that it takes, for whoever calls it from code."""

ROSTERS_KEPT = 4
"""Tool sets that are remembered; turns under way keep theirs besides."""


@dataclass(frozen=True, kw_only=True)
class Subagent:
    """A `SubagentSpec` with the tools that can be used, by name."""

    name: str
    description: str
    prompt: str
    tools: Mapping[str, AgentTool]
    builtins: frozenset[BuiltinTool] = frozenset()
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ToolSet:
    """The orchestrator's tools by name, and its subagents; `unready` are those that cannot be called now.

    `redact` is what errors of tools go through. Two with the same `key` are alike.
    """

    key: str = ""
    tools: Mapping[str, AgentTool] = field(default_factory=dict)
    subagents: Sequence[Subagent] = ()
    unready: Sequence[UnreadySkill] = ()
    redact: Callable[[str], str] = str


class ToolSets:
    """The tool set of the roster that there is now, made once for each."""

    def __init__(
        self, roster: Callable[[], Roster], *, logger: Logger | None = None, redact: Callable[[str], str] = str
    ) -> None:
        self._roster = roster
        self._logger = logger
        self._redact = redact
        self._made: OrderedDict[str, ToolSet] = OrderedDict()

    def current(self) -> ToolSet:
        roster = self._roster()
        known = self._made.get(roster.fingerprint)
        if known is None:
            known = self._made[roster.fingerprint] = tool_set(roster, logger=self._logger, redact=self._redact)
            while len(self._made) > ROSTERS_KEPT:
                self._made.popitem(last=False)
        self._made.move_to_end(roster.fingerprint)
        return known


def tool_set(roster: Roster, *, logger: Logger | None = None, redact: Callable[[str], str] = str) -> ToolSet:
    """What can be used of a roster. What cannot is left out, each with its reason in the log.

    A subagent one of whose tools cannot be used is left out as a whole (spec/05 §4): it would be something else. The
    orchestrator is told of it, like of the others that are not ready.
    """
    team: dict[str, Subagent] = {}
    unready = list(roster.unready)
    for spec in roster.subagents:
        reasons = [*_faults(spec, team), *(f"{name}: {fault}" for name, fault in _usable(spec.tools)[1])]
        if not reasons:
            team[spec.name] = _subagent(spec)
            continue
        unready.append(UnreadySkill(name=spec.name, state="unavailable", detail="; ".join(reasons)))
        if logger is not None:
            logger.warning("runtime.subagent_unavailable", subagent=spec.name, reason="; ".join(reasons))
    kept, faults = _usable(roster.tools)
    for name, fault in faults:
        if logger is not None:
            logger.warning("runtime.tool_unavailable", tool=name, reason=fault)
    return ToolSet(
        key=roster.fingerprint, tools=kept, subagents=tuple(team.values()), unready=tuple(unready), redact=redact
    )


def _faults(spec: SubagentSpec, taken: Collection[str]) -> list[str]:
    return ["another subagent has the name"] if spec.name in taken else []


def _subagent(spec: SubagentSpec) -> Subagent:
    return Subagent(
        name=spec.name,
        description=spec.description,
        prompt=spec.prompt.strip() or spec.description,
        tools=_usable(spec.tools)[0],
        builtins=spec.builtins,
        files=spec.files,
    )


def _usable(tools: Iterable[AgentTool]) -> tuple[dict[str, AgentTool], list[tuple[str, str]]]:
    """The tools by name, and the names of those that cannot be used with the reason."""
    kept: dict[str, AgentTool] = {}
    faults: list[tuple[str, str]] = []
    for tool in tools:
        name = tool.tool.name
        fault = approval_fault(tool)
        if fault is None and name in RUNTIME_TOOLS:
            fault = "the assistant has a tool of its own with the name"
        if fault is None and name in kept:
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
