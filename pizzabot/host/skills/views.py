"""Skills as the API tells them: `SkillInfo`, the bundle, and the problems (spec/01 §7). Plain JSON, camelCase."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from pizzabot.host.skills.catalogue import Catalogue, Problem
from pizzabot.host.skills.exchange import gates_of
from pizzabot.host.skills.media_types import BYTES, TEXT, binary_type
from pizzabot.host.skills.readiness import Readiness, SkillStatus
from pizzabot.host.skills.servers import ServerState, ServerStatus
from pizzabot.host.skills.skill import Skill
from pizzabot_hookspecs.agent_runtimes import BuiltinTool


def listing(
    catalogue: Catalogue, readiness: Mapping[str, Readiness], states: Mapping[str, ServerState]
) -> dict[str, Any]:
    """Every skill, by name; for a thread."""
    found = sorted(catalogue.skills.values(), key=lambda skill: (skill.name.casefold(), skill.id))
    return {
        "skills": [info(skill, readiness[skill.id], states) for skill in found],
        "problems": [problem(one) for one in catalogue.problems],
    }


def info(skill: Skill, readiness: Readiness, states: Mapping[str, ServerState]) -> dict[str, Any]:
    told = _common(skill) | {
        "enabled": readiness.status is not SkillStatus.DISABLED,
        "status": readiness.status.value,
        "mcpDependencies": [_dependency(server, states.get(server)) for server in skill.servers],
    }
    if readiness.detail:
        told["statusDetail"] = readiness.detail
    return told


def bundle(skill: Skill) -> dict[str, Any]:
    """With every file; for a thread, where they are large."""
    files = [_file(path, content) for path, content in sorted(skill.files.items())]
    return _common(skill) | {"body": skill.body.lstrip("\n").rstrip(), "files": files}


def problem(found: Problem) -> dict[str, Any]:
    told: dict[str, Any] = {"source": found.source, "id": found.id, "file": found.fault.file}
    if found.fault.line is not None:
        told["line"] = found.fault.line
    return told | {"reason": found.fault.reason}


def tools(states: Mapping[str, ServerState]) -> dict[str, Any]:
    """Everything that a skill can declare, of the servers that are connected."""
    return {
        "builtins": [{"ref": tool.value, "name": tool.value.partition(":")[2]} for tool in BuiltinTool],
        "servers": [
            {
                "server": server,
                "wildcard": f"mcp:{server}:*",
                "tools": [
                    {"ref": f"mcp:{server}:{name}", "name": name, "description": tool.description}
                    for name, tool in state.tools.items()
                ],
            }
            for server, state in sorted(states.items())
            if state.status is ServerStatus.CONNECTED
        ],
    }


def _common(skill: Skill) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "source": skill.origin.value,
        "declaredTools": list(skill.tools),
        "interruptOn": gates_of(skill),
    }
    if skill.overrides is not None:
        told["overrides"] = skill.overrides.value
    if skill.plugin is not None:
        told["pluginName"] = skill.plugin
    return told


def _dependency(server: str, state: ServerState | None) -> dict[str, Any]:
    if state is None:
        return {"id": server, "enabled": False, "status": "missing"}
    return {"id": server, "enabled": state.status is not ServerStatus.DISABLED, "status": state.status.value}


def _file(path: str, content: bytes) -> dict[str, Any]:
    kind = binary_type(path)
    if kind is None:
        try:
            return {"path": path, "content": content.decode(), "mimeType": TEXT}
        except UnicodeDecodeError:
            kind = BYTES
    return {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64", "mimeType": kind}
