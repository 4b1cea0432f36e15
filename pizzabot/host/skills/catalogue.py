"""`Catalogue`: the skills of every source as one list. The person's own win over a plugin's, those over the built-in.

It is made anew from what the sources have now; a bundle that did not change is not parsed again. A faulty skill keeps
its place: if a person's own copy, which may ask for more approvals, is broken, the shipped one does not come back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pizzabot.host.skills.faults import Fault
from pizzabot.host.skills.skill import Skill, parse_skill
from pizzabot_hookspecs.skill_sources import Origin, RawSkill

MAX_SKILLS = 2000
"""Of one source; what is over is told."""

_RANK = {Origin.BUILTIN: 0, Origin.PLUGIN: 1, Origin.USER: 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Something of a skill, or of a whole source, that a person should know."""

    source: str
    id: str
    fault: Fault


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """`skills` by id, sorted. `hidden` are ids that more than one source has."""

    skills: Mapping[str, Skill] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


class SkillParser:
    """Remembers what it parsed of each source; for one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, tuple[RawSkill, Skill]]] = {}

    def parse(self, source: str, bundles: Sequence[RawSkill]) -> list[Skill]:
        """Skills in the order of the bundles; a second bundle of an id is a refused one."""
        before, now, parsed = self._known.get(source, {}), dict[str, tuple[RawSkill, Skill]](), list[Skill]()
        for raw in bundles[:MAX_SKILLS]:
            if raw.id in now:
                parsed.append(_refused(raw, source, "the source has this id twice"))
                continue
            known = before.get(raw.id)
            skill = known[1] if known is not None and _same(known[0], raw) else _parsed(raw, source)
            now[raw.id] = (raw, skill)
            parsed.append(skill)
        for raw in bundles[MAX_SKILLS:]:
            parsed.append(_refused(raw, source, f"the source has more than {MAX_SKILLS} skills"))
        self._known[source] = now
        return parsed


def _parsed(raw: RawSkill, source: str) -> Skill:
    try:
        return parse_skill(raw, source)
    except Exception as error:  # noqa: BLE001 - what a plugin returned is not what it has to be; its siblings are
        return _refused(raw, source, f"the source returned what is no skill: {type(error).__name__}: {error}")


def _same(known: RawSkill, raw: RawSkill) -> bool:
    return known is raw or known == raw


def _refused(raw: RawSkill, source: str, reason: str) -> Skill:
    fault = Fault(reason=reason, file="")
    return Skill(id=raw.id, name=raw.id, source=source, origin=raw.origin, faults=(fault,), refused=True)


def merge(sources: Mapping[str, Sequence[Skill]], failed: Mapping[str, str]) -> Catalogue:
    """One catalogue. Among skills of the same origin the source that comes first in `sources` wins (`[skills] use`).

    `failed` are sources that could not be asked, with the reason. The inputs stay as they are.
    """
    problems = [Problem(source=name, id="", fault=Fault(reason=reason, file="")) for name, reason in failed.items()]
    chosen: dict[str, Skill] = {}
    for source, skills in sources.items():
        for skill in skills:
            problems += [Problem(source=source, id=skill.id, fault=fault) for fault in skill.faults]
            if skill.refused:
                continue
            other = chosen.get(skill.id)
            if other is None:
                chosen[skill.id] = skill
            elif skill.origin is other.origin:
                problems.append(_collision(skill, other))
            else:
                above, below = sorted((skill, other), key=lambda one: _RANK[one.origin], reverse=True)
                shadowed = max((below.origin, below.overrides), key=_rank)
                if above.overrides is None or _rank(shadowed) > _rank(above.overrides):
                    above = replace(above, overrides=shadowed)
                chosen[skill.id] = above
    ordered = dict(sorted(chosen.items()))
    return Catalogue(skills=ordered, problems=tuple(problems))


def _rank(origin: Origin | None) -> int:
    return -1 if origin is None else _RANK[origin]


def _collision(skill: Skill, winner: Skill) -> Problem:
    whose = f"source {winner.source}" if winner.plugin is None else f"plugin {winner.plugin}"
    reason = f"{whose} has a skill of this id already; that one is used"
    return Problem(source=skill.source, id=skill.id, fault=Fault(reason=reason, file=""))
