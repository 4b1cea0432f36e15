"""`Skill`: a bundle that was read. What is wrong with it is in `faults`; one with a blocking fault is never used."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pizzabot.host.skills.faults import Fault, FrontmatterError
from pizzabot.host.skills.frontmatter import read_frontmatter
from pizzabot.host.skills.permissions import Gate, read_gates, read_tools
from pizzabot.host.skills.refs import servers_of
from pizzabot.host.skills.yaml_values import Fields, Items, Text, Value
from pizzabot_hookspecs.skill_sources import SKILL_FILE, Origin, RawSkill

RESERVED_ID = "pizza-bot"
"""The top-level agent's (spec/04 §1.3)."""
MAX_DESCRIPTION = 1024
"""Characters of a description that the agent reads."""
MAX_NAME = 200

_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.IGNORECASE)
FORBIDDEN_OF_PLUGINS = ("hooks", "mcpServers", "permissionMode")
"""Keys with which a skill of a plugin would widen what it may do (spec/04 §1.1)."""


@dataclass(frozen=True, kw_only=True)
class Skill:
    """`files` are the siblings of SKILL.md. `refused`: it is not in the catalogue at all, only its faults are told.

    `digest` tells two contents apart. `overrides` is whose skill of the same id this one stands in for.
    """

    id: str
    source: str
    origin: Origin
    plugin: str | None = None
    name: str
    description: str = ""
    body: str = ""
    tools: tuple[str, ...] = ()
    gates: tuple[Gate, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    skill_file: bytes = b""
    faults: tuple[Fault, ...] = ()
    refused: bool = False
    digest: str = ""
    overrides: Origin | None = None

    @property
    def fault(self) -> Fault | None:
        """The first one that keeps it from being used."""
        return next((fault for fault in self.faults if fault.blocking), None)

    @cached_property
    def servers(self) -> tuple[str, ...]:
        return servers_of(self.tools)

    @property
    def owner_key(self) -> str:
        """Under what its switch is stored (spec/04 §2)."""
        return f"plugin:{self.plugin}" if self.origin is Origin.PLUGIN and self.plugin else self.origin.value


def valid_id(skill_id: str) -> bool:
    return _ID.fullmatch(skill_id) is not None


def parse_skill(raw: RawSkill, source: str) -> Skill:
    """Never raises for what a bundle holds: that is a fault of the skill."""
    known: dict[str, Any] = {
        "id": raw.id,
        "source": source,
        "origin": raw.origin,
        "plugin": raw.plugin,
        "name": raw.id,
        "skill_file": raw.files.get(SKILL_FILE, b""),
        "files": {path: content for path, content in raw.files.items() if path != SKILL_FILE},
        "digest": _digest(raw),
    }
    refusal = _refusal(raw)
    if refusal is not None:
        return Skill(**known, faults=(Fault(reason=refusal, file=""),), refused=True)
    if raw.fault is not None:
        return Skill(**known, faults=(Fault(reason=raw.fault, file=""),))
    if SKILL_FILE not in raw.files:
        return Skill(**known, faults=(Fault(reason=_missing(raw), file=""),))
    try:
        return _read(raw, known)
    except FrontmatterError as error:
        return Skill(**known, faults=(error.fault,))


def _refusal(raw: RawSkill) -> str | None:
    if raw.id == RESERVED_ID:
        return f"the id {RESERVED_ID} is the agent's own: rename the folder"
    if not valid_id(raw.id):
        return f"{raw.id[:80]!r} cannot be an id: rename the folder to 1 to 64 of a-z 0-9 - _, a letter or digit first"
    return None


def _missing(raw: RawSkill) -> str:
    other = next((path for path in raw.files if path.lower() == SKILL_FILE.lower()), None)
    return f"it has no {SKILL_FILE}" if other is None else f"{other} has to be named {SKILL_FILE}"


def _read(raw: RawSkill, known: Mapping[str, Any]) -> Skill:
    read = read_frontmatter(raw.files[SKILL_FILE])
    fields = read.fields
    if raw.origin is Origin.PLUGIN:
        forbidden = next((key for key in FORBIDDEN_OF_PLUGINS if key in fields.values), None)
        if forbidden is not None:
            reason = f"a plugin's skill may not have the key {forbidden!r}"
            return Skill(**known, faults=(Fault(reason=reason, line=fields.lines[forbidden]),), refused=True)
    description, faults = _description(fields)
    tools, tool_faults = read_tools(fields)
    gates, gate_faults = read_gates(fields, tools)
    told = {**known, "name": _name(fields) or raw.id}
    return Skill(
        **told,
        description=description,
        body=read.body,
        tools=tuple(tools),
        gates=gates,
        faults=(*faults, *tool_faults, *gate_faults),
    )


def _description(fields: Fields) -> tuple[str, list[Fault]]:
    value = fields.values.get("description")
    line = fields.lines.get("description")
    if value is None:
        return "", [Fault(reason="it has no `description`: say in one or two sentences when to use it", line=1)]
    text = _text(value)
    if text is None:
        what = {Text: "empty", Items: "a list", Fields: "a mapping"}[type(value)]
        return "", [Fault(reason=f"`description` is {what}; it has to be text", line=line)]
    if len(text) > MAX_DESCRIPTION:
        reason = f"`description` has {len(text)} characters; the agent reads the first {MAX_DESCRIPTION}"
        return text, [Fault(reason=reason, line=line, blocking=False)]
    return text, []


def _name(fields: Fields) -> str | None:
    """Display name: metadata.display-name, then name (spec/04 §1.1)."""
    metadata = fields.values.get("metadata")
    shown = metadata.values.get("display-name") if isinstance(metadata, Fields) else None
    name = _text(shown) or _text(fields.values.get("name"))
    return None if name is None else name[:MAX_NAME]


def _text(value: Value | None) -> str | None:
    if not isinstance(value, Text) or value.nothing:
        return None
    return value.text.strip() or None


def _digest(raw: RawSkill) -> str:
    found = hashlib.sha256()
    for path in sorted(raw.files):
        content = raw.files[path]
        found.update(f"{len(path.encode(errors='replace'))}:{path}:{len(content)}:".encode(errors="replace"))
        found.update(content)
    return found.hexdigest()
