"""`RosterBuilder`: the ready skills as subagents with their tools, the others with the reason; one `Roster` of it all.

A tool is handed out under `<server>__<tool>`, at most 64 characters of those that every provider takes. The name
depends on server and tool alone: where it would be too long, or could be another pair's, a hash is part of it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pizzabot.host.skills.readiness import Readiness, SkillStatus, approval, readiness
from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot.host.skills.skill import MAX_DESCRIPTION, Skill
from pizzabot_hookspecs.agent_runtimes import Roster, SubagentSpec, UnreadySkill
from pizzabot_hookspecs.agent_tools import AgentTool
from pizzabot_hookspecs.mcp_clients import McpTool
from pizzabot_hookspecs.skill_sources import SKILL_FILE

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

MAX_TOOL_NAME = 64
"""Of OpenAI, Anthropic and Bedrock."""
MAX_UNREADY = 100
"""Skills that the orchestrator is told of and cannot call."""
MAX_TOOLS_OF_SKILL = 256
"""More do not fit into a model's request."""

_HASH_CHARACTERS = 8
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A roster and what the listing says of each skill, of the same moment."""

    roster: Roster
    readiness: Mapping[str, Readiness]


@dataclass(frozen=True, kw_only=True)
class _Handed:
    """A server's tool under its new name; `serial` is another one for every other tool object."""

    original: McpTool
    tool: BaseTool
    serial: int


_Mark: TypeAlias = tuple[ServerStatus, str, bool, tuple[tuple[str, int], ...]]


@dataclass(frozen=True, kw_only=True)
class _Made:
    """What became of a skill; `seen` is what it was made of beside the skill itself."""

    skill: Skill
    seen: tuple[object, ...]
    readiness: Readiness
    subagent: SubagentSpec | None = None
    print: bytes = b""


class RosterBuilder:
    """Remembers the tools that it renamed: the same tool object gives the same `AgentTool`. One thread at a time."""

    def __init__(self) -> None:
        self._handed: dict[tuple[str, str], _Handed] = {}
        self._made: dict[str, _Made] = {}
        self._serial = 0

    def build(
        self,
        skills: Iterable[Skill],
        states: Mapping[str, ServerState],
        *,
        enabled: Callable[[Skill], bool],
        trusted: Callable[[str], bool],
        own: Sequence[AgentTool],
        known: bool = True,
    ) -> Prepared:
        """`own` are the orchestrator's tools, `known` as `Servers.known`. A disabled skill is in the listing alone."""
        marks = {server: self._mark(server, state, trusted=trusted(server)) for server, state in states.items()}
        now: dict[str, _Made] = {}
        unready: list[UnreadySkill] = []
        print_ = hashlib.sha256()
        _add(print_, "own", *(f"{tool.tool.name}/{id(tool)}" for tool in own))
        for skill in skills:
            made = now[skill.id] = self._one(skill, states, marks, trusted, on=enabled(skill), known=known)
            told = made.readiness
            if made.subagent is not None:
                print_.update(made.print)
            elif told.status is not SkillStatus.DISABLED and len(unready) < MAX_UNREADY:
                unready.append(UnreadySkill(name=skill.id, state=told.status.value, detail=told.detail))
                _add(print_, "unready", skill.id, told.status.value, told.detail)
        self._made = now
        self._forget(states)
        return Prepared(
            roster=Roster(
                fingerprint=print_.hexdigest(),
                tools=tuple(own),
                subagents=tuple(made.subagent for made in now.values() if made.subagent is not None),
                unready=tuple(unready),
            ),
            readiness={skill_id: made.readiness for skill_id, made in now.items()},
        )

    def _one(
        self,
        skill: Skill,
        states: Mapping[str, ServerState],
        marks: Mapping[str, _Mark],
        trusted: Callable[[str], bool],
        *,
        on: bool,
        known: bool,
    ) -> _Made:
        """What was made before, where neither the skill nor one of its servers changed."""
        seen = (on, known, *((server, marks.get(server)) for server in skill.servers))
        before = self._made.get(skill.id)
        if before is not None and before.skill is skill and before.seen == seen:
            return before
        found = self._state(skill, states, known=known) if on else Readiness(status=SkillStatus.DISABLED)
        if found.status is not SkillStatus.READY:
            return _Made(skill=skill, seen=seen, readiness=found)
        print_ = hashlib.sha256()
        subagent = self._subagent(skill, found, states, trusted, print_)
        return _Made(skill=skill, seen=seen, readiness=found, subagent=subagent, print=print_.digest())

    def _mark(self, server: str, state: ServerState, *, trusted: bool) -> _Mark:
        """Another one whenever something about the server is; two tool objects never share a serial."""
        serials = tuple((name, self._hand_out(server, tool).serial) for name, tool in state.tools.items())
        return state.status, state.detail, trusted, serials

    def _state(self, skill: Skill, states: Mapping[str, ServerState], *, known: bool) -> Readiness:
        found = readiness(skill, states, known=known)
        if len(found.tools) > MAX_TOOLS_OF_SKILL:
            reason = f"its tools are {len(found.tools)}; at most {MAX_TOOLS_OF_SKILL} fit: name fewer in `tools`"
            return Readiness(status=SkillStatus.UNAVAILABLE, detail=reason)
        return found

    def _subagent(
        self,
        skill: Skill,
        state: Readiness,
        states: Mapping[str, ServerState],
        trusted: Callable[[str], bool],
        print_: hashlib._Hash,
    ) -> SubagentSpec:
        tools: list[AgentTool] = []
        _add(print_, "skill", skill.id, skill.digest, skill.origin.value, *sorted(state.builtins))
        for server, name in state.tools:
            handed = self._hand_out(server, states[server].tools[name])
            decisions = approval(skill.gates, server, name)
            repeatable = trusted(server) and (handed.original.reads_only or handed.original.idempotent)
            tools.append(AgentTool(tool=handed.tool, approval=decisions, repeatable=repeatable))
            asks = "-" if decisions is None else ",".join(sorted(decisions))
            _add(print_, handed.tool.name, str(handed.serial), asks, str(repeatable))
        return SubagentSpec(
            name=skill.id,
            description=skill.description[:MAX_DESCRIPTION],
            prompt=skill.body.strip(),
            tools=tuple(tools),
            builtins=state.builtins,
            files={SKILL_FILE: skill.skill_file, **{path: skill.files[path] for path in sorted(skill.files)}},
        )

    def _hand_out(self, server: str, tool: McpTool) -> _Handed:
        known = self._handed.get((server, tool.name))
        if known is not None and known.original is tool:
            return known
        self._serial += 1
        name = tool_name(server, tool.name)
        described = tool.description.strip() or tool.name  # Bedrock refuses an empty one
        renamed = tool.tool.model_copy(update={"name": name, "description": described})
        made = self._handed[server, tool.name] = _Handed(original=tool, tool=renamed, serial=self._serial)
        return made

    def _forget(self, states: Mapping[str, ServerState]) -> None:
        """Tools of connections that are gone would be kept for ever."""
        for server, name in list(self._handed):
            state = states.get(server)
            if state is None or name not in state.tools:
                del self._handed[server, name]


def tool_name(server: str, tool: str) -> str:
    """The name that the model calls; for the same pair always the same one, for another pair another one."""
    plain = f"{server}__{tool}"
    clear = "__" not in server and not server.endswith("_") and not tool.startswith("_")
    if clear and len(plain) <= MAX_TOOL_NAME and not _FOREIGN.search(plain):
        return plain
    digest = hashlib.sha256(f"{server}\0{tool}".encode(errors="replace")).hexdigest()[:_HASH_CHARACTERS]
    room = MAX_TOOL_NAME - _HASH_CHARACTERS - 1
    return f"{_FOREIGN.sub('_', plain)[:room]}_{digest}"


def _add(print_: hashlib._Hash, *parts: str) -> None:
    for part in parts:
        encoded = part.encode(errors="replace")
        print_.update(b"%d:" % len(encoded))
        print_.update(encoded)
    print_.update(b";")
