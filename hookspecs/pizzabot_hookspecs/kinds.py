"""The table of kinds: which modules hold hook specifications. The kernel registers each of them."""

from __future__ import annotations

KINDS: tuple[str, ...] = (
    "admission_policies",
    "agent_middleware",
    "agent_runtimes",
    "agent_tools",
    "commands",
    "http_routes",
    "materializers",
    "mcp_clients",
    "mcp_servers",
    "model_providers",
    "observers",
    "secret_stores",
    "skill_sources",
    "storage_backends",
    "transports",
)
"""Each is a module of this package with the hook `pizzabot_<kind>`."""


def hook_name(kind: str) -> str:
    return f"pizzabot_{kind}"
